package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"code.dny.dev/ssrf"

	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/problem"
)

// maxURL is the maximum length of a callback address in bytes.
const maxURL = 2000

// CheckURL returns an error if events must not be sent to raw. It must be an absolute HTTPS address without user and
// password, with a host that can be public. In development, plain HTTP to this machine is allowed, too. The resolved
// address is checked when the connection is opened, because names change. The text of the error follows a field's
// name.
func CheckURL(raw string, development bool) error {
	if _, text := parseURL(raw, development); text != "" {
		return problem.New(problem.Invalid, "invalid_url", text)
	}
	return nil
}

const (
	textHTTPS   = "must be an HTTPS URL"
	textPrivate = "must not point into a private network"
	textUnicode = "must be valid UTF-8 text"
	textSpaces  = "must not contain spaces, control characters or backslashes"
	textHost    = "must have a valid host name"
	textEscape  = "must write a percent sign as %25 unless it begins an escape such as %20"
)

// parseURL parses an address for events, and escapes characters that cannot be sent as they are. text is the reason
// if the address is refused.
func parseURL(raw string, development bool) (u *url.URL, text string) {
	switch {
	case len(raw) > maxURL:
		return nil, "must not be longer than 2000 characters"
	case !utf8.ValidString(raw):
		return nil, textUnicode
	case strings.ContainsFunc(raw, func(r rune) bool { return r == ' ' || r == '\\' || unicode.IsControl(r) }):
		return nil, textSpaces // never escaped, because parsers read these characters differently
	}
	encoded, err := outbound.EncodeURL(raw)
	if errors.Is(err, outbound.ErrHost) {
		return nil, textHost
	}
	if err == nil {
		u, err = url.Parse(encoded)
	}
	var escape url.EscapeError
	switch {
	case errors.As(err, &escape):
		return nil, textEscape
	case err != nil, u.Opaque != "", u.Hostname() == "":
		return nil, textHTTPS
	}
	if u.User != nil {
		return nil, "must not contain a user name or password"
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "" || strings.HasPrefix(host, ".") || strings.Contains(host, "..") || strings.Contains(host, "%") || strings.HasSuffix(u.Host, ":") {
		return nil, textHTTPS
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, textHTTPS
		}
	}
	here := loopbackHost(host)
	switch u.Scheme {
	case "https":
	case "http":
		if !development || !here {
			return nil, textHTTPS
		}
	default:
		return nil, textHTTPS
	}
	if here && !development || privateHost(host) {
		return nil, textPrivate
	}
	if numericHost(host) && !literal(host) {
		return nil, textHTTPS // addresses such as 127.1 and 0x7f000001
	}
	return u, ""
}

func literal(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// numericHost reports whether a resolver may read host as an IPv4 address in an old spelling.
func numericHost(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return false
	}
	if strings.HasPrefix(last, "0x") {
		return true
	}
	return strings.Trim(last, "0123456789") == ""
}

func loopbackHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// privateHost reports whether host is an address that is neither public nor loopback.
func privateHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Unmap().IsLoopback() {
		return false
	}
	return ssrf.New(ssrf.WithAnyPort()).SafeAddr(addr) != nil
}

// control checks the address of every connection. If loopback is true, it also allows this machine. If only
// is true, it allows nothing else.
type control struct {
	guard          *ssrf.Guardian
	loopback, only bool
}

func newControl(loopback, only bool) control {
	return control{guard: ssrf.New(ssrf.WithAnyPort()), loopback: loopback, only: only}
}

// errNotPublic is the error for an address to which no connection is opened.
var errNotPublic = errors.New("no public address")

// dial is the Control of a net.Dialer.
func (c control) dial(network, address string, raw syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err == nil && to.Addr().Unmap().IsLoopback() {
		if c.loopback {
			return nil
		}
	} else if c.only {
		return errNotPublic
	}
	if err := c.guard.Safe(network, address, raw); err != nil {
		return fmt.Errorf("%w: %w", errNotPublic, err)
	}
	return nil
}
