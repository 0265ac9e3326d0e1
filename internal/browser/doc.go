// Package browser uses the pages as people do: in Chromium, with mouse and keyboard, over the real service, a real
// PostgreSQL and the simulated gateway.
//
// A page is looked at as it is drawn, and what it says to the browser's console is listened to: a test in which a page
// breaks its own content security policy, or complains of anything that the test does not expect, fails. What was seen is
// kept as pictures:
//
//	go test ./internal/browser -artifacts -outputdir /tmp     the pictures of every test, under /tmp/_artifacts
//	go test ./internal/browser -run Guides -update            the pictures of the guides, in docs/images
//
// Everything is in test files, so that none of it can reach the program. Start reading at office_test.go (the service and
// its story), then tab_test.go (somebody's browser).
package browser
