package changes

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/roles"
)

// MostCheckers is how many approvers a request can need.
const MostApprovers = 2

// KindSendPayout is a payout that needs the approval of the account's own people, by a line of the account's policy. A
// key or a page requests it. The request has the payment's id. The money is on hold from the start, and nothing is sent
// before the last approval. If the request ends otherwise, the payment ends and the hold is released.
const KindSendPayout = "payout.send"

// KindRefund is a refund of a collection that a person of the account requests on its page. The request has the id of the refund, which is
// a payout. The policy's line of payouts counts for it, too.
const KindRefund = "payment.refund"

// Line is one line of the policy: requests of a kind that move at least an amount need a number of approvers. At the
// installation the line of a tenant comes before the line of all tenants. A tenant's own requests follow its own lines
// only. Higher amounts come first.
type Line struct {
	Kind      string
	Tenant    string // empty: at every tenant
	Own       bool   // for the requests of the tenant's own people, instead of those of the installation about it
	From      money.Pesewas
	Approvers int
}

// Default is in the place of Approvers for a line that is taken away.
const Default = -1

// Approvers names a number of approvers for people.
func Approvers(n int) string {
	switch n {
	case Default:
		return "as without a line"
	case 0:
		return "no checker"
	case 1:
		return "one checker"
	}
	return fmt.Sprintf("%d checkers", n)
}

// place is where the requests are made that the line is about.
func (l Line) place() string {
	if l.Own {
		return l.Tenant
	}
	return roles.Installation
}

// ownKind is a kind of requests of a tenant's own people.
type ownKind struct{ kind, tenant string }

// How long a tenant's own lines are kept, and of how many kinds and tenants.
const (
	linesFresh = time.Second
	linesKept  = 10_000
)

const selectOwnLines = `SELECT pesewas, checkers FROM act_policy_own WHERE kind = $1 AND tenant = $2 ORDER BY pesewas DESC`

// loadOwnLines reads a tenant's own lines of a kind.
func loadOwnLines(ctx context.Context, d *db.DB, of ownKind) (lines []Line, err error) {
	err = d.Read(ctx, func(tx *db.Tx) error {
		lines = nil
		return tx.Query(selectOwnLines, []any{of.kind, of.tenant}, func(r *db.Row) error {
			l := Line{Kind: of.kind, Tenant: of.tenant, Own: true}
			err := r.Scan(&l.From, &l.Approvers)
			lines = append(lines, l)
			return err
		})
	})
	return lines, err
}
