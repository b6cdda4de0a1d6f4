// Package treasury moves money on an operator's order. It funds a wallet, corrects one, recovers a debt, books deposits
// at a provider, and moves our own money between bank accounts and floats. The caller stores the operator and the reason
// in the same transaction. The package does not know payments.
//
// Files: treasury.go has the movements, banks.go the bank accounts of the company and the slips of deposits, transit.go
// our money on its way.
package treasury

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Treasury moves operators' money. It is safe for concurrent use.
type Treasury struct {
	db         *db.DB
	ledger     *ledger.Ledger
	tenants    *tenant.Store
	clock      *clock.Clock
	log        *slog.Logger
	checkFloat func(bad *problem.Fields, provider, account string)
}

// New makes a Treasury. checkFloat adds an error for an unknown provider, or for an account that the provider does
// not have.
func New(d *db.DB, l *ledger.Ledger, t *tenant.Store, c *clock.Clock, log *slog.Logger, checkFloat func(bad *problem.Fields, provider, account string)) *Treasury {
	return &Treasury{db: d, ledger: l, tenants: t, clock: c, log: log, checkFloat: checkFloat}
}

// CheckSigned adds an error for an order without a reason or without its operator's name.
func CheckSigned(bad *problem.Fields, reason, actor string) {
	if reason == "" {
		bad.Add("reason", "is required")
	}
	if actor == "" {
		bad.Add("actor", "is required")
	}
}

// Fund credits a tenant's wallet, because the tenant has paid us outside of Makola.
func (t *Treasury) Fund(ctx context.Context, tenantID string, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error {
	if amount <= 0 {
		return problem.Field("amount", "must be above zero")
	}
	return t.adjust(ctx, tenantID, amount, "fund", reason, actor, also)
}

// FundFrom is Fund for a deposit that was seen at a bank account of the company. bank is its name.
func (t *Treasury) FundFrom(ctx context.Context, tenantID string, amount money.Pesewas, bank, reason, actor string, also ...func(*db.Tx) error) error {
	if amount <= 0 {
		return problem.Field("amount", "must be above zero")
	}
	of, err := t.tenants.Get(ctx, tenantID)
	if err != nil {
		return err
	}
	open := func(tx *db.Tx) error { _, err := t.LockOpenBank(tx, bank, of.Mode); return err }
	m := Movement{Asset: of.Money(), From: ledger.Bank(bank), To: of.Wallet().ID, Amount: amount, Kind: "fund"}
	return t.Move(ctx, m, reason, actor, append([]func(*db.Tx) error{open}, also...)...)
}

// Sweep books that earned fees left a bank account of the company for its own use. It never takes more than was
// earned, so the balance of fees stays at or above zero.
func (t *Treasury) Sweep(ctx context.Context, bank Bank, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error {
	if amount <= 0 {
		return problem.Field("amount", "must be above zero")
	}
	key := bank.Key()
	earned := func(tx *db.Tx) error {
		if err := tx.Query(lockBanks, nil, func(*db.Row) error { return nil }); err != nil { // only one sweep runs at a time
			return err
		}
		if _, err := t.LockOpenBank(tx, bank.Name, bank.Mode); err != nil {
			return err
		}
		has, err := t.ledger.BalanceIn(tx, ledger.Key{Asset: key.Asset, ID: ledger.Fees})
		if err == nil && has < int64(amount) {
			err = problem.Field("amount", "must be at most "+key.Asset.Text(max(0, has))+", the earned fees that were not withdrawn yet")
		}
		return err
	}
	m := Movement{Asset: key.Asset, From: ledger.Fees, To: key.ID, Amount: amount, Kind: "sweep"}
	return t.Move(ctx, m, reason, actor, append([]func(*db.Tx) error{earned}, also...)...)
}

// Adjust corrects a tenant's wallet by an amount of either sign. It returns InsufficientFunds if the wallet does not
// cover it.
func (t *Treasury) Adjust(ctx context.Context, tenantID string, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error {
	if amount == 0 {
		return problem.Field("amount", "must not be zero")
	}
	return t.adjust(ctx, tenantID, amount, "adjust", reason, actor, also)
}

// Recover collects a tenant's debt from its wallet, up to the balance of the wallet. The debt is the part of a reversal
// that the wallet did not cover. The function also runs in the same transaction and gets the amount. Payouts that the
// reversal stopped stay stopped.
func (t *Treasury) Recover(ctx context.Context, tenantID, reason, actor string, also func(tx *db.Tx, taken money.Pesewas) error) (taken money.Pesewas, err error) {
	var bad problem.Fields
	CheckSigned(&bad, reason, actor)
	if err := bad.Err(); err != nil {
		return 0, err
	}
	of, err := t.tenants.Get(ctx, tenantID)
	if err != nil {
		return 0, err
	}
	wallet, debt := of.Wallet(), ledger.Key{Asset: of.Money(), ID: ledger.Receivable(of.ID)}
	m := Movement{Asset: wallet.Asset, From: wallet.ID, To: debt.ID, Kind: "recover", Subject: uuid.Must(uuid.NewV7()).String(), Leg: "recover"}
	at := t.clock.Now()
	err = t.db.WriteRecognising(ctx, t.booked(m), func(tx *db.Tx) error {
		page, err := t.ledger.Open(tx, wallet)
		if err != nil {
			return err
		}
		// The wallet's lock prevents another operator from recovering the same debt.
		owed, err := t.ledger.BalanceIn(tx, debt)
		if err != nil {
			return err
		}
		if owed >= 0 {
			return problem.New(problem.Invalid, "nothing_owed", "The account owes nothing")
		}
		taken = money.Pesewas(min(-owed, page.Available(wallet)))
		if taken <= 0 {
			return problem.New(problem.InsufficientFunds, "insufficient_wallet_balance", "The wallet is empty")
		}
		m.Amount = taken
		if err := page.Add(m.Transfer(at)); err != nil {
			return err
		}
		page.Post()
		if also == nil {
			return nil
		}
		return also(tx, taken)
	})
	if err != nil {
		return 0, err
	}
	t.log.Warn("operator recovered debt", "tenant", of.ID, "amount", taken.String(), "actor", actor, "reason", reason)
	return taken, nil
}

func (t *Treasury) adjust(ctx context.Context, tenantID string, amount money.Pesewas, kind, reason, actor string, also []func(*db.Tx) error) error {
	of, err := t.tenants.Get(ctx, tenantID)
	if err != nil {
		return err
	}
	m := adjusted(of, amount)
	m.Kind = kind
	return t.Move(ctx, m, reason, actor, also...)
}

func adjusted(of tenant.Tenant, amount money.Pesewas) Movement {
	return Movement{Asset: of.Money(), From: ledger.Funding, To: of.Wallet().ID, Amount: amount}
}

// CheckAdjust refuses an amount that a tenant's wallet cannot pay or hold now.
func (t *Treasury) CheckAdjust(ctx context.Context, of tenant.Tenant, amount money.Pesewas) error {
	return t.checkRoom(ctx, adjusted(of, amount))
}

// Float names our money at a provider.
type Float struct {
	Provider string
	Account  string // account at the provider; empty: none
	Mode     tenant.Mode
}

// Key is the float's account in the ledger. The provider holds the negative of its balance.
func (f Float) Key() ledger.Key {
	return ledger.Key{Asset: tenant.Tenant{Mode: f.Mode}.Money(), ID: ledger.FloatAt(f.Provider, f.Account)}
}

// String names the float for a person: "mtn", or "mtn disbursement".
func (f Float) String() string {
	if f.Account == "" {
		return f.Provider
	}
	return f.Provider + " " + f.Account
}

// AddFloat books a deposit at a provider, or with a negative amount a withdrawal there.
//
// Our money at a provider is the negative of the float's balance. A successful collection moves its amount from float
// to wallet, so 1.00 collected reads -1.00, and a successful payout brings it back to zero. A deposit leaves the
// float as well: float -> funding.
func (t *Treasury) AddFloat(ctx context.Context, at Float, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error {
	if err := t.CheckAddFloat(ctx, at, amount); err != nil {
		return err
	}
	return t.Move(ctx, addedFloat(at, amount), reason, actor, also...)
}

// CheckAddFloat returns the error that AddFloat would return.
func (t *Treasury) CheckAddFloat(ctx context.Context, at Float, amount money.Pesewas) error {
	var bad problem.Fields
	if amount == 0 {
		bad.Add("amount", "must not be zero")
	}
	t.checkFloat(&bad, at.Provider, at.Account)
	if err := bad.Err(); err != nil {
		return err
	}
	return t.checkRoom(ctx, addedFloat(at, amount))
}

// AddedFloat returns the transfer of AddFloat, for a caller that books it in its own transaction under its own
// subject and leg. amount is not zero.
func AddedFloat(f Float, amount money.Pesewas, subject, leg string, at time.Time) ledger.Transfer {
	m := addedFloat(f, amount)
	m.Subject, m.Leg = subject, leg
	return m.Transfer(at)
}

func addedFloat(f Float, amount money.Pesewas) Movement {
	key := f.Key()
	return Movement{Asset: key.Asset, From: key.ID, To: ledger.Funding, Amount: amount, Kind: "add float"}
}

// Movement is one transfer of an operator. A negative amount (in pesewas) reverses the direction.
type Movement struct {
	Asset    ledger.Asset
	From, To ledger.AccountID
	Amount   money.Pesewas
	Kind     string
	Subject  string // empty: a new subject
	Leg      string
	// Beside are transfers between sum accounts that are booked in the same transaction. A transfer without a time gets the time of
	// the movement.
	Beside []ledger.Transfer
}

// Transfer returns the movement as a transfer of the ledger.
func (m Movement) Transfer(at time.Time) ledger.Transfer {
	if m.Amount < 0 {
		m.From, m.To, m.Amount = m.To, m.From, -m.Amount
	}
	return ledger.Transfer{Asset: m.Asset, From: m.From, To: m.To, Amount: int64(m.Amount), Subject: m.Subject, Leg: m.Leg, Kind: m.Kind, At: at}
}

// checkRoom refuses a movement that would exceed the limit of an account, as Move does.
func (t *Treasury) checkRoom(ctx context.Context, m Movement) error {
	err := t.db.Read(ctx, func(tx *db.Tx) error { return t.ledger.CheckRoom(tx, m.Transfer(t.clock.Now())) })
	var room *ledger.RoomError
	if errors.As(err, &room) {
		return problem.Field("amount", room.Error())
	}
	return err
}

// Move books a movement once, and runs also in its transaction. It returns InsufficientFunds if the wallet does not
// cover the amount, Invalid if an account has no room for it, and db.ErrUnique if the subject and leg are booked
// already.
func (t *Treasury) Move(ctx context.Context, m Movement, reason, actor string, also ...func(*db.Tx) error) error {
	var bad problem.Fields
	CheckSigned(&bad, reason, actor)
	if err := bad.Err(); err != nil {
		return err
	}
	if m.Subject == "" {
		m.Subject, m.Leg = uuid.Must(uuid.NewV7()).String(), m.Kind
	}
	first := m.Transfer(t.clock.Now())
	err := t.db.WriteRecognising(ctx, t.booked(m), func(tx *db.Tx) error {
		page, err := t.ledger.Open(tx, ledger.Key{Asset: first.Asset, ID: first.From}, ledger.Key{Asset: first.Asset, ID: first.To})
		if err != nil {
			return err
		}
		if err := t.ledger.CheckRoom(tx, first); err != nil {
			return err
		}
		beside := slices.Clone(m.Beside)
		for i := range beside {
			if beside[i].At.IsZero() {
				beside[i].At = first.At
			}
		}
		err = page.Add(append([]ledger.Transfer{first}, beside...)...)
		if err != nil {
			return err
		}
		page.Post()
		for _, fn := range also {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	})
	var room *ledger.RoomError
	switch {
	case errors.As(err, &room):
		return problem.Field("amount", room.Error())
	case errors.Is(err, ledger.ErrInsufficient):
		return problem.Wrap(err, problem.InsufficientFunds, "insufficient_wallet_balance", "The wallet does not cover the amount")
	case err == nil:
		t.log.Warn("operator moved money", "kind", first.Kind, "from", string(first.From), "to", string(first.To), "amount", money.Pesewas(first.Amount).String(), "actor", actor, "reason", reason)
	}
	return err
}

const bookedAlready = `SELECT 1 FROM transfers WHERE subject = $1 AND leg = $2`

// booked looks for a movement's transfer.
func (t *Treasury) booked(m Movement) func(*db.Tx) (bool, error) {
	return func(tx *db.Tx) (bool, error) {
		var one int
		return tx.One(bookedAlready, []any{m.Subject, m.Leg}, &one)
	}
}
