package reconcile

import (
	"context"
	"errors"

	"github.com/makola/makola/internal/db"
)

// Match decides about every line that is new or that its provider has changed. It works in sets and runs
// periodically.
func (m *matcher) Match(ctx context.Context) error {
	ctx = db.Bulk(ctx, "")
	sources, err := m.Sources(ctx)
	for _, s := range sources {
		err = errors.Join(err, m.matchSource(ctx, s))
	}
	return err
}

func (m *matcher) matchSource(ctx context.Context, source Source) error {
	var rest []Line
	for after := ""; ; {
		var lines []Line
		if err := m.db.Read(ctx, func(tx *db.Tx) (err error) {
			lines, err = queryLines(tx, openLines, source.ID, after, int64(setLines))
			return err
		}); err != nil {
			return err
		}
		if len(lines) > 0 {
			after = lines[len(lines)-1].ID
			left, err := m.byName(ctx, source, lines)
			if err != nil {
				return err
			}
			rest = append(rest, left...)
		}
		if last := len(lines) < setLines; last || len(rest) >= maxRest {
			if err := m.bySearch(ctx, source, rest); err != nil {
				return err
			}
			if rest = nil; last {
				return m.missing(ctx, source)
			}
		}
	}
}

// Recheck decides again about every line with an open exception, and about payments that were missing from a statement. Such a
// payment may have ended since.
func (m *matcher) Recheck(ctx context.Context) error {
	ctx = db.Bulk(ctx, "")
	sources, err := m.Sources(ctx)
	if err != nil {
		return err
	}
	for _, s := range sources {
		if err := m.recheckSource(ctx, s); err != nil {
			return err
		}
	}
	return m.Match(ctx)
}

func (m *matcher) recheckSource(ctx context.Context, source Source) error {
	for after := ""; ; {
		var list []Exception
		if err := m.db.Read(ctx, func(tx *db.Tx) (err error) {
			list, err = queryExceptions(tx, standingExceptions, source.ID, after, int64(setLines))
			return err
		}); err != nil || len(list) == 0 {
			return err
		}
		after = list[len(list)-1].ID
		lines, ids := []string{}, []string{}
		for _, e := range list {
			if e.Line != "" {
				lines = append(lines, e.Line)
			} else {
				ids = append(ids, e.Payment)
			}
		}
		payments, err := m.payments.ByIDs(ctx, ids)
		if err != nil {
			return err
		}
		if err := m.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
			if _, err := tx.Exec(judgeAgain, lines); err != nil {
				return err
			}
			for _, e := range list {
				p, is := payments[e.Payment]
				if o := oursOf(p); e.Line == "" && is && !o.Open && !o.Paid {
					if err := m.agree(tx, e); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
}
