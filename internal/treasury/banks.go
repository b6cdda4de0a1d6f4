package treasury

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Bank is a bank account of the company.
type Bank struct {
	Name     string // in the ledger
	Mode     tenant.Mode
	Bank     string // name, such as "GCB Bank"
	Number   string // the whole number of the account; pages show only Ending
	Closed   bool
	AddedAt  time.Time
	ClosedAt time.Time
	Opened   bool          // the opening entry is booked
	Opening  money.Pesewas // time of the opening entry
}

// Currency is the currency of every bank account.
const Currency = "GHS"

// Key is the account's key in the ledger. The bank has the negative of its balance.
func (b Bank) Key() ledger.Key {
	return ledger.Key{Asset: tenant.Tenant{Mode: b.Mode}.Money(), ID: ledger.Bank(b.Name)}
}

// Ending returns the number of the account for pages: all but its last four characters are masked.
func (b Bank) Ending() string {
	shown := b.Number[max(0, len(b.Number)-4):]
	return strings.Repeat("•", max(0, len(b.Number)-len(shown))) + shown
}

// String names the account for a person: "gcb (GCB Bank, ••••1234)".
func (b Bank) String() string { return fmt.Sprintf("%s (%s, %s)", b.Name, b.Bank, b.Ending()) }

// MostBanks is the maximum number of bank accounts of an installation.
const MostBanks = 100

var (
	bankName   = regexp.MustCompile(`^[a-z][a-z0-9-]{1,29}$`)
	bankNumber = regexp.MustCompile(`^[A-Z0-9]{5,34}$`)
)

// CheckBank refuses an account with impossible details. It returns the account with its number in canonical form.
func CheckBank(b Bank) (Bank, error) {
	var bad problem.Fields
	b.Number = strings.ToUpper(strings.NewReplacer(" ", "", "-", "", ".", "").Replace(b.Number))
	b.Bank = strings.Join(strings.Fields(b.Bank), " ")
	if !bankName.MatchString(b.Name) {
		bad.Add("name", "must have 2 to 30 characters: small letters, digits and dashes, and begin with a letter")
	}
	if b.Mode != tenant.Live && b.Mode != tenant.Test {
		bad.Add("mode", "must be live or test")
	}
	if b.Bank == "" || len(b.Bank) > 80 {
		bad.Add("bank", "is required, with at most 80 characters")
	}
	if !bankNumber.MatchString(b.Number) {
		bad.Add("number", "must have 5 to 34 letters and digits")
	}
	return b, bad.Err()
}

const (
	bankColumns = `name, mode, bank, number, state, added_at, closed_at, opening`
	selectBanks = `SELECT ` + bankColumns + ` FROM bank_accounts ORDER BY state DESC, name`
	selectBank  = `SELECT ` + bankColumns + ` FROM bank_accounts WHERE name = $1`
	lockBank    = selectBank + ` FOR UPDATE`
	lockBanks   = `SELECT name FROM bank_accounts ORDER BY name FOR UPDATE`
	countBanks  = `SELECT count(*) FROM bank_accounts`
	openBanks   = `SELECT count(*) FROM bank_accounts WHERE mode = $1 AND state = 'open'`
	insertBank  = `INSERT INTO bank_accounts (name, mode, bank, number, currency, state, added_at) VALUES ($1, $2, $3, $4, 'GHS', 'open', $5)`
	closeBank   = `UPDATE bank_accounts SET state = 'closed', closed_at = $2 WHERE name = $1 AND state = 'open'`
	openBank    = `UPDATE bank_accounts SET opening = $2 WHERE name = $1 AND opening IS NULL AND state = 'open'`
	alikeBank   = `SELECT name FROM bank_accounts WHERE name = $1 OR mode = $2 AND bank = $3 AND number = $4 LIMIT 1`
)

func (b *Bank) scan(r *db.Row) error {
	var state string
	var opening *int64
	err := r.Scan(&b.Name, &b.Mode, &b.Bank, &b.Number, &state, &b.AddedAt, &b.ClosedAt, &opening)
	b.Closed = state == "closed"
	if opening != nil {
		b.Opened, b.Opening = true, money.Pesewas(*opening)
	}
	return err
}

// Banks lists the bank accounts, open ones first.
func (t *Treasury) Banks(ctx context.Context) ([]Bank, error) {
	return db.ReadAll(ctx, t.db, selectBanks, nil, (*Bank).scan)
}

// Bank finds a bank account by its name.
func (t *Treasury) Bank(ctx context.Context, name string) (Bank, error) {
	return db.Get(ctx, t.db, func(tx *db.Tx) (Bank, error) { return bankIn(tx, selectBank, name) })
}

func bankIn(tx *db.Tx, sql, name string) (b Bank, err error) {
	found := false
	err = tx.Query(sql, []any{name}, func(r *db.Row) error { found = true; return b.scan(r) })
	if err == nil && !found {
		err = problem.New(problem.NotFound, "bank_account_unknown", "There is no bank account "+name)
	}
	return b, err
}

// LockOpenBank locks a bank account and refuses one that is closed or of another mode.
func (t *Treasury) LockOpenBank(tx *db.Tx, name string, mode tenant.Mode) (Bank, error) {
	b, err := bankIn(tx, lockBank, name)
	if err == nil {
		err = b.CheckUse(mode)
	}
	return b, err
}

// CheckUse refuses a bank account that is closed or of another mode.
func (b Bank) CheckUse(mode tenant.Mode) error {
	switch {
	case b.Closed:
		return problem.Field("bank", "is the closed bank account "+b.Name)
	case b.Mode != mode:
		return problem.Field("bank", fmt.Sprintf("must be an account for %s money", mode))
	}
	return nil
}

// NeedsBank reports whether deposits of a mode must name the bank account that received them. This is so if the
// mode has an open bank account.
func (t *Treasury) NeedsBank(ctx context.Context, mode tenant.Mode) (bool, error) {
	return db.Get(ctx, t.db, func(tx *db.Tx) (bool, error) { return t.NeedsBankIn(tx, mode) })
}

// NeedsBankIn is NeedsBank inside a transaction.
func (t *Treasury) NeedsBankIn(tx *db.Tx, mode tenant.Mode) (bool, error) {
	var n int64
	_, err := tx.One(openBanks, []any{mode}, &n)
	return n > 0, err
}

// CheckNewBank refuses an account that exists, or that exceeds the largest number of accounts.
func (t *Treasury) CheckNewBank(ctx context.Context, b Bank) error {
	return t.db.Read(ctx, func(tx *db.Tx) error { return checkNewBank(tx, b) })
}

func checkNewBank(tx *db.Tx, b Bank) error {
	var taken string
	found, err := tx.One(alikeBank, []any{b.Name, b.Mode, b.Bank, b.Number}, &taken)
	if err == nil && found {
		field := "name"
		if taken != b.Name {
			field = "number"
		}
		err = problem.Field(field, "belongs to the bank account "+taken)
	}
	var n int64
	if err == nil {
		_, err = tx.One(countBanks, nil, &n)
	}
	if err == nil && n >= MostBanks {
		err = problem.Field("name", fmt.Sprintf("exceeds the limit: an installation has at most %d bank accounts", MostBanks))
	}
	return err
}

// AddBank stores a bank account in tx. The caller must have called CheckBank.
func (t *Treasury) AddBank(tx *db.Tx, b Bank) error {
	if err := checkNewBank(tx, b); err != nil {
		return err
	}
	tx.Defer(insertBank, 1, b.Name, string(b.Mode), b.Bank, b.Number, t.clock.Now())
	return nil
}

// CloseBank closes a bank account in tx. It refuses an account with money in the books, or with a transfer in
// transit.
func (t *Treasury) CloseBank(tx *db.Tx, name string) (Bank, error) {
	b, err := bankIn(tx, lockBank, name)
	if err != nil {
		return b, err
	}
	if err := t.closable(tx, b); err != nil {
		return b, err
	}
	tx.Defer(closeBank, 1, name, t.clock.Now())
	return b, nil
}

// CheckCloseBank returns the error that CloseBank would return.
func (t *Treasury) CheckCloseBank(ctx context.Context, name string) (b Bank, err error) {
	err = t.db.Read(ctx, func(tx *db.Tx) error {
		if b, err = bankIn(tx, selectBank, name); err != nil {
			return err
		}
		return t.closable(tx, b)
	})
	return b, err
}

func (t *Treasury) closable(tx *db.Tx, b Bank) error {
	if b.Closed {
		return problem.Field("name", "is closed already")
	}
	has, err := t.ledger.BalanceIn(tx, b.Key())
	if err != nil {
		return err
	}
	if has != 0 {
		return problem.Field("name", "has "+b.Key().Asset.Text(-has)+" in the books: move it first")
	}
	var waits int64
	if _, err := tx.One(countOpenOf, []any{b.Key().Asset, b.Key().ID}, &waits); err != nil {
		return err
	}
	if waits > 0 {
		return problem.Field("name", "has money in transit: end the transfer first")
	}
	return nil
}

// Slip identifies a deposit at a bank account.
type Slip struct {
	Bank    string
	Number  string // as typed
	Amount  money.Pesewas
	Request string // the change request that uses it
}

// slipKey returns the canonical form of a slip's number: in capitals, without spaces, punctuation and leading zeros.
func slipKey(number string) string {
	key := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, strings.ToUpper(number))
	return strings.TrimLeft(key, "0")
}

// MaxSlip is the longest number of a slip, in characters.
const MaxSlip = 40

// CheckSlip refuses a slip number that identifies no slip.
func CheckSlip(number string) error {
	if slipKey(number) == "" || len(number) > MaxSlip {
		return problem.Field("slip", fmt.Sprintf("is required with a bank account: the number of the bank's slip, with at most %d characters", MaxSlip))
	}
	return nil
}

const (
	insertSlip = `INSERT INTO bank_slips (bank, slip, given, amount, act, at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (bank, slip) DO NOTHING`
	selectSlip = `SELECT given, amount, act, at FROM bank_slips WHERE bank = $1 AND slip = $2`
)

// UsedSlip is a slip that has paid for a deposit.
type UsedSlip struct {
	Slip
	At time.Time
}

// SlipUsed finds the deposit that a slip of a bank account has paid for.
func (t *Treasury) SlipUsed(ctx context.Context, bank, number string) (used UsedSlip, found bool, err error) {
	err = t.db.Read(ctx, func(tx *db.Tx) error {
		used, found, err = slipIn(tx, bank, number)
		return err
	})
	return used, found, err
}

func slipIn(tx *db.Tx, bank, number string) (used UsedSlip, found bool, err error) {
	used.Bank = bank
	err = tx.Query(selectSlip, []any{bank, slipKey(number)}, func(r *db.Row) error {
		found = true
		return r.Scan(&used.Number, &used.Amount, &used.Request, &used.At)
	})
	return used, found, err
}

// UseSlip records in tx that a slip paid for a deposit. tx also moves the amount. If two transactions use the same
// slip, the second is refused.
func (t *Treasury) UseSlip(tx *db.Tx, s Slip) error {
	if err := CheckSlip(s.Number); err != nil {
		return err
	}
	n, err := tx.Exec(insertSlip, s.Bank, slipKey(s.Number), s.Number, int64(s.Amount), s.Request, t.clock.Now())
	if err != nil || n == 1 {
		return err
	}
	by, _, err := slipIn(tx, s.Bank, s.Number)
	if err != nil {
		return err
	}
	return problem.Wrap(db.ErrUnique, problem.Duplicate, "slip_taken",
		fmt.Sprintf("No money was moved: the slip %s of %s has already paid for %s, at %s", by.Number, by.Bank, by.Amount, by.At.UTC().Format(time.RFC3339)))
}
