package app

import (
	"errors"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// A server itself finds everything that makola ledger check and makola audit verify would find in the ledger, the payments, the
// messages and the audit log.
func TestChecks_findEveryFault(t *testing.T) {
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, engine, nil)
			s.settle(t) // the check at the start has ended, and the next is due at a later time of this clock
			a := s.app
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
					b.restsUntil = 0
				}
				return faults
			}
			if got := found(); got[bookLedger]+got[bookPayments]+got[bookMessages]+got[bookAudit] != 0 {
				t.Fatalf("a new installation has faults: %v", got)
			}
			write := func(fn func(tx *db.Tx) error) {
				t.Helper()
				if err := a.db.Write(t.Context(), fn); err != nil {
					t.Fatal(err)
				}
			}
			demo := tenant.Tenant{ID: demoTenant, Mode: tenant.Test}
			write(func(tx *db.Tx) error { // a charge for a campaign that does not exist
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
			if err := a.books.Request(t.Context()); err != nil {
				t.Fatal(err)
			}
			clocktest.Await(t, "a full check ends with a fault", func() bool {
				if err := a.books.Work(t.Context()); err != nil {
					t.Fatal(err)
				}
				state, err := a.books.State(t.Context())
				return err == nil && state.Stage == "" && state.Faults == 1
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
			for range 2 {
				write(func(tx *db.Tx) error { return a.audit.Write(tx, audit.Entry{Actor: "ama", Action: "tenant.set"}) })
			}
			if _, err := a.audit.Link(t.Context()); err != nil && !errors.Is(err, db.ErrUnique) { // the other node may have linked the entries first
				t.Fatal(err)
			}
			clocktest.Await(t, "the entries are linked", func() bool { h, err := a.audit.Head(t.Context()); return err == nil && h.Number >= 2 })
			if got := found(); got[bookAudit] != 0 {
				t.Errorf("a chain as it was linked: %v", got)
			}
			a.auditHead, a.auditSince = audit.Head{}, audit.Head{}
			write(func(tx *db.Tx) error { // the end of the log is cut off, which the sealed head shows
				tx.Defer("DELETE FROM audit_log WHERE id = (SELECT entry FROM audit_chain WHERE entry <> '' ORDER BY number DESC LIMIT 1)", 1)
				tx.Defer("DELETE FROM audit_chain WHERE number = (SELECT max(number) FROM audit_chain WHERE entry <> '')", 1)
				return nil
			})
			if got := found(); got[bookAudit] != 1 {
				t.Errorf("a chain without its end: %v", got)
			}
			write(func(tx *db.Tx) error {
				tx.Defer("UPDATE audit_log SET actor = 'kofi' WHERE id = (SELECT entry FROM audit_chain WHERE entry <> '' ORDER BY number LIMIT 1)", 1)
				return nil
			})
			for _, later := range []string{"at once", "after an hour", "after a restart"} {
				if got := found(); got[bookAudit] != 2 {
					t.Errorf("%s, a changed entry and the end: %v", later, got)
				}
				switch later {
				case "at once":
					a.clock.Advance(time.Hour)
					s.settle(t) // the server itself checks at the new time
				case "after an hour":
					a.auditHead, a.auditSince = audit.Head{}, audit.Head{}
				}
			}
		})
	}
}
