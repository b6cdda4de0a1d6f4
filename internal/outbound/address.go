package outbound

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// ErrHost is returned for a host name that cannot exist in the DNS.
var ErrHost = errors.New("the host's name is not valid")

// hostNames converts host names to the form that the DNS uses.
var hostNames = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.VerifyDNSLength(true))

// The ASCII characters that the WHATWG URL Standard encodes in queries and in paths. In paths the standard does not
// encode the vertical bar, but net/url does.
const (
	encodedInQuery = ` "#<>'`
	encodedInPath  = encodedInQuery + "?^`{}|"
)

// EncodeURL returns an absolute address in the form of a request line. Path and query are percent-encoded as the
// WHATWG URL Standard requires, and a host outside ASCII becomes Punycode. Existing escapes stay, so encoding twice
// changes nothing. The fragment is dropped. For an invalid host it returns ErrHost.
func EncodeURL(raw string) (string, error) {
	raw, _, _ = strings.Cut(raw, "#")
	raw, query, asks := strings.Cut(raw, "?")
	scheme, rest, absolute := strings.Cut(raw, "://")
	if !absolute || strings.Contains(scheme, "/") || !isASCII(scheme) {
		return "", fmt.Errorf("the address %q is not absolute", raw)
	}
	host, path, rooted := strings.Cut(rest, "/")
	host, err := encodeHost(host)
	if err != nil {
		return "", err
	}
	text := scheme + "://" + host
	if rooted {
		text += "/" + encode(path, encodedInPath)
	}
	if asks {
		text += "?" + encode(query, encodedInQuery)
	}
	return text, nil
}

// encode percent-encodes control characters, characters outside ASCII, and the bytes of set.
func encode(s, set string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte(set, c) >= 0 {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// encodeHost converts a host and its port to ASCII. It returns an ASCII host unchanged. The caller must check user
// names and passwords.
func encodeHost(host string) (string, error) {
	if strings.HasPrefix(host, "[") || strings.Contains(host, "@") || isASCII(host) && !strings.Contains(host, "%") {
		return host, nil
	}
	port := ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host, port = host[:i], host[i:]
	}
	name, err := url.PathUnescape(host)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrHost, err)
	}
	name, err = hostNames.ToASCII(name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrHost, err)
	}
	return name + port, nil
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// addressOf returns the host and port to connect to.
func addressOf(u *url.URL) (string, error) {
	port := u.Port()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("scheme %q is neither http nor https", u.Scheme)
	case port == "" && u.Scheme == "http":
		port = "80"
	case port == "":
		port = "443"
	}
	name := u.Hostname()
	if !isASCII(name) {
		ascii, err := hostNames.ToASCII(name)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrHost, err)
		}
		name = ascii
	}
	return net.JoinHostPort(name, port), nil
}
