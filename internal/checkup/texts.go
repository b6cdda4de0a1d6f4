package checkup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/textroute"
)

// texts tests an account of texts over HTTP.
func (c *Checkup) texts(ctx context.Context, r provider.TextRail, binds []messaging.Bind) ([]Result, error) {
	s := &sheet{mode: r.Mode, provider: r.Name, at: c.Clock.Now()}
	s.credentials(r.Account.AskAccount(ctx), nil)
	for _, b := range binds {
		if b.Name == r.Name && string(b.Mode) == r.Mode && b.State(s.at) == messaging.BindDown {
			s.add(Warn, "connection", "rests since "+stamp(b.Since)+": "+b.Why, "Texts go to the next provider of their route meanwhile. Makola tries again by itself.")
		}
	}
	c.textRoutes(s, r.Name)
	return s.results, c.callbacks(ctx, s, r.Reports != nil)
}

// bind tests the connections to a message centre, as the node that has them reported them.
func (c *Checkup) bind(b messaging.Bind) []Result {
	const subject = "connection"
	s := &sheet{mode: string(b.Mode), provider: b.Name, at: c.Clock.Now()}
	fact := fmt.Sprintf("%d of %d connections are bound", b.Bound, b.Connections)
	const fix = "Compare address, system ID and password with the operator's, and ask whether this machine's address may bind."
	switch b.State(s.at) {
	case messaging.BindUp:
		s.add(OK, subject, fact+" since "+stamp(b.Since), "")
	case messaging.BindPartly:
		s.add(Warn, subject, fact+": "+b.Why, "Ask the operator how many connections the account may have.")
	case messaging.BindSilent:
		s.add(Warn, subject, "no report from a node since "+stamp(b.SeenAt), "Start the server, or look at its log.")
	default:
		s.add(Fail, subject, strings.TrimSuffix(fact+": "+b.Why, ": "), fix)
	}
	c.textRoutes(s, textroute.SMPP)
	return s.results
}

// textRoutes shows the routes of texts that name a provider.
func (c *Checkup) textRoutes(s *sheet, name string) {
	const subject = "routes of texts"
	var named []string
	for _, r := range c.TextRoutes {
		if slices.Contains(r.Providers, name) {
			named = append(named, r.String())
		}
	}
	switch {
	case len(c.TextRoutes) == 0:
		s.add(OK, subject, "none are set: texts go to smpp, hubtelsms and arkesel, in this order", "")
	case len(named) == 0:
		s.add(Warn, subject, "no route names "+name+", so it gets no texts", "Add it to MAKOLA_SMS_ROUTES and restart the server, or remove its settings.")
	default:
		s.add(OK, subject, strings.Join(named, " ")+"; a change of MAKOLA_SMS_ROUTES takes effect after a restart", "")
	}
}
