// Package trace carries the trace context of W3C (the header traceparent) from a request to the calls that it causes.
// Makola records no spans, so it forwards the caller's header as a proxy does. Makola bases no decision on a trace,
// because a client can send any value.
package trace

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Header is the name of the header, as net/http spells it.
const Header = "Traceparent"

// parentLength is the length of a traceparent of version 00: version, trace id, parent id, flags.
const parentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// Parent returns the traceparent among the values of a request's header, or "" if there is not exactly one valid value.
// A later version is read as 00, as the specification asks. Unknown flags are cleared.
func Parent(values []string) string {
	if len(values) != 1 || len(values[0]) < parentLength {
		return ""
	}
	whole, s := values[0], values[0][:parentLength]
	version, id, parent, flags := s[0:2], s[3:35], s[36:52], s[53:55]
	switch {
	case s[2] != '-', s[35] != '-', s[52] != '-', !isHex(version + id + parent + flags), version == "ff":
		return ""
	case zero(id), zero(parent):
		return ""
	case len(whole) > parentLength && (version == "00" || whole[parentLength] != '-'):
		return ""
	}
	set, err := strconv.ParseUint(flags, 16, 8)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%02x", id, parent, set&knownFlags)
}

// knownFlags are "sampled" and "random trace id".
const knownFlags = 3

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

func zero(s string) bool { return strings.Trim(s, "0") == "" }

type key struct{}

// With returns a context whose calls to providers carry the traceparent. An empty one changes nothing.
func With(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, parent)
}

// From returns the traceparent of a context, or "".
func From(ctx context.Context) string {
	parent, _ := ctx.Value(key{}).(string)
	return parent
}
