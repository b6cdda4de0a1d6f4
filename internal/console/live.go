package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/page"
)

// livePart is a part of a page that reloads itself.
type livePart struct {
	id   string
	seen string // hash of the content that the page shows
	body templ.Component
}

// Part makes a part of a page live. The browser asks for it at an interval, and the answer is empty while the part is
// unchanged.
func (v *Visit) Part(id string, seconds int, body templ.Component) (templ.Component, error) {
	var inner bytes.Buffer
	if err := body.Render(v.Ctx, &inner); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(inner.Bytes())
	p := livePart{id: id, seen: hex.EncodeToString(sum[:8])}
	p.body = page.Live(id, v.Query("live", id, "seen", p.seen), seconds, inner.String())
	v.live = append(v.live, p)
	return p.body, nil
}

// giveLive answers the request of a part that reloads itself. If the page no longer has the part, the browser loads the whole
// page again, which then shows the result.
func (v *Visit) giveLive(id string) {
	for _, p := range v.live {
		if p.id != id {
			continue
		}
		if p.seen == v.R.URL.Query().Get("seen") {
			v.give(Answer{Same: true})
			return
		}
		v.give(Answer{Part: p.body})
		return
	}
	v.W.Header().Set("HX-Refresh", "true")
	v.give(Answer{Same: true})
}
