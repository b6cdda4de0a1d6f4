package notice

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
)

// Condition is a lasting state, such as a payment whose outcome is unknown.
type Condition struct {
	Name  string // distinguishes conditions of the same event
	Place string // place whose people are notified
	// Person is the only reader. If it is empty, everybody at the place who may see the event is notified.
	Person string
	Line   string
}

const (
	selectClaims = `SELECT name, notice FROM notice_claims WHERE event = $1 AND part = $2 AND ended_at = 0`

	raiseClaims = `INSERT INTO notice_claims (event, part, name, notice, raised_at) SELECT $2, $3, name, notice, $4 FROM rows($1) AS r WHERE true
		ON CONFLICT (event, part, name) DO UPDATE SET notice = excluded.notice, raised_at = excluded.raised_at, ended_at = 0 WHERE notice_claims.ended_at > 0`

	endClaims = `UPDATE notice_claims SET ended_at = $4 WHERE event = $2 AND part = $3 AND ended_at = 0 AND name IN (SELECT value FROM texts($1))`
)

// errClaimed is returned if another node claimed a condition at the same moment. The next round then finds the
// claim.
var errClaimed = errors.New("notice: another node claimed a condition at the same moment")

// claim is a condition and the notice about it.
type claim struct{ name, notice string }

var claimColumns = []db.Column[claim]{
	{Name: "name", Text: func(c claim) string { return c.name }},
	{Name: "notice", Text: func(c claim) string { return c.notice }},
}

// Report stores the current conditions of an event. It writes one notice for all new conditions of a place, and
// claims the conditions in the same transaction. If several callers report conditions of one event, part
// distinguishes them.
func (n *Notices) Report(ctx context.Context, e Event, part string, now []Condition) error {
	if !n.Enabled() {
		return nil
	}
	return n.DB.Write(ctx, func(tx *db.Tx) error {
		open := map[string]bool{}
		if err := tx.Query(selectClaims, []any{string(e), part}, func(r *db.Row) error {
			var c claim
			err := r.Scan(&c.name, &c.notice)
			open[c.name] = true
			return err
		}); err != nil {
			return err
		}
		at := n.Clock.Now()
		raised := slices.DeleteFunc(slices.Clone(now), func(c Condition) bool { return open[c.Name] })
		for _, c := range now {
			delete(open, c.Name)
		}
		if err := n.raise(tx, e, part, raised, at); err != nil {
			return err
		}
		n.lower(tx, e, part, open, at)
		return nil
	})
}

// raise claims conditions and writes their notices.
func (n *Notices) raise(tx *db.Tx, e Event, part string, raised []Condition, at time.Time) error {
	if len(raised) == 0 {
		return nil
	}
	claims := make([]claim, 0, len(raised))
	for of, list := range byReader(raised) {
		f := Fact{Event: e, Place: of.place, Person: of.person, Things: len(list)}
		for _, c := range list[:min(len(list), mostLines)] {
			f.Lines = append(f.Lines, c.Line)
		}
		id := Write(tx, at, f)
		for _, c := range list {
			claims = append(claims, claim{c.Name, id})
		}
	}
	got, err := tx.Exec(raiseClaims, db.RowsOf(claimColumns, claims), string(e), part, at)
	if err == nil && got != int64(len(claims)) {
		err = errClaimed
	}
	return err
}

// lower ends the claims of conditions that are over.
func (n *Notices) lower(tx *db.Tx, e Event, part string, ended map[string]bool, at time.Time) {
	if len(ended) == 0 {
		return
	}
	names := make([]string, 0, len(ended))
	for name := range ended {
		names = append(names, name)
	}
	slices.Sort(names)
	tx.Defer(endClaims, -1, names, string(e), part, at)
	if over := eventRules[e].over; over != "" {
		Write(tx, at, Fact{Event: over, Lines: names, Things: len(names)})
	}
}

// toWhom identifies the readers who get one notice about several conditions.
type toWhom struct{ place, person string }

func byReader(list []Condition) map[toWhom][]Condition {
	all := map[toWhom][]Condition{}
	for _, c := range list {
		of := toWhom{c.Place, c.Person}
		all[of] = append(all[of], c)
	}
	return all
}
