package delivery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// charge returns the transfer that pays for a campaign.
func (c Campaign) charge(asset ledger.Asset) ledger.Transfer {
	return ledger.Transfer{Asset: asset, From: ledger.Credits(c.Tenant), To: ledger.Used,
		Amount: c.Cost(), Subject: c.ID, Leg: "charge", Kind: "sms_charge", At: c.CreatedAt}
}

// Shortage is the Data of InsufficientCredits.
type Shortage struct {
	Balance int64 // credits
	Cost    int64 // credits
}

// Err returns the error of a request that costs more than the balance.
func (s Shortage) Err() error {
	return &problem.Error{Kind: problem.InsufficientCredits, Code: "insufficient_sms_balance", Message: "Insufficient SMS balance", Data: s}
}

// A large campaign becomes done when its last chunk ends.
const countCampaigns = `UPDATE campaigns SET left_over = campaigns.left_over - r.ended, refunded = campaigns.refunded + r.back,
			status = CASE WHEN r.ended > 0 AND campaigns.left_over = r.ended AND campaigns.status = 'active' THEN 'done' ELSE campaigns.status END
		FROM rows($1) AS r WHERE campaigns.tenant IN (r.of_tenant) AND campaigns.id = r.of_id`

// tally collects the changes of one large campaign's row in a transaction.
type tally struct {
	tenant, campaign string
	ended            int64 // number of ended chunks
	back             int64 // number of refunded messages
}

var tallyColumns = []db.Column[*tally]{
	{Name: "of_tenant", Text: func(t *tally) string { return t.tenant }},
	{Name: "of_id", Text: func(t *tally) string { return t.campaign }},
	{Name: "ended", Int: func(t *tally) int64 { return t.ended }},
	{Name: "back", Int: func(t *tally) int64 { return t.back }},
}

// tallies has the tallies of one transaction by campaign.
type tallies map[string]*tally

func (t tallies) of(tenant, campaign string) *tally {
	if t[campaign] == nil {
		t[campaign] = &tally{tenant: tenant, campaign: campaign}
	}
	return t[campaign]
}

func (t tallies) deferAll(tx *db.Tx) {
	var changed []*tally
	for _, one := range t {
		if one.ended > 0 || one.back > 0 {
			changed = append(changed, one)
		}
	}
	if len(changed) == 0 {
		return
	}
	slices.SortFunc(changed, func(a, b *tally) int { return strings.Compare(a.campaign, b.campaign) })
	tx.Defer(countCampaigns, int64(len(changed)), db.RowsOf(tallyColumns, changed))
}

// refund returns the transfer that refunds messages. Its leg contains the place of the first message. A message is
// refunded once, because the row guards it, so each leg is unique.
func refund(c Campaign, messages, first int64, now time.Time) ledger.Transfer {
	t := tenant.Tenant{ID: c.Tenant, Mode: c.Mode}
	return ledger.Transfer{Asset: t.Credits(), From: ledger.Used, To: ledger.Credits(c.Tenant), Amount: messages * c.Credits,
		Subject: c.ID, Leg: fmt.Sprintf("refund:%d", first), Kind: "sms_refund", At: now}
}

// postRefunds posts refunds in the ledger. It locks the credits of their tenants.
func postRefunds(tx *db.Tx, book *ledger.Ledger, refunds []ledger.Transfer) error {
	if len(refunds) == 0 {
		return nil
	}
	keys := make([]ledger.Key, len(refunds))
	for i, r := range refunds {
		keys[i] = ledger.Key{Asset: r.Asset, ID: r.To}
	}
	page, err := book.Open(tx, keys...)
	if err != nil {
		return err
	}
	if err := page.Add(refunds...); err != nil {
		return err
	}
	page.Post()
	return nil
}
