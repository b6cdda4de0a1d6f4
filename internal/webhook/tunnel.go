package webhook

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/makola/makola/internal/outbound"
)

// tunnels opens connections to receivers. With an egress proxy, this machine resolves the name, checks the address,
// and passes the address to the proxy. The proxy must not resolve the name, because it could find an address of our
// own network.
type tunnels struct {
	check  control
	proxy  *outbound.Proxy // nil: no proxy
	direct outbound.Dial   // checks the address before it connects
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// maxAddresses is the maximum number of addresses that are tried in one attempt.
const maxAddresses = 3

// dial opens a connection to address, which is host:port. With a proxy, it opens a tunnel to the first of the checked
// addresses that the proxy reaches.
func (w tunnels) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !w.proxy.Through(address) {
		return w.direct(ctx, network, address)
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, err
	}
	list, err := w.lookup(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	first, tried := error(&net.DNSError{Err: "no address", Name: host, IsNotFound: true}), 0
	for _, addr := range ipv4First(list) {
		to := netip.AddrPortFrom(addr, uint16(port))
		conn, err := w.to(ctx, to)
		if err == nil {
			return conn, nil
		}
		if tried == 0 {
			first = err
		}
		if tried++; tried == maxAddresses {
			break
		}
	}
	return nil, first
}

// to opens a connection to an address after a check of the address.
func (w tunnels) to(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	network := "tcp6"
	if to.Addr().Is4() {
		network = "tcp4"
	}
	if err := w.check.dial(network, to.String(), nil); err != nil {
		return nil, err
	}
	if !w.proxy.Through(to.String()) { // reached without the proxy, or on loopback, which the check allows only in development
		return w.direct(ctx, network, to.String())
	}
	return w.proxy.Tunnel(ctx, to.String())
}

// ipv4First returns the addresses with the IPv4 ones first, because many proxies cannot reach IPv6.
func ipv4First(list []netip.Addr) []netip.Addr {
	all := make([]netip.Addr, len(list))
	for i, addr := range list {
		all[i] = addr.Unmap()
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return all
}
