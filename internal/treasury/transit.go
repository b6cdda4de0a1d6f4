package treasury

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// TransitState is the state of our own money between two accounts. It is stored.
type TransitState string

// The states. Every state except Sent is final.
const (
	Sent     TransitState = "sent"
	Arrived  TransitState = "arrived"
	Returned TransitState = "returned" // returned to its origin
)

// Transit is our own money on its way between a bank account and a float.
type Transit struct {
	ID             string // id of the change request that began the transfer
	Asset          ledger.Asset
	Source, Target ledger.AccountID
	Amount         money.Pesewas
	Fee            money.Pesewas // charged on the way, included in Amount
	State          TransitState
	Reference      string
	SentAt         time.Time
	EndedAt        time.Time
}

const (
	transitColumns = `id, asset, source, target, amount, fee, state, reference, sent_at, ended_at`
	selectOpen     = `SELECT ` + transitColumns + ` FROM own_transfers WHERE state = 'sent' ORDER BY sent_at, id LIMIT $1`
	selectTransit  = `SELECT ` + transitColumns + ` FROM own_transfers WHERE id = $1`
	lockTransit    = selectTransit + ` FOR UPDATE`
	insertTransit  = `INSERT INTO own_transfers (` + transitColumns + `) VALUES ($1, $2, $3, $4, $5, 0, 'sent', $6, $7, 0)`
	endTransit     = `UPDATE own_transfers SET state = $2, fee = $3, ended_at = $4 WHERE id = $1 AND state = 'sent'`
	countOpenOf    = `SELECT count(*) FROM own_transfers WHERE state = 'sent' AND asset = $1 AND (source = $2 OR target = $2)`
	sumOpen        = `SELECT asset, CAST(sum(amount) AS INTEGER) FROM own_transfers WHERE state = 'sent' GROUP BY asset`
	selectTransits = `SELECT ` + transitColumns + ` FROM own_transfers WHERE ($1 = '' OR id < $1) ORDER BY id DESC LIMIT $2`
)

func (m *Transit) scan(r *db.Row) error {
	return r.Scan(&m.ID, &m.Asset, &m.Source, &m.Target, &m.Amount, &m.Fee, &m.State, &m.Reference, &m.SentAt, &m.EndedAt)
}

// MostOpen is the largest number of transfers in transit.
const MostOpen = 500

// OnTheWay lists the transfers in transit, oldest first.
func (t *Treasury) OnTheWay(ctx context.Context) ([]Transit, error) {
	return t.transits(ctx, selectOpen, MostOpen)
}

// Transits lists the transfers before an id, newest first. An empty id starts with the newest.
func (t *Treasury) Transits(ctx context.Context, before string, limit int) ([]Transit, error) {
	return t.transits(ctx, selectTransits, before, limit)
}

func (t *Treasury) transits(ctx context.Context, sql string, args ...any) ([]Transit, error) {
	return db.ReadAll(ctx, t.db, sql, args, (*Transit).scan)
}

// Transit finds a transfer of our own money.
func (t *Treasury) Transit(ctx context.Context, id string) (Transit, error) {
	return db.Get(ctx, t.db, func(tx *db.Tx) (Transit, error) { return transitIn(tx, selectTransit, id) })
}

func transitIn(tx *db.Tx, sql, id string) (m Transit, err error) {
	found := false
	err = tx.Query(sql, []any{id}, func(r *db.Row) error { found = true; return m.scan(r) })
	if err == nil && !found {
		err = problem.New(problem.NotFound, "transfer_unknown", "There is no transfer "+id+" between bank accounts and floats")
	}
	return m, err
}

// Send books that money left a bank account or a float for the other. The money is in transit until it arrives. The
// account of money that we hold has a negative balance, so the ledger's transfer has the opposite direction. beside
// runs in the same transaction.
func (t *Treasury) Send(ctx context.Context, m Transit, reason, actor string, also ...func(*db.Tx) error) error {
	move := Movement{Asset: m.Asset, From: ledger.Transit, To: m.Source, Amount: m.Amount, Kind: "own transfer sent", Subject: m.ID, Leg: "sent"}
	store := func(tx *db.Tx) error {
		for _, id := range []ledger.AccountID{m.Source, m.Target} {
			if name, is := strings.CutPrefix(string(id), string(ledger.Bank(""))); is {
				b, err := bankIn(tx, lockBank, name)
				if err == nil && (b.Closed || b.Key().Asset != m.Asset) {
					err = problem.Field("bank", "must be an open bank account of the same mode")
				}
				if err != nil {
					return err
				}
			}
		}
		tx.Defer(insertTransit, 1, m.ID, m.Asset, m.Source, m.Target, int64(m.Amount), m.Reference, t.clock.Now())
		return nil
	}
	return t.Move(ctx, move, reason, actor, append([]func(*db.Tx) error{store}, also...)...)
}

// End books that a transfer arrived, or returned to its origin. fee is the bank's charge. It refuses a transfer that
// has ended or that has changed since the caller saw it.
func (t *Treasury) End(ctx context.Context, seen Transit, to TransitState, fee money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error {
	if err := CheckEnd(seen, to, fee); err != nil {
		return err
	}
	at := seen.Target
	if to == Returned {
		at = seen.Source
	}
	move := Movement{Asset: seen.Asset, From: at, To: ledger.Transit, Amount: seen.Amount - fee, Kind: "own transfer " + string(to), Subject: seen.ID, Leg: "ended"}
	if fee > 0 {
		move.Beside = []ledger.Transfer{{Asset: seen.Asset, From: feesOf(seen.Source), To: ledger.Transit, Amount: int64(fee), Subject: seen.ID, Leg: "ended_fee", Kind: "own transfer fee"}}
	}
	guard := func(tx *db.Tx) error {
		now, err := transitIn(tx, lockTransit, seen.ID)
		if err != nil {
			return err
		}
		if now.State != Sent || now.Amount != seen.Amount || now.Source != seen.Source || now.Target != seen.Target {
			return problem.New(problem.Invalid, "changed_since", "The transfer has changed since this was requested")
		}
		tx.Defer(endTransit, 1, seen.ID, string(to), int64(fee), t.clock.Now())
		return nil
	}
	return t.Move(ctx, move, reason, actor, append([]func(*db.Tx) error{guard}, also...)...)
}

// CheckEnd refuses an impossible end.
func CheckEnd(m Transit, to TransitState, fee money.Pesewas) error {
	var bad problem.Fields
	if m.State != Sent {
		bad.Add("transfer", "has "+string(m.State)+" already")
	}
	if to != Arrived && to != Returned {
		bad.Add("outcome", "must be arrived or returned")
	}
	if fee < 0 || fee >= m.Amount {
		bad.Add("fee", "must be below the amount of the transfer")
	}
	return bad.Err()
}

// feesOf returns the ledger account for the fees of the bank or provider that a transfer leaves.
func feesOf(source ledger.AccountID) ledger.AccountID {
	if name, is := strings.CutPrefix(string(source), string(ledger.Bank(""))); is {
		return ledger.BankFees(name)
	}
	provider, _, _ := strings.Cut(strings.TrimPrefix(string(source), string(ledger.Float(""))), "/")
	return ledger.ProviderFees(provider)
}

// Opening is the amount that a bank account had when its books began.
type Opening struct {
	Bank   string        `json:"bank"`
	Amount money.Pesewas `json:"pesewas"`
}

// Open books the opening entries of bank accounts of one mode in one transaction, each account once. The money comes
// from funding and moves to the bank accounts. No other balance changes.
func (t *Treasury) Open(ctx context.Context, asset ledger.Asset, list []Opening, subject, reason, actor string, also ...func(*db.Tx) error) error {
	if len(list) == 0 || len(list) > MostBanks {
		return problem.Field("balances", fmt.Sprintf("are required, of at most %d bank accounts", MostBanks))
	}
	transfers := make([]ledger.Transfer, len(list))
	for i, o := range list {
		m := Movement{Asset: asset, From: ledger.Bank(o.Bank), To: ledger.Funding, Amount: o.Amount, Kind: "opening", Subject: subject, Leg: "opening " + o.Bank}
		transfers[i] = m.Transfer(time.Time{}) // Move gives all entries the time of the first one
	}
	first := Movement{Asset: asset, From: transfers[0].From, To: transfers[0].To, Amount: money.Pesewas(transfers[0].Amount), Kind: "opening", Subject: subject, Leg: transfers[0].Leg, Beside: transfers[1:]}
	mark := func(tx *db.Tx) error {
		for _, o := range list {
			b, err := bankIn(tx, lockBank, o.Bank)
			switch {
			case err != nil:
				return err
			case b.Opened:
				return problem.Field("balances", "name "+o.Bank+", whose opening entry is booked already")
			case b.Closed || b.Key().Asset != asset:
				return problem.Field("balances", "name "+o.Bank+", which is closed or has another mode")
			}
			tx.Defer(openBank, 1, o.Bank, int64(o.Amount))
		}
		return nil
	}
	return t.Move(ctx, first, reason, actor, append([]func(*db.Tx) error{mark}, also...)...)
}

const sumBefore = `SELECT CAST(COALESCE(sum(o.amount), 0) AS INTEGER) FROM own_transfers o JOIN transfers s ON s.subject = o.id AND s.leg = 'sent' AND s.at < $2
	LEFT JOIN transfers e ON e.subject = o.id AND e.leg = 'ended' AND e.at < $2 WHERE o.asset = $1 AND e.subject IS NULL`

// OnTheWayBefore returns the amount of the transfers that were in transit before a time, by the dates of the ledger.
func OnTheWayBefore(tx *db.Tx, asset ledger.Asset, at time.Time) (sum money.Pesewas, err error) {
	_, err = tx.One(sumBefore, []any{asset, at}, &sum)
	return sum, err
}

// CheckIn compares the money in transit with the transfers that have not ended, inside a transaction that sees one snapshot.
func CheckIn(tx *db.Tx) (found ledger.Findings, err error) {
	open := map[ledger.Asset]int64{}
	err = tx.Query(sumOpen, nil, func(r *db.Row) error {
		var asset ledger.Asset
		var sum int64
		err := r.Scan(&asset, &sum)
		open[asset] = sum
		return err
	})
	if err != nil {
		return found, err
	}
	accounts, err := ledger.TrialBalanceIn(tx)
	for _, a := range accounts {
		if a.ID != ledger.Transit {
			continue
		}
		if -a.Balance != open[a.Asset] {
			found.Add("%s transit holds %s, the transfers on their way have %s", a.Asset, money.Pesewas(-a.Balance), money.Pesewas(open[a.Asset]))
		}
		delete(open, a.Asset)
	}
	for asset, sum := range open {
		if sum != 0 {
			found.Add("%s transit holds nothing, the transfers on their way have %s", asset, money.Pesewas(sum))
		}
	}
	return found, err
}

// Check is CheckIn on a snapshot of its own.
func Check(ctx context.Context, d *db.DB) (found ledger.Findings, err error) {
	err = d.ReadWhole(ctx, func(tx *db.Tx) error {
		found, err = CheckIn(tx)
		return err
	})
	return found, err
}
