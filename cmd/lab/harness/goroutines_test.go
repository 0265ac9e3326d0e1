package harness

import "testing"

// TestCountGoroutines: connections that wait are told from work, a request that is being answered is work.
// So is one that waits for an answer, ours by its stack or not.
func TestCountGoroutines(t *testing.T) {
	t.Parallel()
	got, err := countGoroutines([]byte(`goroutine profile: total 24
6 @ 0x1 0x2
#	0x1	net/http.(*persistConn).readLoop+0x1	transport.go:1

6 @ 0x1 0x3
#	0x1	net/http.(*persistConn).writeLoop+0x1	transport.go:1

3 @ 0x1 0x4
#	0x1	net/http.(*connReader).Read+0x1	server.go:1
#	0x2	net/http.(*conn).serve+0x1	server.go:1

2 @ 0x1 0x5
#	0x1	daesa/checkout.(*Handler).Confirm+0x1	confirm.go:1
#	0x2	net/http.(*conn).serve+0x1	server.go:1

1 @ 0x1 0x6
#	0x1	net/http/pprof.Index+0x1	pprof.go:1
#	0x2	net/http.(*conn).serve+0x1	server.go:1

3 @ 0x1 0x8
#	0x1	net/http.(*persistConn).roundTrip+0x1	transport.go:1
#	0x2	daesa/pgclient.(*Client).send+0x1	send.go:1

2 @ 0x1 0x9
#	0x1	net/http.(*persistConn).roundTrip+0x1	transport.go:1
#	0x2	golang.org/x/oauth2.(*Transport).RoundTrip+0x1	transport.go:1

1 @ 0x1 0x7
#	0x1	github.com/riverqueue/river.(*producer).run+0x1	producer.go:1
`))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Goroutines{All: 24, Idle: 15}); got != want || got.Busy() != 9 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
