package changes

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/roles"
)

// MostApprovers is the largest number of approvers that a change can need.
const MostApprovers = 2

// KindSendPayout is a payout that needs the approval of the account's own people, by a line of the account's policy. A
// key or a page requests it. The request has the payment's id. The money is on hold from the start, and nothing is sent
// before the last approval. If the request ends otherwise, the payment ends and the hold is released.
const KindSendPayout = "payout.send"

// KindRefund is a refund of a collection that a person of the account requests on the collection's page. The request
// has the id of the refund, which is a payout. The policy's line for payouts applies to it, too.
const KindRefund = "payment.refund"

// Line is one line of the policy: requests of a kind that move at least an amount need a number of approvers. At the
// installation the line of a tenant comes before the line of all tenants. A tenant's own requests follow its own lines
// only. Higher amounts come first.
type Line struct {
	Kind      string
	Tenant    string // empty: for every tenant
	Own       bool   // for requests of the tenant's own people, not for requests of the installation about the tenant
	From      money.Pesewas
	Approvers int
}

// Default is the number of approvers in a request that removes a line.
const Default = -1

// Approvers formats a number of approvers for people, such as "2 approvers".
func Approvers(n int) string {
	switch n {
	case Default:
		return "the default"
	case 0:
		return "no approver"
	case 1:
		return "1 approver"
	}
	return fmt.Sprintf("%d approvers", n)
}

// fromAmount formats the lower limit of a line, such as " from GHS 500.00". It is empty for zero, because the number
// of approvers is then the same for every amount.
func fromAmount(from money.Pesewas) string {
	if from == 0 {
		return ""
	}
	return " from " + ledger.GHS.Text(int64(from))
}

// place is the place whose requests the line is about.
func (l Line) place() string {
	if l.Own {
		return l.Tenant
	}
	return roles.Installation
}

// ownKind is a tenant and a kind of requests of the tenant's own people.
type ownKind struct{ kind, tenant string }

// The limits of the cache of tenants' own lines: their age, and the number of kinds and tenants.
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
