// Package pages shows the books to people: what every day came to, what is wrong and what is owed, and what anybody did
// about it, in Korean and in English. It decides nothing: what it shows it has from reconcile, desk and report, and what
// somebody does on a page is done by these. Who may see and do what is [people]'s matrix, asked at each route.
//
// A page is written whole before it is sent, so that one that fails is an answer of its own and never half a page. Nothing
// comes from elsewhere: the policy of each answer allows this origin only, and no inline script.
//
// Start reading with pages.go.
package pages
