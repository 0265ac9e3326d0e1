// Package people says who may come in through the pages and what they may do there: accounts with passwords, sessions,
// roles and what each of them allows, and the trail of what everybody did and looked at; and which of the merchant's servers
// may come in through the API: keys, and what each is for. It knows no domain.
//
// What holds at any time:
//
//   - A password is kept as an argon2id hash only, an API key and a session's token as a SHA-256 only: who reads the database comes in
//     nowhere.
//   - An attempt to sign in is counted before the password is looked at, in one statement: many at once are counted like
//     many after each other, and one that is cut off has been counted.
//   - Whoever may not come in is told the same, whatever the reason is, and after the same work.
//   - What ends an account's sessions ends them at their next request: an account is read anew for each.
//   - The trail is only added to; the database refuses anything else.
//
// Start reading with role.go and signin.go; with key.go and keyring.go for the API.
package people
