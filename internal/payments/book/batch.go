package book

import (
	"fmt"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/history"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/webhook"
)

// A batch is one transaction of a group commit. It reads all its rows in one round trip to the database and decides
// each request in order. All writes are deferred and sent together with the COMMIT.
type batch struct {
	book  *Book
	shard int
	ops   []*Op
	// optimistic skips reading the rows of settlements and uses the copies in memory. The guards of the writes detect
	// an outdated copy.
	optimistic bool
	// split makes postings to a float name the account at the provider.
	split bool

	verdicts []groupcommit.Verdict[Result]
	page     *ledger.Page
	ends     history.Ends
	today    int64
	spending spending
	reserves map[string]*reserve // by batch
	refunds  map[string]*RefundSums
	// rows has the rows that were read or will be inserted, by id.
	rows        map[string]*Payment
	touched     map[string]bool
	byReference map[referenceKey]*Payment
	byKey       map[idempotencyKey]*Payment
	// The deferred writes.
	inserts   []*Payment
	moves     []move
	refunded  map[string]*refundChange // by collection
	changes   []AttemptChange
	reported  []reportedChange
	abandoned []abandonedAttempt
	// contradictions are provider reports that contradict the last one.
	contradictions []contradictionRow
	released       []*Payment // their Idempotency-Keys are cleared
	jobs           []jobs.Job
	opened         []Payment
	finished       []string
	closed         []string
	events         []webhook.Event
	stopped        []string
	rechecks       []Recheck
	tally          history.Tally
	inTx           []func(*db.Tx) error
}

// A reserve is the locked reserve of a batch of payouts.
type reserve struct {
	by      *Drawing // the only drawing of this transaction that uses the reserve
	rest    money.Pesewas
	refusal error
}

func (b *batch) reset() {
	n := len(b.ops)
	*b = batch{book: b.book, shard: b.shard, ops: b.ops, optimistic: b.optimistic,
		verdicts:    make([]groupcommit.Verdict[Result], n),
		ends:        history.Ends{},
		today:       clock.Day(b.book.clock.Now()),
		spending:    spending{},
		reserves:    map[string]*reserve{},
		refunds:     map[string]*RefundSums{},
		refunded:    map[string]*refundChange{},
		rows:        make(map[string]*Payment, n),
		touched:     make(map[string]bool, n),
		byReference: make(map[referenceKey]*Payment, n),
		byKey:       map[idempotencyKey]*Payment{},
		tally:       history.Tally{},
	}
}

func (b *batch) scan(keep func(*Payment)) func(*db.Row) error {
	return func(r *db.Row) error {
		p, err := scanPayment(r)
		if err != nil {
			return err
		}
		keep(&p)
		return nil
	}
}

// job adds the job of a payment that has become open.
func (b *batch) job(p Payment) {
	b.opened = append(b.opened, p)
	b.jobs = append(b.jobs, JobOf(p, b.book.clock.Now()))
}

// postings adds all transfers of a transition to the ledger page. If it returns an error, it adds none.
func (b *batch) postings(transition Transition, p Payment, at time.Time) error {
	transfers := make([]ledger.Transfer, 0, len(transition.Postings))
	for _, posting := range transition.Postings {
		if amount := b.sum(posting.Sum, p); amount > 0 {
			transfers = append(transfers, transfer(p, transition.Event, posting.Leg, b.account(posting.From, p), b.account(posting.To, p), amount, at))
		}
	}
	return b.add(p, transfers...)
}

func (b *batch) add(p Payment, transfers ...ledger.Transfer) error {
	if err := b.page.Add(transfers...); err != nil {
		return fmt.Errorf("book: post %s %s: %w", p.Kind, p.ID, err)
	}
	return nil
}

func transfer(p Payment, e Event, leg string, from, to ledger.AccountID, amount int64, at time.Time) ledger.Transfer {
	return ledger.Transfer{
		Asset: asset(p.Mode), From: from, To: to, Amount: amount,
		Subject: p.ID, Leg: leg, Kind: string(p.Kind) + " " + string(e), At: at,
	}
}

// sum returns the amount that a posting moves.
func (b *batch) sum(s Sum, p Payment) int64 {
	switch s {
	case SumAmount:
		return int64(p.Amount)
	case SumCharges:
		return int64(p.Charges)
	case SumHeld:
		return int64(p.Held())
	case SumNet:
		return int64(p.Net())
	case SumCovered:
		return b.covered(p)
	case SumRest:
		return int64(p.Net()) - b.covered(p)
	}
	panic("book: a posting of " + string(s))
}

// covered returns the part of a reversed collection for which its wallet has enough money.
func (b *batch) covered(p Payment) int64 {
	return max(0, min(int64(p.Net()), b.page.Available(walletOf(p))))
}

// account returns the ledger account of a place.
func (b *batch) account(at Place, p Payment) ledger.AccountID {
	switch at {
	case PlaceWallet:
		return ledger.Wallet(p.Tenant)
	case PlaceOther:
		return ledger.Wallet(p.Details.To)
	case PlaceReserve:
		return ledger.Reserve(p.Tenant)
	case PlaceClearing:
		return ledger.Clearing
	case PlaceFloat:
		return b.float(p)
	case PlaceFees:
		return ledger.Fees
	case PlaceSuspense:
		return ledger.Suspense
	case PlaceReceivable:
		return ledger.Receivable(p.Tenant)
	}
	panic("book: no account is called " + string(at))
}

// float returns the ledger account of our money at the payment's provider.
func (b *batch) float(p Payment) ledger.AccountID { return b.book.floatOf(p, b.split) }

// floatOf returns the ledger account of our money at the payment's provider. Without split it is the provider's
// only account, because nodes of an earlier release do not know its parts.
func (bk *Book) floatOf(p Payment, split bool) ledger.AccountID {
	if !split {
		return ledger.Float(p.Rail)
	}
	return ledger.FloatAt(p.Rail, bk.hooks.Account(p))
}

// contradicts adds a row to the stored list of contradictions.
func (b *batch) contradicts(row Payment, s *Settlement) {
	b.contradictions = append(b.contradictions, contradictionRow{NewID(s.At), Contradiction{
		Payment: row, Event: s.Event, Reported: s.Outcome.State, Code: s.Outcome.Code, Message: s.Outcome.Message, At: s.At}})
}

func errNoTransition(p Payment, e Event) error {
	return fmt.Errorf("book: %s %s cannot be %s", p.Status, p.Kind, e)
}
