package delivery

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	// MostUnmatched is the maximum number of receipts that UnmatchedReceipts counts.
	MostUnmatched = 10_000
	// unmatchedAfter is the age from which a receipt counts as unmatched. The response to its submit may arrive after
	// the receipt, but rarely so much later.
	unmatchedAfter = 30 * time.Second
	// unmatchedSampled is the number of newest unmatched receipts whose ids are compared in the other base.
	unmatchedSampled = 20
	// unmatchedLogged is the interval between two log lines.
	unmatchedLogged = 10 * time.Minute
)

// UnmatchedReceipts has the number of receipts of the last day that match no message.
type UnmatchedReceipts struct {
	Receipts int64 // at most MostUnmatched
	Since    time.Time
	ID       string // the operator's id of one of the receipts
	// Base is the number base of ID, decimal or hexadecimal. It is set only if a waiting message to the same phone
	// number has the same id in the other base. Answered is then the id of that message.
	Base     string
	Answered string
}

// The states of receipts, and the bases of their ids.
const (
	ReceiptsMatched   = "matched"
	ReceiptsUnmatched = "unmatched"
	ReceiptsOtherBase = "other base"

	baseDecimal, baseHex = "decimal", "hexadecimal"
)

// State returns a summary of the receipts.
func (u UnmatchedReceipts) State() string {
	switch {
	case u.Receipts == 0:
		return ReceiptsMatched
	case u.Base != "":
		return ReceiptsOtherBase
	}
	return ReceiptsUnmatched
}

// Why explains the state and names the fix. It is empty if all receipts match.
func (u UnmatchedReceipts) Why() string {
	count, since := fmt.Sprint(u.Receipts), u.Since.UTC().Format(time.RFC3339)
	if u.Receipts == MostUnmatched {
		count += " or more"
	}
	switch u.State() {
	case ReceiptsUnmatched:
		return fmt.Sprintf("%s receipts since %s match no message, such as that of the id %s", count, since, u.ID)
	case ReceiptsOtherBase:
		return fmt.Sprintf("%s receipts since %s match no message. Their ids are probably in another number base than the ids of submit responses: %s, read as %s, is %s, which waits for its receipt. "+
			"Check submit_ids and receipt_ids of the bind", count, since, u.ID, u.Base, u.Answered)
	}
	return ""
}

const (
	// Receipts without a message are kept for a day.
	countUnmatched = `SELECT count(*), coalesce(min(x.received_at), 0), coalesce(min(x.upstream_id), '')
		FROM (SELECT received_at, upstream_id FROM early_receipts WHERE received_at < $1 ORDER BY received_at LIMIT $2) AS x`
	newestUnmatched = `SELECT ` + earlyFields + ` FROM early_receipts e WHERE e.received_at < $1 ORDER BY e.received_at DESC LIMIT $2`
)

// unmatched counts the receipts that are too old to find their message, and compares the ids of some in the other
// base.
func (b *receiptBook) unmatched(ctx context.Context) (u UnmatchedReceipts, err error) {
	before := b.clock.Now().Add(-unmatchedAfter)
	err = b.db.Read(ctx, func(tx *db.Tx) error {
		u = UnmatchedReceipts{}
		if _, err := tx.One(countUnmatched, []any{before, MostUnmatched}, &u.Receipts, &u.Since, &u.ID); err != nil || u.Receipts == 0 {
			return err
		}
		ids := otherBases{}
		if err := tx.Query(newestUnmatched, []any{before, unmatchedSampled}, func(r *db.Row) error {
			var e earlyReceipt
			err := e.scan(r)
			ids.add(e)
			return err
		}); err != nil || len(ids) == 0 {
			return err
		}
		return b.findBase(tx, ids, &u)
	})
	return u, err
}

// findBase looks for a message that waits for a receipt, with a receipt's number, and with the receipt's id in the
// other base.
func (b *receiptBook) findBase(tx *db.Tx, ids otherBases, u *UnmatchedReceipts) error {
	compare := func(r *db.Row) error {
		var p part
		err := p.scan(r)
		for _, alike := range ids[p.UpstreamID] {
			if p.State == partOpen && alike.receipt.Recipient == p.Recipient {
				u.ID, u.Base, u.Answered = alike.receipt.UpstreamID, alike.base, p.UpstreamID
			}
		}
		return err
	}
	args := []any{ids.all(), b.clock.Now().Add(-repeatWindow)}
	return tx.Gather(db.Query{SQL: singlesByID, Args: args, Each: compare}, db.Query{SQL: partsByID, Args: args, Each: compare})
}

// otherBases maps the ids that unmatched receipts have in the other base to the receipts.
type otherBases map[string][]baseOfReceipt

type baseOfReceipt struct {
	receipt earlyReceipt
	base    string // base of the receipt's own id
}

func (o otherBases) all() []string {
	all := make([]string, 0, len(o))
	for id := range o {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

// add adds the forms that a receipt's id may have in the operator's responses: unpadded, padded, with a prefix. It
// ignores a receipt without a number, because a short id in another base often belongs to another message.
func (o otherBases) add(e earlyReceipt) {
	if e.Recipient == "" {
		return
	}
	put := func(base string, number int, formats ...string) {
		n, ok := new(big.Int).SetString(e.UpstreamID, number)
		if !ok || n.Sign() < 0 {
			return
		}
		for _, format := range formats {
			if id := fmt.Sprintf(format, n); id != e.UpstreamID {
				o[id] = append(o[id], baseOfReceipt{e, base})
			}
		}
	}
	put(baseDecimal, 10, "%x", "%08x", "%016x", "0x%x")
	put(baseHex, 16, "%d", "%010d")
}

// logUnmatched logs that receipts match no message, at once and then every ten minutes.
func (b *receiptBook) logUnmatched(ctx context.Context) error {
	u, err := b.unmatched(ctx)
	if now := passed(b.clock); err == nil && u.Receipts > 0 && (b.loggedAt == 0 || now-b.loggedAt >= unmatchedLogged) {
		b.loggedAt = now
		b.log.WarnContext(ctx, "unmatched delivery receipts", "receipts", u.Receipts, "since", u.Since, "id", u.ID, "base", u.Base, "answered", u.Answered)
	}
	return err
}
