package webhook

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/makola/makola/internal/problem"
)

func TestCheckURL_requiresHTTPS(t *testing.T) {
	long := "https://shop.example/" + strings.Repeat("a", maxURL)
	for _, c := range []struct {
		raw             string
		production, dev bool
	}{
		{"https://shop.example/hook", true, true},
		{"https://shop.example", true, true},
		{"HTTPS://Shop.Example:8443/hook?order=12&x=%20a#part", true, true},
		{"https://xn--bcher-kva.example/hook", true, true},
		{"https://bücher.example/hook", true, true},
		{"https://93.184.216.34/hook", true, true},
		{"https://[2606:2800:220:1:248:1893:25c8:1946]/hook", true, true},
		{long[:maxURL], true, true},
		{long, false, false},
		{"http://shop.example/hook", false, false},
		{"http://localhost:8080/hook", false, true},
		{"http://127.0.0.1:8080/hook?x=1", false, true},
		{"http://[::1]:8080/hook", false, true},
		{"http://[::ffff:127.0.0.1]/hook", false, true},
		{"https://127.0.0.1/hook", false, true},
		{"https://app.localhost/hook", false, true},
		{"https://localhost./hook", false, true},
		{"https://10.0.0.1/hook", false, false},
		{"https://192.168.1.4/hook", false, false},
		{"https://169.254.169.254/latest/meta-data", false, false},
		{"https://100.64.0.1/", false, false},
		{"https://0.0.0.0/", false, false},
		{"https://[fe80::1]/", false, false},
		{"https://[fe80::1%25eth0]/", false, false},
		{"https://[fc00::1]/", false, false},
		{"https://[::ffff:10.0.0.1]/", false, false},
		{"https://[64:ff9b::7f00:1]/", false, false},
		{"https://2130706433/", false, false},
		{"https://127.1/", false, false},
		{"https://0x7f000001/", false, false},
		{"https://0177.0.0.1/", false, false},
		{"https://user:secret@shop.example/", false, false},
		{"https://user@shop.example/", false, false},
		{"https://@shop.example/", false, false},
		{"https://shop.example:0/", false, false},
		{"https://shop.example:/", false, false},
		{"https://shop.example:99999999/", false, false},
		{"https:///hook", false, false},
		{"https:shop.example", false, false},
		{"https://.", false, false},
		{"//shop.example/hook", false, false},
		{"shop.example/hook", false, false},
		{"ftp://shop.example/", false, false},
		{"javascript:alert(1)", false, false},
		{"https://shop.example/a b", false, false},
		{" https://shop.example/", false, false},
		{"https://shop.example/\n", false, false},
		{"https://shop.example\\@10.0.0.1/", false, false},
		{"https://shop.example%2f@10.0.0.1/", false, false},
		{"", false, false},
	} {
		for development, want := range map[bool]bool{false: c.production, true: c.dev} {
			err := CheckURL(c.raw, development)
			if (err == nil) != want {
				t.Errorf("CheckURL(%q, development %v): %v", c.raw, development, err)
			}
			if err != nil && (!problem.Is(err, problem.Invalid) || !strings.HasPrefix(err.Error(), "must ")) {
				t.Errorf("CheckURL(%q): the text %q does not fit behind a field's name", c.raw, err)
			}
		}
	}
}

func TestCheckURL_keepsQuery(t *testing.T) {
	u, text := parseURL("https://shop.example/hook?a=1&b=%2F&reference=x#frag", false)
	if text != "" || u.String() != "https://shop.example/hook?a=1&b=%2F&reference=x" {
		t.Errorf("%v %s", u, text)
	}
}

// A URL with characters outside ASCII is sent in its ASCII form, to the host that was checked.
func TestParseURL_encodesNonASCII(t *testing.T) {
	for raw, want := range map[string]string{
		"https://shop.example/hook?name=Akɔsua":     "https://shop.example/hook?name=Ak%C9%94sua",
		"https://bücher.example/a%2Fb/ɔ?x=%C9%94#ɔ": "https://xn--bcher-kva.example/a%2Fb/%C9%94?x=%C9%94",
	} {
		u, text := parseURL(raw, false)
		if text != "" || u.String() != want || u.RequestURI() != strings.TrimPrefix(want, "https://"+u.Host) {
			t.Errorf("%s is sent to %v, %s", raw, u, text)
		}
		if hostPart(raw) != u.Host {
			t.Errorf("%s waits in the line of %q, not of %q", raw, hostPart(raw), u.Host)
		}
	}
}

// The error of a refused URL names the fault.
func TestParseURL_namesTheFault(t *testing.T) {
	for raw, want := range map[string]string{
		"https://shop.example/\xff": textUnicode, "https://shop.example/a b": textSpaces, "https://shop.example/\u0085": textSpaces,
		"https://shop.example/100%": textEscape, "https://shop.example/?q=100%": "", "https://bü_cher.example/": textHost,
		"https://\uff11\uff10.0.0.1/": textPrivate, "https://%31%30.0.0.1/": textPrivate, "https://ⓛocalhost/": textPrivate,
		"https://①②⑦.1/": textHTTPS, "https://user@shop.example/ü": "must not contain a user name or password", "shop.example/ɔ": textHTTPS,
		"https://" + strings.Repeat("ü", 64) + ".example/": textHost,
	} {
		if _, text := parseURL(raw, false); text != want {
			t.Errorf("%q: %q, want %q", raw, text, want)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://shop.example/hook?x=1#y", "http://localhost:80/", "https://[::1]/", "https://127.1", "https://a@b", "https://0x7f.1/",
		"https://[::ffff:a00:1]/", "https://ex\u212Aample/", "https://1.1.1.1.", "https://%31%30.0.0.1/", "https://\uff11\uff10.0.0.1/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		_ = CheckURL(raw, true) // no input may panic
		u, text := parseURL(raw, false)
		if (text == "") != (CheckURL(raw, false) == nil) {
			t.Fatal("two opinions")
		}
		if text != "" {
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || len(raw) > maxURL {
			t.Fatalf("accepted %q as %+v", raw, u)
		}
		if addr, err := netip.ParseAddr(strings.TrimSuffix(u.Hostname(), ".")); err == nil {
			addr = addr.Unmap()
			if addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() || addr.IsMulticast() {
				t.Fatalf("accepted the private address %q", raw)
			}
		}
		// The checked URL is sent unchanged, including path and query.
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.RequestURI() != u.RequestURI() {
			t.Fatalf("%q becomes %q and then %v, %v", raw, u, again, err)
		}
		if err := CheckURL(raw, true); err != nil {
			t.Fatalf("development refuses %q: %v", raw, err)
		}
	})
}

func TestSend_checksDialledAddress(t *testing.T) {
	public, private := "93.184.216.34:443", "10.1.2.3:443"
	for _, c := range []struct {
		name    string
		control control
		refused []string
		allowed []string
	}{
		{"production", newControl(false, false),
			[]string{private, "127.0.0.1:443", "[::1]:443", "169.254.169.254:443", "[fe80::1]:443", "[::ffff:10.0.0.1]:443", "100.64.1.1:443"},
			[]string{public, "93.184.216.34:8443"}},
		{"development", newControl(true, false), []string{private, "169.254.169.254:443"}, []string{public, "127.0.0.1:99", "[::1]:99"}},
		{"development without TLS", newControl(true, true), []string{private, public}, []string{"127.0.0.1:99", "[::1]:99"}},
		{"production without TLS", newControl(false, true), []string{private, public, "127.0.0.1:99"}, nil},
	} {
		for _, address := range c.refused {
			if c.control.dial("tcp4", address, nil) == nil && c.control.dial("tcp6", address, nil) == nil {
				t.Errorf("%s: %s may be called", c.name, address)
			}
		}
		for _, address := range c.allowed {
			network := "tcp4"
			if strings.HasPrefix(address, "[") {
				network = "tcp6"
			}
			if err := c.control.dial(network, address, nil); err != nil {
				t.Errorf("%s: %s: %v", c.name, address, err)
			}
		}
	}
}
