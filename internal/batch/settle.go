package batch

import (
	"context"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// Unsettled is a distinct text of a draft that names neither a network nor a bank, or a missing network for numbers
// with the same prefix.
type Unsettled struct {
	Key      string // for Settle
	Text     string // text from the file; empty: it is missing
	Prefix   string // first digits of the numbers if the text is missing; empty: the number is no phone number
	Rows     int
	Proposal string // proposed network or id of a bank; empty: none
}

// MaxUnsettled is the number of distinct texts that Unsettled lists.
const MaxUnsettled = 20

const (
	listUnsettled = `SELECT unsettled, count(*), min(line) FROM batch_rows WHERE batch = $1 AND unsettled <> '' AND state = 'bad'
GROUP BY unsettled ORDER BY count(*) DESC, unsettled LIMIT $2`

	unsettledRows = `SELECT ` + rowColumns + ` FROM batch_rows WHERE batch = $1 AND unsettled = $2 AND unsettled <> '' AND state = 'bad' ORDER BY line LIMIT $3`
)

// Unsettled lists the texts of a draft for which a person chooses a network or a bank, those with the most rows first.
func (s *Batches) Unsettled(ctx context.Context, b Batch) (list []Unsettled, err error) {
	known, err := s.banksFor(ctx, b.Tenant)
	if err != nil {
		return nil, err
	}
	err = s.db.Read(db.Bulk(ctx, b.Tenant), func(tx *db.Tx) error {
		list = nil
		var first []int
		if err := tx.Query(listUnsettled, []any{b.ID, int64(MaxUnsettled)}, func(r *db.Row) error {
			var u Unsettled
			var line int
			err := r.Scan(&u.Key, &u.Rows, &line)
			list, first = append(list, u), append(first, line)
			return err
		}); err != nil {
			return err
		}
		for i := range list {
			row, err := rowOf(tx, b.ID, first[i])
			if err != nil {
				return err
			}
			list[i].describe(row, known)
		}
		return nil
	})
	return list, err
}

// describe adds the text from one of its rows, and a proposal.
func (u *Unsettled) describe(r Row, known banks) {
	if prefix, missing := strings.CutPrefix(u.Key, unsettledMissing); missing {
		u.Prefix = prefix
		likely, _ := msisdn.MSISDN(r.Account).LikelyNetwork()
		u.Proposal = string(likely)
		return
	}
	u.Text = strings.TrimSpace(r.Given.Network)
	if bank, found := known.propose(u.Text); found {
		u.Proposal = bank.ID
	}
}

// Settle applies a network, or a bank by its id, to all rows with an unsettled text, and checks them again. It
// returns the number of rows.
func (s *Batches) Settle(ctx context.Context, tenantID, id, key, choice string) (settled int, err error) {
	ctx = db.Bulk(ctx, tenantID)
	t, err := s.tenants.Get(ctx, tenantID)
	if err != nil {
		return 0, err
	}
	known, err := s.banksFor(ctx, tenantID)
	if err != nil {
		return 0, err
	}
	name := ""
	if network, is := msisdn.ParseNetwork(choice); is {
		name = string(network)
	} else if bank, is := known.find(choice); is {
		name = bank.Name
	} else {
		return 0, problem.Field("choice", "must be a network or a bank from the list")
	}
	for {
		var rows []Row
		err := s.edit(ctx, tenantID, id, func(tx *db.Tx, b Batch) (err error) {
			if rows, err = db.All(tx, unsettledRows, []any{id, key, int64(blockRows)}, (*Row).scan); err != nil {
				return err
			}
			for i, old := range rows {
				g := old.Given
				g.Network = name
				rows[i] = cells.row(old.Line, old.Source, g, known)
				if rows[i].unsettled != "" {
					return fmt.Errorf("batch: row %d is unsettled after the choice %q", old.Line, name)
				}
				if err := s.checkRow(ctx, t, &rows[i]); err != nil {
					return err
				}
				b.replaces(old, rows[i])
			}
			return writeRows(tx, id, rows)
		})
		if settled += len(rows); err != nil || len(rows) < blockRows {
			return settled, err
		}
	}
}
