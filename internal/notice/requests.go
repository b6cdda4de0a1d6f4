package notice

import (
	"context"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// text returns the request on one line.
func (r Request) text() string {
	text := r.Title
	if r.Amount != 0 {
		text += ", GHS " + money.Grouped(r.Amount.String())
	}
	if r.Account != "" {
		text += ", account " + Name(r.Account)
	}
	text += ", requested by " + r.Requester
	if r.Note != "" {
		text += ": " + cut(flat(r.Note), mostName)
	}
	return line(text)
}

// isRequest reports whether the facts of an event come from its change request.
func (e Event) isRequest() bool { return eventRules[e].topic == Approvals || e == RoleChanged }

// standing is the current state of a stored fact.
type standing struct {
	place  string
	person string           // id of its only reader; empty: everybody who may see it
	barred []string         // people who are not notified
	needs  roles.Permission // permission that a reader needs
	about  string           // e-mail address of one more reader; empty: none
	lines  []string
	over   bool // nobody needs to be notified any more
}

// stands returns the current state of a fact.
func (n *Notices) stands(ctx context.Context, f stored) (standing, error) {
	s := standing{place: f.place, person: f.person, barred: []string{f.actor}, needs: eventRules[f.event].needs, lines: f.lines}
	if !f.event.isRequest() {
		return s, nil
	}
	r, err := n.Request(ctx, f.subject)
	if problem.Is(err, problem.NotFound) {
		return standing{over: true}, nil
	}
	if err != nil {
		return s, err
	}
	s.place, s.lines = r.Place, []string{r.text()}
	if f.event == RoleChanged {
		s.barred, s.about = []string{r.RequesterID}, r.About
		return s, nil
	}
	if f.event == RequestWaits {
		s.barred, s.needs, s.over = append(r.Barred, r.RequesterID), r.Approver, !r.Waits
		return s, nil
	}
	s.person, s.over = r.RequesterID, f.event == RequestApproved && !r.Decided
	return s, nil
}
