package web

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
)

// peersWarned is how many peers are warned of, each once; a network with more of them is told by the counter.
const peersWarned = 16

// WatchForwarded notices a proxy that is missing among the trusted ones: a request with X-Forwarded-For whose peer is an
// address of a private network, or of this machine. It is counted, and written down once per peer, because all who come
// through such a proxy are one source to whatever counts by source. Any other peer may be a stranger, who can write what
// he likes.
func WatchForwarded(metrics *Metrics, trusted []netip.Prefix, log *slog.Logger) func(http.Handler) http.Handler {
	known := peers{seen: make(map[netip.Addr]struct{}, peersWarned)}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.Header.Values("X-Forwarded-For")) > 0 {
				if peer := peerAddr(r.RemoteAddr); inside(peer) && !contains(trusted, peer) {
					metrics.untrustedForwarded.Inc()
					if known.first(peer) {
						log.WarnContext(r.Context(), "X-Forwarded-For of a peer that is not a trusted proxy: all who come through it "+
							"are one source; if it is a proxy of yours, add it to DAESA_TRUSTED_PROXIES", slog.String("peer", peer.String()))
					}
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// carrierGrade are the addresses of RFC 6598, which clouds give to their own machines.
func carrierGrade() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10)
}

// inside reports whether an address is none that a stranger comes from.
func inside(addr netip.Addr) bool {
	return addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || carrierGrade().Contains(addr)
}

// peers are those that were warned of.
type peers struct {
	mu   sync.Mutex
	seen map[netip.Addr]struct{}
}

// first reports whether a peer is to be warned of.
func (p *peers) first(peer netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.seen[peer]; known || len(p.seen) >= peersWarned {
		return false
	}
	p.seen[peer] = struct{}{}
	return true
}
