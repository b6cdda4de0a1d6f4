package access

import (
	"net/netip"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

func prefixes(t testing.TB, texts ...string) []netip.Prefix {
	t.Helper()
	var list []netip.Prefix
	for _, text := range texts {
		p, err := ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func TestPrefix_rangeOrAddress(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8", "10.1.2.3": "10.1.2.3/32", " 10.1.2.3/32 ": "10.1.2.3/32", "0.0.0.0/0": "0.0.0.0/0",
		"::1": "::1/128", "2001:db8::/32": "2001:db8::/32", "::/0": "::/0",
		"::ffff:10.1.2.3": "10.1.2.3/32", "::ffff:10.0.0.0/104": "10.0.0.0/8", "::ffff:0.0.0.0/96": "0.0.0.0/0",
	} {
		if got, err := ParsePrefix(in); err != nil || got.String() != want {
			t.Errorf("ParsePrefix(%q) = %v, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "x", "10.1.2.3/8", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/-1", "10.0.0.0/08", "2001:db8::1/32", "::/129",
		"fe80::1%eth0", "fe80::%eth0/64", "::ffff:0.0.0.0/95", "10.0.0.0/8/8", "010.0.0.1", "::ffff:10.1.2.3/104",
	} {
		if got, err := ParsePrefix(in); !problem.Is(err, problem.Invalid) {
			t.Errorf("ParsePrefix(%q) = %v, %v; want a refusal", in, got, err)
		}
	}
}

func TestAllowList_ofPayouts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, _ := other(d, start)
		node, nodeClock := other(d, start)
		ask := func(on *Access, tenant, addr string) bool {
			t.Helper()
			ok, err := on.PayoutIPAllowed(t.Context(), tenant, netip.MustParseAddr(addr))
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if ask(a, "t1", "127.0.0.1") || ask(node, "t1", "10.0.0.5") {
			t.Fatal("an empty list allows")
		}
		set := func(list ...string) []netip.Prefix {
			var before []netip.Prefix
			write(t, d, func(tx *db.Tx) (err error) {
				before, err = a.SetPayoutIPs(tx, "t1", prefixes(t, list...))
				return err
			})
			return before
		}
		set("10.0.0.0/29", "2001:db8::/64", "10.0.0.0/29")
		for addr, want := range map[string]bool{
			"10.0.0.0": true, "10.0.0.7": true, "10.0.0.8": false, "9.255.255.255": false, "::ffff:10.0.0.7": true,
			"2001:db8::1": true, "2001:db8:0:1::": false, "2001:db8::ffff:ffff:ffff:ffff": true, "::1": false, "2001:db8::1%eth0": true,
		} {
			if got := ask(a, "t1", addr); got != want {
				t.Errorf("%s: allowed %v, want %v", addr, got, want)
			}
		}
		if ask(a, "t2", "10.0.0.7") {
			t.Error("another tenant's list counts")
		}
		if ok, err := a.PayoutIPAllowed(t.Context(), "t1", netip.Addr{}); ok || err != nil {
			t.Errorf("no address at all: %v, %v", ok, err)
		}
		nodeClock.Advance(Freshness)
		if !ask(node, "t1", "10.0.0.5") {
			t.Error("after a second the other node does not know the list")
		}
		if before := set("192.0.2.1"); len(before) != 2 {
			t.Errorf("the list was %v", before)
		}
		if ask(a, "t1", "10.0.0.7") || !ask(a, "t1", "192.0.2.1") {
			t.Error("the list was not replaced here at once")
		}
		nodeClock.Advance(Freshness)
		if ask(node, "t1", "10.0.0.5") {
			t.Error("after a second the other node still allows")
		}
		set()
		if list, err := a.PayoutIPs(t.Context(), "t1"); err != nil || len(list) != 0 {
			t.Errorf("the list is %v, %v", list, err)
		}
	})
}

func TestAllowList_ipv4DoesNotImplyIPv6(t *testing.T) {
	list := prefixes(t, "0.0.0.0/0")
	if !contains(list, netip.MustParseAddr("8.8.8.8")) || contains(list, netip.MustParseAddr("2001:db8::1")) {
		t.Error("0.0.0.0/0 must cover IPv4 and only it")
	}
	if contains(prefixes(t, "::/0"), netip.MustParseAddr("8.8.8.8")) {
		t.Error("::/0 covers IPv4")
	}
}

func TestClientAddress_trustedProxiesOnly(t *testing.T) {
	proxies := prefixes(t, "10.0.0.0/8", "fd00::/8")
	for _, c := range []struct {
		name, remote string
		forwarded    []string
		trusted      []netip.Prefix
		want         string
	}{
		{"no proxy", "203.0.113.9:4711", nil, nil, "203.0.113.9"},
		{"the client's own word", "203.0.113.9:4711", []string{"127.0.0.1"}, nil, "203.0.113.9"},
		{"the client's own word to a Makola behind proxies", "203.0.113.9:4711", []string{"127.0.0.1"}, proxies, "203.0.113.9"},
		{"one proxy", "10.0.0.1:80", []string{"203.0.113.9"}, proxies, "203.0.113.9"},
		{"a client that lies to the proxy", "10.0.0.1:80", []string{"127.0.0.1, 203.0.113.9"}, proxies, "203.0.113.9"},
		{"a client that lies in a header of its own", "10.0.0.1:80", []string{"127.0.0.1", "203.0.113.9"}, proxies, "203.0.113.9"},
		{"a client that names a proxy", "10.0.0.1:80", []string{"198.51.100.1, 10.0.0.9, 203.0.113.9"}, proxies, "203.0.113.9"},
		{"two proxies", "10.0.0.1:80", []string{"203.0.113.9, 10.0.0.2"}, proxies, "203.0.113.9"},
		{"two proxies, two headers", "10.0.0.1:80", []string{"203.0.113.9", " 10.0.0.2 "}, proxies, "203.0.113.9"},
		{"only proxies", "10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, proxies, "10.0.0.3"},
		{"no header", "10.0.0.1:80", nil, proxies, "10.0.0.1"},
		{"empty entries", "10.0.0.1:80", []string{"203.0.113.9,,", ""}, proxies, "203.0.113.9"},
		{"rubbish from the proxy", "10.0.0.1:80", []string{"203.0.113.9, unknown"}, proxies, "invalid IP"},
		{"rubbish left of the client", "10.0.0.1:80", []string{"<script>, 203.0.113.9"}, proxies, "203.0.113.9"},
		{"with ports", "10.0.0.1:80", []string{"203.0.113.9:5000"}, proxies, "203.0.113.9"},
		{"IPv6", "[fd00::1]:80", []string{"[2001:db8::7]:5000"}, proxies, "2001:db8::7"},
		{"IPv6 without port", "[fd00::1]:80", []string{"[2001:db8::7]"}, proxies, "2001:db8::7"},
		{"IPv4 inside IPv6", "[::ffff:10.0.0.1]:80", []string{"::ffff:203.0.113.9"}, proxies, "203.0.113.9"},
		{"a zone", "[fd00::1%eth0]:80", []string{"203.0.113.9"}, proxies, "203.0.113.9"},
		{"no peer", "@", []string{"203.0.113.9"}, proxies, "invalid IP"},
	} {
		if got := ClientIP(c.remote, c.forwarded, c.trusted); got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func FuzzClientIP(f *testing.F) {
	f.Add("10.0.0.1:80", "203.0.113.9, 10.0.0.2")
	f.Add("203.0.113.9:80", "127.0.0.1")
	proxies := prefixes(f, "10.0.0.0/8")
	f.Fuzz(func(t *testing.T, remote, forwarded string) {
		peer := parseHop(remote)
		if got := ClientIP(remote, []string{forwarded}, proxies); !contains(proxies, peer) && got != peer {
			t.Fatalf("an untrusted peer %q was believed: %v", remote, got)
		}
		// Text to the left of the address that a trusted proxy added changes nothing.
		if got := ClientIP("10.0.0.1:80", []string{forwarded + ", 203.0.113.9"}, proxies); got.String() != "203.0.113.9" {
			t.Fatalf("%q moved the client to %v", forwarded, got)
		}
	})
}

func TestAllowList_cachedForASecond(t *testing.T) {
	if Freshness > time.Second {
		t.Fatal("changes must hold within one second")
	}
}
