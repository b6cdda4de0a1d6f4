package access

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// ParsePrefix parses an IPv4 or IPv6 address or a CIDR of an allow-list. An IPv4 address in IPv6 notation
// (::ffff:10.0.0.0/104) becomes IPv4. Bits after the mask are an error: the author of 10.1.2.3/8 may have meant one
// host, but the range allows sixteen million addresses.
func ParsePrefix(text string) (netip.Prefix, error) {
	text = strings.TrimSpace(text)
	refuse := func(why string) (netip.Prefix, error) {
		return netip.Prefix{}, problem.Field("payout_ip", text+" "+why)
	}
	var p netip.Prefix
	if strings.Contains(text, "/") {
		parsed, err := netip.ParsePrefix(text)
		if err != nil {
			return refuse("is neither an IP address nor a CIDR")
		}
		p = parsed
	} else {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return refuse("is neither an IP address nor a CIDR")
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return refuse("covers IPv4 and IPv6: write two CIDRs.")
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return refuse("has bits after its prefix length. Did you mean " + p.Masked().String() + "?")
	}
	return p, nil
}

const selectList = `SELECT prefix FROM payout_ips WHERE tenant = $1 ORDER BY prefix`

func (a *Access) loadList(ctx context.Context, tenant string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	err := a.db.Read(ctx, func(tx *db.Tx) (err error) {
		list, err = readList(tx, tenant)
		return err
	})
	return list, err
}

func readList(tx *db.Tx, tenant string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	err := tx.Query(selectList, []any{tenant}, func(r *db.Row) error {
		var text string
		if err := r.Scan(&text); err != nil {
			return err
		}
		p, err := netip.ParsePrefix(text)
		list = append(list, p)
		return err
	})
	return list, err
}

// PayoutIPs returns the allow-list of a tenant.
func (a *Access) PayoutIPs(ctx context.Context, tenant string) ([]netip.Prefix, error) {
	list, err := a.lists.Get(ctx, tenant)
	return slices.Clone(list), err
}

// PayoutIPAllowed reports whether a tenant may request payouts from an address. An empty list allows no address.
func (a *Access) PayoutIPAllowed(ctx context.Context, tenant string, addr netip.Addr) (bool, error) {
	list, err := a.lists.Get(ctx, tenant)
	if err != nil {
		return false, err
	}
	return contains(list, addr), nil
}

// contains reports whether a list contains an address. It also accepts an IPv4 address in IPv6 notation, as a
// listener for both reports it, and an address with a zone.
func contains(list []netip.Prefix, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) })
}

const clearList = `DELETE FROM payout_ips WHERE tenant = $1`

// SetPayoutIPs replaces the allow-list of a tenant in tx and returns the old list. An empty list allows no address.
func (a *Access) SetPayoutIPs(tx *db.Tx, tenant string, list []netip.Prefix) (before []netip.Prefix, err error) {
	before, err = readList(tx, tenant)
	if err != nil {
		return nil, err
	}
	now := a.clock.Now()
	seen := map[netip.Prefix]bool{}
	var rows []string
	for _, p := range list {
		if !seen[p] {
			seen[p] = true
			rows = append(rows, p.String())
		}
	}
	if _, err := tx.Exec(clearList, tenant); err != nil {
		return nil, err
	}
	db.Insert(tx, "payout_ips", []db.Column[string]{
		{Name: "tenant", Text: func(string) string { return tenant }},
		{Name: "prefix", Text: func(p string) string { return p }},
		{Name: "created_at", Time: func(string) time.Time { return now }},
	}, rows)
	tx.AfterCommit(func() { a.lists.Forget(tenant) })
	return before, nil
}

// ClientIP returns the address of a request's client. Without trusted proxies it is the peer of the connection.
// Behind trusted proxies it is the right-most address of X-Forwarded-For that is not a trusted proxy. Each proxy
// appends the address of its peer, and the client may have sent any text before that. For an unreadable entry it
// returns the zero address, which no list contains.
func ClientIP(remote string, forwardedFor []string, trusted []netip.Prefix) netip.Addr {
	seen := parseHop(remote)
	hops := strings.Split(strings.Join(forwardedFor, ","), ",")
	for i := len(hops) - 1; i >= 0 && contains(trusted, seen); i-- {
		hop := strings.TrimSpace(hops[i])
		if hop == "" {
			continue
		}
		seen = parseHop(hop)
	}
	return seen
}

// FromProxy reports whether the peer of a connection is a trusted proxy.
func FromProxy(remote string, trusted []netip.Prefix) bool {
	return contains(trusted, parseHop(remote))
}

// parseHop parses an address with or without a port.
func parseHop(text string) netip.Addr {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone("")
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}
