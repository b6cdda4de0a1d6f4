package outbound

import (
	"errors"
	"net/url"
	"testing"
)

// URLs are encoded as browsers encode them.
func TestEncodeURL_encodesAsBrowsersDo(t *testing.T) {
	for raw, want := range map[string]string{
		"https://shop.example":                                "https://shop.example",
		"HTTPS://Shop.Example:8443/hook?order=12&x=%20a#part": "HTTPS://Shop.Example:8443/hook?order=12&x=%20a",
		"https://shop.example/hook?name=Akɔsua":               "https://shop.example/hook?name=Ak%C9%94sua",
		"https://shop.example/hook?name=Ak%C9%94sua":          "https://shop.example/hook?name=Ak%C9%94sua",
		"https://shop.example/hook?name=Ak%c9%94sua&x=ɔ":      "https://shop.example/hook?name=Ak%c9%94sua&x=%C9%94",
		"https://shop.example/a%2Fb/Akɔsua/c":                 "https://shop.example/a%2Fb/Ak%C9%94sua/c",
		"https://shop.example/h?a={1}|^`&b=\"<'>":             "https://shop.example/h?a={1}|^`&b=%22%3C%27%3E",
		"https://shop.example/{a}|^`'\"<>":                    "https://shop.example/%7Ba%7D%7C%5E%60%27%22%3C%3E",
		"https://shop.example?q=é":                            "https://shop.example?q=%C3%A9",
		"https://shop.example/?":                              "https://shop.example/?",
		"https://shop.example/?a?b=?":                         "https://shop.example/?a?b=?",
		"https://shop.example/100%?x=100%":                    "https://shop.example/100%?x=100%",
		"https://shop.example/#ɔ":                             "https://shop.example/",
		"https://bücher.example:8443/ü":                       "https://xn--bcher-kva.example:8443/%C3%BC",
		"https://BÜCHER.example":                              "https://xn--bcher-kva.example",
		"https://b%C3%BCcher.example/":                        "https://xn--bcher-kva.example/",
		"https://faß.example/":                                "https://xn--fa-hia.example/",
		"https://shop。example/":                               "https://shop.example/",
		"https://\uff11\uff10.0.0.1/":                         "https://10.0.0.1/",
		"https://%31%30.0.0.1/":                               "https://10.0.0.1/",
		"https://[::1]:80/é":                                  "https://[::1]:80/%C3%A9",
		"https://shop.example/😀\u00a0":                        "https://shop.example/%F0%9F%98%80%C2%A0",
	} {
		got, err := EncodeURL(raw)
		if err != nil || got != want {
			t.Errorf("EncodeURL(%q) = %q, %v; want %q", raw, got, err, want)
		}
		if again, err := EncodeURL(got); err != nil || again != got {
			t.Errorf("%q encoded again is %q, %v", got, again, err)
		}
	}
}

// A host is refused if no resolver can look it up, or if its letters would turn into other parts of a URL.
func TestEncodeURL_refusesBadHosts(t *testing.T) {
	for _, host := range []string{"b\u00fc cher", "b\u00fccher_.example", "\u2100.example", "\u200b", "a\u0308..example", "%zz.example", "b\u00fc%2fcher", "xn--\u00fc.example"} {
		if got, err := EncodeURL("https://" + host + "/"); !errors.Is(err, ErrHost) {
			t.Errorf("%q becomes %q, %v", host, got, err)
		}
	}
	if got, err := EncodeURL("https:shop.example"); err == nil {
		t.Errorf("a relative address becomes %q", got)
	}
}

// FuzzEncodeURL checks that net/url sends an encoded URL in ASCII, and that a second encoding changes nothing.
func FuzzEncodeURL(f *testing.F) {
	for _, s := range []string{"https://shop.example/a%2Fb/Akɔsua?x=ɔ'#y", "https://bücher.example:8443/{}|", "https://[::1]/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		once, err := EncodeURL(raw)
		if err != nil {
			return
		}
		u, err := url.Parse(once)
		if err != nil || u.Host == "" || u.User != nil {
			return
		}
		if !isASCII(u.Host) || !isASCII(u.RequestURI()) {
			t.Fatalf("%q is sent to %q as %q", raw, u.Host, u.RequestURI())
		}
		again, err := EncodeURL(u.String())
		if v, errParse := url.Parse(again); err != nil || errParse != nil || v.Host != u.Host || v.RequestURI() != u.RequestURI() {
			t.Fatalf("%q becomes %q and then %q, %v", raw, once, again, err)
		}
	})
}
