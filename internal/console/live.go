package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/page"
)

// livePart is a part of a page that asks for itself again.
type livePart struct {
	id   string
	seen string // a hash of its content
	body templ.Component
}

// part makes a part of a page live: the browser asks for it every so many seconds, and is answered with nothing while it
// stays the same.
func (v *visit) part(id string, seconds int, body templ.Component) (templ.Component, error) {
	var inner bytes.Buffer
	if err := body.Render(v.ctx, &inner); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(inner.Bytes())
	p := livePart{id: id, seen: hex.EncodeToString(sum[:8])}
	p.body = page.Live(id, v.query("live", id, "seen", p.seen), seconds, inner.String())
	v.live = append(v.live, p)
	return p.body, nil
}

// giveLive answers a part that asked for itself.
func (v *visit) giveLive(id string) {
	for _, p := range v.live {
		if p.id == id && p.seen != v.r.URL.Query().Get("seen") {
			v.give(answer{part: p.body})
			return
		}
	}
	v.give(answer{same: true})
}
