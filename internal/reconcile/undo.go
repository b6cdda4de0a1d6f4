package reconcile

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

const (
	selectMatch = `SELECT line, payment, leg, rule, made_at FROM statement_matches WHERE line = $1`

	insertUndone = `INSERT INTO statement_undone (line, payment, reason, actor, at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (line, payment) DO NOTHING`
)

// Matched is the payment that a line is matched with.
type Matched struct {
	Payment string // empty: the line is a settlement
	Leg     Leg
	Rule    Rule
	At      time.Time
}

// MatchOf returns the match of a line.
func (m *matcher) MatchOf(ctx context.Context, line string) (one Matched, found bool, err error) {
	err = m.db.Read(ctx, func(tx *db.Tx) error {
		var of string
		found, err = tx.One(selectMatch, []any{line}, &of, &one.Payment, &one.Leg, &one.Rule, &one.At)
		return err
	})
	return one, found, err
}

// MatchesOf returns the matches of lines, by the id of the line. Lines that are not matched are left out.
func (s *store) MatchesOf(ctx context.Context, lines []Line) (map[string]Matched, error) {
	ids := make([]string, len(lines))
	for i, l := range lines {
		ids[i] = l.ID
	}
	found := map[string]Matched{}
	err := s.db.Read(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		list, err := queryMatches(tx, matchesOfLines, ids)
		for _, one := range list {
			found[one.line] = Matched{Payment: one.payment, Leg: one.leg, Rule: one.rule}
		}
		return err
	})
	return found, err
}

// maxReason is how many characters a reason has.
const maxReason = 500

// open refuses a line whose day is closed.
func (m *matcher) open(ctx context.Context, l Line) error {
	if m.closed == nil {
		return nil
	}
	source, err := m.Source(ctx, l.Source)
	if err != nil {
		return err
	}
	closed, err := m.closed(ctx, source.Ledger().Asset, l.At)
	if err == nil && closed {
		err = problem.New(problem.Invalid, "day_closed", "The day of the line is closed. Reopen the day to undo its matches")
	}
	return err
}

// Undo ends the match of a line while its day is open. It moves no money, and no rule makes the same match again.
func (m *matcher) Undo(ctx context.Context, line, actor, reason string) error {
	reason = strings.TrimSpace(reason)
	if reason == "" || len([]rune(reason)) > maxReason || !usertext.Storable(reason) {
		return problem.Field("reason", fmt.Sprintf("is required, in at most %d characters of plain text", maxReason))
	}
	l, err := m.Line(ctx, line)
	if err != nil {
		return err
	}
	if err := m.open(ctx, l); err != nil {
		return err
	}
	return m.db.Write(ctx, func(tx *db.Tx) error {
		list, err := queryMatches(tx, matchesOfLines, []string{line})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return problem.New(problem.NotFound, "match_not_found", "The line is not matched")
		}
		if list[0].leg == LegSettlement && list[0].rule == RulePerson {
			return problem.New(problem.Invalid, "line_booked", "The money of the line is booked: correct it by adjusting the wallet")
		}
		if _, err := tx.Exec(insertUndone, line, list[0].payment, reason, actor, m.clock.Now()); err != nil {
			return err
		}
		for _, sql := range []string{deleteMatch, deleteSettled, deleteOwn} {
			if _, err := tx.Exec(sql, line); err != nil {
				return err
			}
		}
		if err := judgeAround(tx, []string{list[0].payment}); err != nil {
			return err
		}
		_, err = tx.Exec(judgeAgain, []string{line})
		return err
	})
}
