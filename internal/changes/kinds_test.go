package changes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/matrix"
	"github.com/makola/makola/internal/treasury"
)

// examples has people and objects for requests of every kind.
type examples struct {
	*fixture
	boss, owner, admin By
	payouts            []book.Payment // open payouts, each for one request
	n                  int            // number of requests so far
}

// next returns the payout for the next request.
func (x *examples) next() string {
	pay := x.payouts[0]
	x.payouts = x.payouts[1:]
	return pay.ID
}

// done fails the test if err is not nil.
func (x *examples) done(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// someone makes another person of the installation.
func (x *examples) someone() string {
	email := fmt.Sprintf("someone%d@example.com", x.n)
	x.join(email, roles.Support)
	return email
}

// someKey makes another key of the account.
func (x *examples) someKey() string {
	key, err := x.Access.Mint(access.NewKey{Tenant: x.tenant.ID, Live: true, Scopes: []access.Scope{access.Payout}, Daily: 100_00})
	x.done(err)
	x.tx(func(tx *db.Tx) error { x.Access.CreateKey(tx, key); return nil })
	return key.Key.ID
}

// review requests the review of another sender ID.
func (x *examples) review(id string, to senderid.Status) (Request, error) {
	s, _, err := x.Senders.Request(x.t.Context(), idempotency.Caller{Tenant: x.tenant.ID}, fmt.Sprintf("ADOM%d", x.n), "receipts")
	x.done(err)
	return x.ReviewSender(x.t.Context(), x.boss, id, s.ID, to, "seen")
}

// example describes how a test makes a request of a kind.
type example struct {
	ask func(x *examples, id string) (Request, error)
	own bool // requested by the account's own people
	// has returns the ledger account that such a request changes, if it moves money, and the amount.
	has func(x *examples) ledger.Key
	by  int64
}

func walletKey(x *examples) ledger.Key  { return x.tenant.Wallet() }
func creditsKey(x *examples) ledger.Key { return x.tenant.SMSCredits() }
func floatKey(x *examples) ledger.Key {
	return ledger.Key{Asset: x.tenant.Money(), ID: ledger.Float("hubtel")}
}
func clearingKey(x *examples) ledger.Key {
	return ledger.Key{Asset: x.tenant.Money(), ID: ledger.Clearing}
}
func reserveKey(x *examples) ledger.Key {
	return ledger.Key{Asset: x.tenant.Money(), ID: ledger.Reserve(x.tenant.ID)}
}
func suspenseKey(x *examples) ledger.Key {
	return ledger.Key{Asset: x.tenant.Money(), ID: ledger.Suspense}
}

// moneyExamples returns examples of the kinds that move money or credits.
func moneyExamples() map[string]example {
	return map[string]example{
		KindFund: {has: walletKey, by: 100, ask: func(x *examples, id string) (Request, error) {
			return x.Fund(x.t.Context(), x.boss, id, x.tenant.ID, 100, "paid by bank")
		}},
		KindAdjust: {has: walletKey, by: -7, ask: func(x *examples, id string) (Request, error) {
			return x.Adjust(x.t.Context(), x.boss, id, x.tenant.ID, -7, "booked twice")
		}},
		KindAddFloat: {has: floatKey, by: -500, ask: func(x *examples, id string) (Request, error) {
			return x.AddFloat(x.t.Context(), x.boss, id, "", treasury.Float{Provider: "hubtel", Mode: tenant.Live}, 500, "paid in")
		}},
		KindSellCredits: {has: creditsKey, by: 11, ask: func(x *examples, id string) (Request, error) {
			return x.SellCredits(x.t.Context(), x.boss, id, "", x.tenant.ID, 11, 40, "paid by bank")
		}},
		KindRefundCredits: {has: creditsKey, by: -3, ask: func(x *examples, id string) (Request, error) {
			x.tx(func(tx *db.Tx) error { _, err := x.Messaging.SellCredits(tx, x.tenant.ID, newID(), 3); return err })
			return x.RefundCredits(x.t.Context(), x.boss, id, "", x.tenant.ID, 3, 10, "returned")
		}},
		KindResolve: {has: walletKey, by: int64(10*money.Cedi) + 10, ask: func(x *examples, id string) (Request, error) {
			return x.Resolve(x.t.Context(), x.boss, id, x.next(), Statement{}, "not in the statement")
		}},
		KindTransfer: {has: walletKey, by: -4, ask: func(x *examples, id string) (Request, error) {
			return x.Transfer(x.t.Context(), x.boss, id, "", x.tenant.ID, x.shop(fmt.Sprintf("Other shop %d", x.n)).ID, 4, "wrong account")
		}},
		KindRecover: {has: walletKey, by: -9, ask: func(x *examples, id string) (Request, error) {
			x.owes(9)
			return x.Recover(x.t.Context(), x.boss, id, x.tenant.ID, "as agreed")
		}},
		KindSendPayout: {own: true, has: clearingKey, by: 0, ask: func(x *examples, _ string) (Request, error) {
			return x.heldPayout(x.someKey())
		}},
		KindRefund: {own: true, has: clearingKey, by: 0, ask: func(x *examples, id string) (Request, error) {
			return x.Do(x.t.Context(), x.owner, KindRefund, id, Values{FieldTenant: x.tenant.ID, "collection": x.next()}, "goods returned")
		}},
		KindOperatorRefund: {has: clearingKey, by: int64(10 * money.Cedi), ask: func(x *examples, id string) (Request, error) {
			return refundFor(x.t.Context(), x.Changes, x.boss, id, x.payment(x.next()), 0, "", "goods returned")
		}},
		KindSendBatch: {own: true, has: reserveKey, by: int64(10*money.Cedi) + 10, ask: func(x *examples, id string) (Request, error) {
			b := x.draft(fmt.Sprintf("Salaries %d", x.n), fmt.Sprintf("020%07d,TELECEL,10", x.n))
			return x.Do(x.t.Context(), x.owner, KindSendBatch, id, Values{FieldTenant: x.tenant.ID, "batch": b.ID}, "salaries")
		}},
		KindSendTexts: {own: true, has: creditsKey, by: -2, ask: func(x *examples, id string) (Request, error) {
			d := x.texts(fmt.Sprintf("024%07d\n020%07d", x.n, x.n))
			return x.Do(x.t.Context(), x.owner, KindSendTexts, id, Values{FieldTenant: x.tenant.ID, "draft": d.ID, "digest": d.Digest, "credits": "2"}, "")
		}},
		KindContradict: {has: suspenseKey, by: int64(10 * money.Cedi), ask: func(x *examples, id string) (Request, error) {
			pay := x.next()
			_, err := x.Payments.Resolve(x.t.Context(), pay, true, "statement", "ama")
			x.done(err)
			return x.Contradict(x.t.Context(), x.boss, id, pay, false, "the wrong line")
		}},
		KindDecide: {has: walletKey, by: int64(10 * money.Cedi), ask: func(x *examples, id string) (Request, error) {
			pay := x.next()
			_, err := x.Payments.Resolve(x.t.Context(), pay, true, "statement", "ama")
			x.done(err)
			_, err = x.Payments.Contradict(x.t.Context(), pay, false, "the wrong line", "ama")
			x.done(err)
			return x.Decide(x.t.Context(), x.boss, id, pay, Customer, "as agreed")
		}},
	}
}

// accountExamples returns examples of the kinds about accounts, keys and sender IDs.
func accountExamples() map[string]example {
	return map[string]example{
		KindCreateTenant: {ask: func(x *examples, id string) (Request, error) {
			return x.CreateTenant(x.t.Context(), x.boss, id, "", fmt.Sprintf("Shop %d", x.n), "live", nil, "contract 12")
		}},
		KindTenant: {ask: func(x *examples, id string) (Request, error) {
			return x.SetTenant(x.t.Context(), x.boss, id, x.tenant.ID, map[string]string{"name": fmt.Sprintf("Adom %d", x.n)}, "renamed")
		}},
		KindBlock: {ask: func(x *examples, id string) (Request, error) {
			return x.SetTenant(x.t.Context(), x.boss, id, x.shop(fmt.Sprintf("Shop %d", x.n)).ID, map[string]string{Blocked: "on"}, "complaints")
		}},
		KindAddresses: {ask: func(x *examples, id string) (Request, error) {
			return x.SetTenant(x.t.Context(), x.boss, id, x.tenant.ID, map[string]string{PayoutIPs: fmt.Sprintf("192.0.2.%d", x.n)}, "a new server")
		}},
		KindSettings: {own: true, ask: func(x *examples, id string) (Request, error) {
			return x.SetTenant(x.t.Context(), x.owner, id, x.tenant.ID, map[string]string{"fee_bearer": []string{"merchant", "customer"}[x.n%2]}, "as agreed")
		}},
		KindLowBalance: {own: true, ask: func(x *examples, id string) (Request, error) {
			return x.Do(x.t.Context(), x.owner, KindLowBalance, id, Values{FieldTenant: x.tenant.ID, "amount": fmt.Sprint(x.n + 1)}, "payday")
		}},
		KindCreateKey: {ask: func(x *examples, id string) (Request, error) {
			return x.CreateKey(x.t.Context(), x.boss, id, x.tenant.ID, KeyOrder{Scopes: []access.Scope{access.Payout}}, "for the shop")
		}},
		KindRotateKey: {ask: func(x *examples, id string) (Request, error) {
			return x.RotateKey(x.t.Context(), x.boss, id, x.tenant.ID, x.someKey(), time.Hour, "every year")
		}},
		KindRevokeKey: {ask: func(x *examples, id string) (Request, error) {
			return x.RevokeKey(x.t.Context(), x.boss, id, x.tenant.ID, x.someKey(), "leaked")
		}},
		KindSetKey: {ask: func(x *examples, id string) (Request, error) {
			return x.SetKey(x.t.Context(), x.boss, id, x.tenant.ID, x.someKey(), 500_00, "more")
		}},
		KindRotateSecret: {ask: func(x *examples, id string) (Request, error) {
			return x.RotateSecret(x.t.Context(), x.boss, id, x.tenant.ID, "a laptop was lost")
		}},
		KindApproveSender: {ask: func(x *examples, id string) (Request, error) { return x.review(id, senderid.Approved) }},
		KindCreateSender: {ask: func(x *examples, id string) (Request, error) {
			return x.Do(x.t.Context(), x.boss, KindCreateSender, id, Values{FieldTenant: x.tenant.ID, "id": newID(), "name": fmt.Sprintf("OVER%d", x.n)}, "their old provider")
		}},
		KindRejectSender: {ask: func(x *examples, id string) (Request, error) { return x.review(id, senderid.Rejected) }},
		KindSenderClass: {ask: func(x *examples, id string) (Request, error) {
			s := senderid.Sender{Tenant: x.tenant.ID, ID: newID(), Name: fmt.Sprintf("PROMO%d", x.n)}
			if err := x.db.Write(x.t.Context(), func(tx *db.Tx) error { _, err := x.Senders.Create(tx, s, "", "a tester"); return err }); err != nil {
				return Request{}, err
			}
			return x.Do(x.t.Context(), x.boss, KindSenderClass, id, Values{"sender": s.ID, "class": "promotional"}, "sends offers")
		}},
		KindAssignNumber: {ask: func(x *examples, id string) (Request, error) {
			return x.Do(x.t.Context(), x.boss, KindAssignNumber, id, Values{FieldTenant: x.tenant.ID, "number": "1400", "keyword": fmt.Sprintf("shop%d", x.n)}, "a campaign")
		}},
		KindReleaseNumber: {ask: func(x *examples, id string) (Request, error) {
			n := inbox.Number{Tenant: x.tenant.ID, Number: "1401", Keyword: fmt.Sprintf("shop%d", x.n), Answers: true}
			if err := x.db.Write(x.t.Context(), func(tx *db.Tx) error { _, err := x.Inbox.Assign(tx, n); return err }); err != nil {
				return Request{}, err
			}
			return x.Do(x.t.Context(), x.boss, KindReleaseNumber, id, Values{FieldTenant: x.tenant.ID, "number": n.Number, "keyword": n.Keyword}, "the campaign is over")
		}},
	}
}

// peopleExamples returns examples of the kinds about people and the policy.
func peopleExamples() map[string]example {
	return map[string]example{
		KindPolicy: {ask: func(x *examples, id string) (Request, error) {
			return x.SetPolicy(x.t.Context(), x.boss, id, Line{Kind: KindFund, From: money.Pesewas(1_000_000 + x.n), Approvers: 1}, "as agreed")
		}},
		KindInvite: {ask: func(x *examples, id string) (Request, error) {
			return x.Invite(x.t.Context(), x.boss, id, fmt.Sprintf("new%d@example.com", x.n), "Somebody", identity.Membership{Role: roles.Support}, "helps out")
		}},
		KindRole: {ask: func(x *examples, id string) (Request, error) {
			return x.SetRole(x.t.Context(), x.boss, id, x.someone(), identity.Membership{Role: roles.Auditor}, roles.Support, "moves on")
		}},
		KindDisable: {ask: func(x *examples, id string) (Request, error) {
			return x.Disable(x.t.Context(), x.boss, id, x.someone(), "has left")
		}},
		KindEnable: {ask: func(x *examples, id string) (Request, error) {
			email := x.someone()
			x.tx(func(tx *db.Tx) error { _, err := x.people.Disable(tx, email); return err })
			return x.Enable(x.t.Context(), x.boss, id, email, "is back")
		}},
		KindReset: {ask: func(x *examples, id string) (Request, error) {
			return x.Reset(x.t.Context(), x.boss, id, x.someone(), "lost the phone")
		}},
	}
}

// unsent is an operator's connection that accepts nothing.
type unsent struct{}

func (unsent) Whole(string, msisdn.MSISDN) bool { return false }

func (unsent) Ready(msisdn.Network) error { return provider.ErrElsewhere }

func (unsent) Submit(_ context.Context, _ provider.Segment, done func(provider.Outcome)) {
	done(provider.Outcome{Class: provider.NotSent})
}

// sender returns an approved sender ID of an account with enough credits for a text.
func (x *examples) sender() senderid.Sender {
	caller := idempotency.Caller{Tenant: x.tenant.ID}
	s, _, err := x.Senders.Request(x.t.Context(), caller, fmt.Sprintf("SHOP%d", x.n), "our shop")
	x.done(err)
	x.tx(func(tx *db.Tx) error {
		if _, err := x.Messaging.SellCredits(tx, x.tenant.ID, newID(), 5); err != nil {
			return err
		}
		_, err := x.Senders.Review(tx, x.tenant.ID, s.ID, senderid.Approved, "seen", "ama")
		return err
	})
	return s
}

// texts returns the draft of a campaign to the given numbers.
func (x *examples) texts(numbers string) compose.Draft {
	text := compose.Text{SenderID: x.sender().ID, Message: "Hello"}
	d, err := x.Compose.Create(x.t.Context(), x.tenant.ID, newID(), "ama", text, compose.Source{Numbers: numbers})
	x.done(err)
	return d
}

// campaign returns a campaign that waits to be sent.
func (x *examples) campaign() string {
	caller, s := idempotency.Caller{Tenant: x.tenant.ID}, x.sender()
	c, _, err := x.Messaging.Send(x.t.Context(), caller, messaging.Send{SenderID: s.ID, Message: "hello", Recipients: []string{"0241000001"}})
	x.done(err)
	return c.ID
}

// owes makes the account owe an amount, as after a reversal that its wallet does not cover.
func (f *fixture) owes(amount money.Pesewas) {
	f.t.Helper()
	m := treasury.Movement{Asset: f.tenant.Money(), From: ledger.Receivable(f.tenant.ID), To: ledger.Funding, Amount: amount, Kind: "reversed"}
	if err := f.Treasury.Move(f.t.Context(), m, "a reversal", "ama"); err != nil {
		f.t.Fatal(err)
	}
}

// deadLetter makes a job that was given up.
func (f *fixture) deadLetter() string {
	f.t.Helper()
	id := newID()
	f.tx(func(tx *db.Tx) error {
		tx.Defer(`INSERT INTO jobs (id, owner, kind, subject, payload, run_at, tries, adopted, last_error, created_at, dead_at) VALUES ($1, 'dead', 'webhook', 'shop', '', 1, 9, 0, 'gone', 1, 2)`, 1, id)
		return nil
	})
	return id
}

// bank returns the sort code of a bank in the catalogue.
func (f *fixture) bank() string {
	f.t.Helper()
	if err := f.routes.Seed(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	all, err := f.routes.Catalogue(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return all.Banks[0].Code
}

// closedRange returns a range of numbers that is closed to one-time passwords of the account.
func (x *examples) closedRange() string {
	x.t.Helper()
	prefix := fmt.Sprintf("2332%04d", x.n)
	x.tx(func(tx *db.Tx) error {
		tx.Defer(`INSERT INTO otp_taps (tenant, prefix, batch, began, sent, verified, full_batch, full_at, full_sent, full_verified, closed_at, closed_until)
			VALUES ($1, $2, 1, $3, 0, 0, 1, $3, 50, 1, $3, $4)`, 1, x.tenant.ID, prefix, x.clock.Now(), x.clock.Now().Add(24*time.Hour))
		return nil
	})
	return prefix
}

// operationExamples has the examples of kinds about prices, providers and running work.
func operationExamples() map[string]example {
	return map[string]example{
		KindFees: {ask: func(x *examples, id string) (Request, error) {
			return x.SetFees(x.t.Context(), x.boss, id, x.tenant.ID, []tenant.Rule{{Product: tenant.Payout, Flat: money.Pesewas(x.n)}}, time.Time{}, "contract 12")
		}},
		KindPause: {ask: func(x *examples, id string) (Request, error) {
			return x.Pause(x.t.Context(), x.boss, id, "live", "hubtel", route.DisburseWallet, "their maintenance")
		}},
		KindResume: {ask: func(x *examples, id string) (Request, error) {
			return x.Resume(x.t.Context(), x.boss, id, "live", "hubtel", route.Any, "it is over")
		}},
		KindRoute: {ask: func(x *examples, id string) (Request, error) {
			return x.SetRoute(x.t.Context(), x.boss, id, route.Route{Tenant: x.tenant.ID, Mode: "live", Operation: route.DisburseWallet, Channel: "MTN", Providers: []string{"hubtel"}[:x.n%2]}, "their fees")
		}},
		KindCatalogue: {ask: func(x *examples, id string) (Request, error) {
			return changeCatalogue(x.t.Context(), x.Changes, x.boss, id, route.CatalogueChange{Kind: route.BankEntry, Key: x.bank(), Edit: route.Edit{Name: fmt.Sprintf("Bank %d", x.n)}}, "it was renamed")
		}},
		KindBankCode: {ask: func(x *examples, id string) (Request, error) {
			return changeCatalogue(x.t.Context(), x.Changes, x.boss, id, route.CatalogueChange{Kind: route.BankCodeEntry, Key: x.bank(), Provider: "hubtel", Value: fmt.Sprintf("3003%02d", x.n)}, "their list")
		}},
		KindPrefix: {ask: func(x *examples, id string) (Request, error) {
			return changeCatalogue(x.t.Context(), x.Changes, x.boss, id, route.CatalogueChange{Kind: route.PrefixEntry, Key: "0599", Value: []string{"MTN", "TELECEL"}[x.n%2]}, "a new range")
		}},
		KindReopen: {ask: func(x *examples, id string) (Request, error) {
			return x.Do(x.t.Context(), x.boss, KindReopen, id, Values{FieldTenant: x.tenant.ID, "range": x.closedRange()}, "it was a test of theirs")
		}},
		KindRerun: {ask: func(x *examples, id string) (Request, error) {
			return x.Rerun(x.t.Context(), x.boss, id, x.deadLetter(), "the receiver is back")
		}},
		KindStopCampaign: {ask: func(x *examples, id string) (Request, error) {
			return x.StopCampaign(x.t.Context(), x.boss, id, x.campaign(), "a wrong price in the text")
		}},
	}
}

func allExamples() map[string]example {
	all := map[string]example{}
	for _, some := range []map[string]example{moneyExamples(), bankExamples(), closingExamples(), exceptionExamples(), accountExamples(), peopleExamples(), operationExamples()} {
		maps.Copy(all, some)
	}
	return all
}

func TestKinds_haveAnExample(t *testing.T) {
	want, got := slices.Sorted(maps.Keys(New(Deps{}).kinds)), slices.Sorted(maps.Keys(allExamples()))
	if !slices.Equal(want, got) {
		t.Fatalf("the kinds are %v, and there are examples of %v", want, got)
	}
}

// A fault at any boundary of the database leaves an approved request of every kind either applied once or waiting, never half
// applied. In the gate one kind of each sort is tested at every boundary, and the other kinds only at their COMMITs.
func TestKinds_interruptedApplyOnce(t *testing.T) {
	for name, e := range allExamples() {
		t.Run(name, func(t *testing.T) {
			dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) {
				x := &examples{fixture: install(t, d, faults, true)}
				x.breakOff(name, e)
			})
		})
	}
}

// mostBoundaries is larger than the number of boundaries of any request.
const mostBoundaries = 40

func (x *examples) breakOff(name string, e example) {
	t := x.t
	x.boss = x.join("boss@example.com", roles.Owner)
	x.owner, x.admin = x.member("owner@adom.example", x.tenant.ID, roles.Owner), x.member("admin@adom.example", x.tenant.ID, roles.Admin)
	whole := matrix.Whole() || slices.Contains([]string{KindFund, KindDecide, KindSendPayout, KindRoute}, name)
	most := 8 // requests
	if whole {
		most = mostBoundaries
	}
	line, approver := Line{Kind: name, Approvers: 1}, x.first
	if e.own {
		line.Tenant, line.Own, approver = x.tenant.ID, true, x.admin
	}
	x.line(line)
	if slices.Contains(ofUnknown, name) {
		x.rail.pending = true
		x.payouts = x.unknown(most)
	} else if name == KindRefund || name == KindOperatorRefund {
		x.rail.pending = true
		x.payouts = x.collected(most)
	} else if name == KindSendPayout || name == KindSendBatch {
		x.paying(2 * most)
	} else {
		x.done(x.Treasury.Fund(t.Context(), x.tenant.ID, 100*money.Cedi, "before the test", "ama"))
	}
	x.clock.Advance(time.Second)
	// A statement fails in one of the ways, in rotation. A COMMIT fails in each way.
	ways, commits := []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict}, 0
	for n := range most {
		hit, commit := x.brokenOff(name, e, approver, n, ways[n%len(ways)], !whole)
		if !hit {
			break
		}
		if commit {
			commits++
			x.brokenOff(name, e, approver, n, ways[(n+1)%len(ways)], !whole)
			x.brokenOff(name, e, approver, n, ways[(n+2)%len(ways)], !whole)
		}
	}
	if x.n < 4 || x.n >= most || commits == 0 {
		t.Fatalf("%d acts were broken off, at %d commits", x.n, commits)
	}
	x.sound()
}

// brokenOff makes a request and interrupts its approval at a transaction boundary, or only at a COMMIT. It reports whether there
// was such a boundary, and whether it was a COMMIT.
func (x *examples) brokenOff(name string, e example, approver By, boundary int, kind db.Fault, commits bool) (hit, commit bool) {
	t := x.t
	t.Helper()
	if x.n++; x.n%20 == 0 { // a person may make a limited number of requests an hour
		x.tx(func(tx *db.Tx) error { _, err := tx.Exec("DELETE FROM person_uses"); return err })
	}
	x.clock.Advance(tenant.Freshness)
	request, err := e.ask(x, newID())
	if err != nil || request.Kind != name || request.State != Waiting || request.Needs != 1 {
		t.Fatalf("%d: %+v, %v", x.n, request, err)
	}
	has := func() (n int64) {
		if e.has != nil {
			n, err = x.ledger.Balance(t.Context(), e.has(x))
			x.done(err)
		}
		return n
	}
	seen, err := x.Review(t.Context(), approver.Place, request.ID)
	x.done(err)
	before, left := has(), boundary
	x.faults.Decide(func(b db.Boundary) db.Fault {
		if commits && b != db.BoundaryCommit {
			return db.FaultNone
		}
		if left--; left == -1 {
			hit, commit = true, b == db.BoundaryCommit
			return kind
		}
		return db.FaultNone
	})
	_, err = x.Changes.Approve(t.Context(), approver, request.ID, seen.Shown)
	x.faults.Decide(nil)
	now, getErr := x.Store.Get(t.Context(), request.ID)
	x.done(getErr)
	if now.State == Waiting {
		if err == nil || has() != before {
			t.Fatalf("%d: it waits, and %d became %d: %v", x.n, before, has(), err)
		}
		if _, err := x.Approve(t.Context(), approver, request.ID, request.Digest); err != nil {
			t.Fatalf("%d: %v", x.n, err)
		}
	}
	if now = x.is(request.ID, Done); has() != before+e.by {
		t.Fatalf("%d: %d became %d, want %d more", x.n, before, has(), e.by)
	}
	log, err := x.log.List(t.Context(), audit.Filter{Action: name, Subject: request.ID})
	x.done(err)
	if len(log) != 1 {
		t.Fatalf("%d: %d entries say that it was done", x.n, len(log))
	}
	return hit, commit
}
