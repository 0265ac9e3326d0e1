package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientIP is the address that a request really comes from: that of the peer, unless the peer is one of our own trusted
// proxies; then the right-most address in X-Forwarded-For that is not trusted itself. What stands further left was
// written by the client and could be anything. It is the zero address when the peer has none.
func ClientIP(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer := peerAddr(r.RemoteAddr)
	if !contains(trusted, peer) {
		return peer
	}
	client := peer
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(hops) {
		hop, ok := parseHop(text)
		if !ok {
			return client // The chain is broken here: the last proxy that is sure stands for what is behind it.
		}
		client = hop
		if !contains(trusted, hop) {
			return client
		}
	}
	return client
}

// RateKey is what one source is known by: an IPv4 address, or the /64 that an IPv6 customer has all of.
func RateKey(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return addr.String()
}

func peerAddr(remote string) netip.Addr {
	if peer, err := netip.ParseAddrPort(remote); err == nil {
		return peer.Addr().Unmap().WithZone("")
	}
	peer, _ := netip.ParseAddr(remote)
	return peer.Unmap().WithZone("")
}

// parseHop reads one entry of X-Forwarded-For; some proxies add the port, some write IPv6 in brackets without one.
func parseHop(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		text = strings.TrimSuffix(inner, "]")
	}
	addr := peerAddr(text)
	return addr, addr.IsValid()
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}
