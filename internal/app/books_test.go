package app

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/tenant"
)

// What makola ledger check would find, a server finds by itself: in the ledger, in the payments, in the
// messages.
func TestTheServerChecksEveryBook(t *testing.T) {
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			a := newStage(t, engine, nil).app
			found := func() map[string]int64 {
				t.Helper()
				if err := a.checkBooks(t.Context()); err != nil {
					t.Fatal(err)
				}
				faults := map[string]int64{}
				for name, b := range a.meters.books {
					faults[name] = b.faults.Load()
					if b.checked.Load() == 0 {
						t.Errorf("%s was never checked", name)
					}
					b.restsUntil = time.Time{}
				}
				return faults
			}
			if got := found(); got[bookLedger]+got[bookPayments]+got[bookMessages] != 0 {
				t.Fatalf("a new installation has faults: %v", got)
			}
			write := func(fn func(tx *db.Tx) error) {
				t.Helper()
				if err := a.db.Write(t.Context(), fn); err != nil {
					t.Fatal(err)
				}
			}
			demo := tenant.Tenant{ID: demoTenant, Mode: tenant.Test}
			write(func(tx *db.Tx) error { // a charge for a campaign that is not there
				page, err := a.ledger.Open(tx, demo.SMSCredits())
				if err == nil {
					err = page.Add(ledger.Transfer{Asset: demo.Credits(), From: demo.SMSCredits().ID, To: ledger.Used, Amount: 1,
						Subject: "stray", Leg: "charge", Kind: "sms_charge", At: a.clock.Now()})
					page.Post()
				}
				return err
			})
			if got := found(); got[bookLedger] != 0 || got[bookPayments] != 0 || got[bookMessages] != 1 {
				t.Errorf("a stray charge: %v", got)
			}
			write(func(tx *db.Tx) error { // a day of payments without a payment
				_, err := tx.Exec(`INSERT INTO payment_days (tenant, kind, day, first) VALUES ($1, 'payout', 1, 1)`, demoTenant)
				return err
			})
			if got := found(); got[bookLedger] != 0 || got[bookPayments] != 1 {
				t.Errorf("an empty day: %v", got)
			}
			write(func(tx *db.Tx) error {
				_, err := tx.Exec(`UPDATE wallets SET balance = balance + 1 WHERE id = $1`, demo.Wallet().ID)
				return err
			})
			if got := found(); got[bookLedger] == 0 {
				t.Errorf("a wallet with too much: %v", got)
			}
		})
	}
}
