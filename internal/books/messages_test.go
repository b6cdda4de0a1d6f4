package books

import (
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/test/dbtest"
)

// campaign stores a campaign of one accepted message, with its charge.
func (f *fixture) campaign(id string) string {
	f.t.Helper()
	credits := f.tenant.SMSCredits()
	err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
		page, err := f.loader.Ledger.Open(tx, credits)
		if err == nil {
			err = page.Add(ledger.Transfer{Asset: credits.Asset, From: ledger.Funding, To: credits.ID, Amount: 1, Subject: "sale " + id, Leg: "sale", Kind: "sms_sale", At: f.loader.Clock.Now()},
				ledger.Transfer{Asset: credits.Asset, From: credits.ID, To: ledger.Used, Amount: 1, Subject: id, Leg: "charge", Kind: "sms_charge", At: f.loader.Clock.Now()})
			page.Post()
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.exec(`INSERT INTO campaigns (tenant, id, mode, kind, sender_id, sender, message, encoding, segments, credits, recipients, invalid, excluded, status, access_key,
	idempotency_key, idempotency_hash, created_at, numbers, turn, marked_at, left_over, refunded)
	VALUES ($1, $2, 'test', 'campaign', '', 'Adom', 'hello', 'gsm7', 1, 1, 1, 0, 0, 'active', '', '', '', 1, '233240000001', 1, 0, 0, 0)`, f.tenant.ID, id)
	f.exec(`INSERT INTO messages (tenant, campaign, no, recipient, status, accepted, open, submitted_at, delivered_at, error, upstream_id)
	VALUES ($1, $2, 0, '233240000001', 'delivered', 1, 0, 1, 1, '', 'up')`, f.tenant.ID, id)
	return id
}

// messageFaults are wrong rows of a campaign.
var messageFaults = map[string]fault{
	"a charge":           {`UPDATE campaigns SET credits = 2 WHERE id = $1`, `UPDATE campaigns SET credits = 1 WHERE id = $1`},
	"a refund":           {`UPDATE messages SET status = 'failed', accepted = 0 WHERE campaign = $1`, `UPDATE messages SET status = 'delivered', accepted = 1 WHERE campaign = $1`},
	"a receipt":          {`UPDATE messages SET open = 1 WHERE campaign = $1`, `UPDATE messages SET open = 0 WHERE campaign = $1`},
	"a message":          {`UPDATE messages SET campaign = 'x' || $1 WHERE campaign = $1`, `UPDATE messages SET campaign = $1 WHERE campaign = 'x' || $1`},
	"a campaign removed": {`UPDATE campaigns SET id = '00' || $1 WHERE id = $1`, `UPDATE campaigns SET id = $1 WHERE id = '00' || $1`},
}

// The next recent check finds a wrong row of a new campaign. Only a full check finds a wrong row of an old campaign.
func TestChecks_findFaultsOfMessages(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		old := f.campaign("00000000-0000-7000-8000-000000000001")
		f.sound("with a campaign")
		f.loader.Clock.Advance(3 * ledger.Overlap)
		f.sound("later")
		for name, fault := range messageFaults {
			f.exec(fault.plant, old)
			if f.recent().Count() > 0 {
				t.Errorf("%s: the recent check reads old campaigns", name)
			}
			f.full()
			if got := f.recent(); len(got[Messages].Problems) == 0 {
				t.Errorf("%s: not found by the full check: %v", name, got)
			}
			f.exec(fault.mend, old)
			f.full()
			f.sound(name + " mended")
		}
		recent := f.campaign(uuid.Must(uuid.NewV7()).String())
		for name, fault := range messageFaults {
			f.exec(fault.plant, recent)
			if got := f.recent(); len(got[Messages].Problems) == 0 {
				t.Errorf("%s: not found: %v", name, got)
			}
			f.exec(fault.mend, recent)
			f.sound(name + " mended")
		}
	})
}

// The recent check reads old waiting campaigns in sets of 10,000 recipients, and reads all of them.
func TestRecent_waitingCampaignsInSets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		var ids []string
		for _, no := range []string{"1", "2", "3"} {
			ids = append(ids, f.campaign("00000000-0000-7000-8000-00000000000"+no))
		}
		f.sound("with campaigns")
		f.loader.Clock.Advance(3 * ledger.Overlap)
		f.sound("later")
		for _, id := range ids { // each campaign lacks most of its charge
			f.exec(`UPDATE campaigns SET recipients = 10000, numbers = '', left_over = 1 WHERE id = $1`, id)
			f.exec(`INSERT INTO chunks (tenant, campaign, no, state, turn, begun, marked_at, size, recipients, created_at) VALUES ($1, $2, 1, 'ready', 1, 0, 0, 9999, '', 1)`, f.tenant.ID, id)
		}
		var found ledger.Findings
		err := d.ReadSnapshot(t.Context(), func(tx *db.Tx) error {
			last, whole, err := delivery.CheckWaiting(tx, "", &found)
			if last != ids[0] || whole {
				t.Errorf("the first set ends at %q, whole %v", last, whole)
			}
			return err
		})
		if err != nil || len(found.Problems) != 1 {
			t.Errorf("the first set: %v, %v", found.Problems, err)
		}
		if got := f.recent()[Messages].Problems; len(got) != 3 {
			t.Errorf("the recent check found %v", got)
		}
	})
}
