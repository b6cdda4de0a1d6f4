// Package tenant keeps the customers of an installation: whether a customer's money is test or live, its permissions,
// its limits for one transfer, and its fees. A tenant's mode never changes, because test and live money are separate
// assets of the ledger and its wallets are opened with the tenant. Keys and allowed addresses are in package access.
//
// Reading a tenant or its fees costs at most one query a second on each node, so a change is in force everywhere
// within one second.
package tenant

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// Mode is test or live.
type Mode string

// The modes. A test tenant is always served by the simulator, a live one never.
const (
	Test Mode = "test"
	Live Mode = "live"
)

// FeeBearer pays the charges of a collection.
type FeeBearer string

// The bearers: the merchant gets amount - charges, or the customer pays
// amount + charges and the merchant gets the amount.
const (
	Merchant FeeBearer = "merchant"
	Customer FeeBearer = "customer"
)

// Listed selects the requests that must come from an address on the allow-list.
type Listed string

// Requests that must come from a listed address: payouts, as the contract has it, or also airtime, data and messages.
const (
	ListedPayouts  Listed = "payouts"
	ListedSpending Listed = "spending"
)

// Duplicates selects the answer to a request whose reference was used before.
type Duplicates string

// Answers to duplicates: a refusal, as the contract has it, or for a day the present state of the same request.
const (
	RefuseDuplicates Duplicates = "refuse"
	RepeatDuplicates Duplicates = "repeat"
)

// AirtimeRefund selects who gets the money of airtime that mobile money paid for and that failed.
type AirtimeRefund string

// The wallet keeps the money, as the contract has it, or it is refunded to the payer.
const (
	RefundToWallet AirtimeRefund = "wallet"
	RefundToPayer  AirtimeRefund = "payer"
)

// The transfer limits of a tenant without limits of its own.
const (
	DefaultWalletLimit = 15_000 * money.Cedi
	DefaultBankLimit   = 50_000 * money.Cedi
)

// Limits of an id: its characters and its greatest length.
const (
	maxID     = 64
	idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"
)

// maxName is the longest name in characters.
const maxName = 120

// Freshness is how old a cached tenant, fee plan or absence of one may be.
const Freshness = time.Second

// cached is how many tenants a node remembers at once.
const cached = 10_000

// Tenant is one customer.
type Tenant struct {
	ID                 string
	Name               string
	Mode               Mode
	CollectionsEnabled bool
	Blocked            bool          // 403 everywhere but on the checkstatus calls
	PayoutsStopped     bool          // by an operator, or because a reversal was not covered
	PayoutLimitWallet  money.Pesewas // the most that one transfer to a wallet may move
	PayoutLimitBank    money.Pesewas // the same to a bank account
	FeeBearer          FeeBearer
	Duplicates         Duplicates
	RefundAirtime      AirtimeRefund
	Listed             Listed
	Quotas             Quotas
	Email              string        // for providers of collections that ask for one; may be empty
	Voucher            bool          // the account's clients send the payers' vouchers, which Telecel may need
	LowBalance         money.Pesewas // below which balance of the wallet the account wants to be warned; 0: never
	CreatedAt          time.Time
	UpdatedAt          time.Time
}

// Money is the asset that the tenant's wallet holds.
func (t Tenant) Money() ledger.Asset {
	if t.Mode == Live {
		return ledger.GHS
	}
	return ledger.TestGHS
}

// Credits is the asset that the tenant's SMS credits are.
func (t Tenant) Credits() ledger.Asset {
	if t.Mode == Live {
		return ledger.SMS
	}
	return ledger.TestSMS
}

// Wallet is the ledger account of the tenant's money.
func (t Tenant) Wallet() ledger.Key {
	return ledger.Key{Asset: t.Money(), ID: ledger.Wallet(t.ID)}
}

// SMSCredits is the ledger account of the tenant's SMS credits.
func (t Tenant) SMSCredits() ledger.Key {
	return ledger.Key{Asset: t.Credits(), ID: ledger.Credits(t.ID)}
}

// Blocked is the refusal of a tenant that may do nothing.
func Blocked() error {
	return problem.New(problem.Forbidden, "account_blocked", "Account is blocked")
}

// NoPayouts is the refusal of a tenant whose payouts are stopped.
func NoPayouts() error {
	return problem.New(problem.Forbidden, "payouts_stopped", "Payouts of this account are stopped")
}

// NoCollections is the refusal of a tenant that may not collect.
func NoCollections() error {
	return problem.New(problem.Forbidden, "collections_disabled", "Account not allowed for momo collection")
}

// Store keeps the tenants and their fee plans.
type Store struct {
	db      *db.DB
	ledger  *ledger.Ledger
	clock   *clock.Clock
	tenants *cache.Cache[string, lookup]
	plans   *cache.Cache[string, []plan]
}

// lookup is the cached result of a query for a tenant, also if there is none.
type lookup struct {
	tenant Tenant
	found  bool
}

// New makes a store. The ledger is where the wallets of new tenants are opened.
func New(d *db.DB, l *ledger.Ledger, c *clock.Clock) *Store {
	s := &Store{db: d, ledger: l, clock: c}
	s.tenants = cache.New(c, Freshness, cached, s.load)
	s.plans = cache.New(c, Freshness, cached, s.loadPlans)
	return s
}

// errNotFound is the refusal of an unknown id.
func errNotFound() error {
	return problem.New(problem.NotFound, "tenant_not_found", "Account not found")
}

// Get gives a tenant as it was at most one second ago.
func (s *Store) Get(ctx context.Context, id string) (Tenant, error) {
	l, err := s.tenants.Get(ctx, id)
	if err != nil {
		return Tenant{}, err
	}
	if !l.found {
		return Tenant{}, errNotFound()
	}
	return l.tenant, nil
}

const tenantColumns = `id, name, mode, collections_enabled, blocked, payouts_stopped,
	wallet_limit, bank_limit, fee_bearer, duplicates, listed, quota_contacts, quota_groups, quota_sender_ids, quota_campaigns,
	created_at, updated_at, low_balance, refund_airtime, email, voucher`

const selectTenant = `SELECT ` + tenantColumns + ` FROM tenants WHERE id = $1`

func (t *Tenant) scan(r *db.Row) error {
	return r.Scan(&t.ID, &t.Name, &t.Mode, &t.CollectionsEnabled, &t.Blocked, &t.PayoutsStopped,
		&t.PayoutLimitWallet, &t.PayoutLimitBank, &t.FeeBearer, &t.Duplicates, &t.Listed,
		&t.Quotas.Contacts, &t.Quotas.Groups, &t.Quotas.Senders, &t.Quotas.Campaigns, &t.CreatedAt, &t.UpdatedAt, &t.LowBalance, &t.RefundAirtime, &t.Email, &t.Voucher)
}

func (s *Store) load(ctx context.Context, id string) (lookup, error) {
	var l lookup
	err := s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Query(selectTenant, []any{id}, func(r *db.Row) error {
			l.found = true
			return l.tenant.scan(r)
		})
	})
	return l, err
}

const listTenants = `SELECT ` + tenantColumns + ` FROM tenants WHERE id > $1 ORDER BY id LIMIT $2`

// List returns at most limit tenants in the order of their ids, after the id after (empty: from the first one). Ids
// are in the order of creation, unless an id was chosen.
func (s *Store) List(ctx context.Context, after string, limit int) ([]Tenant, error) {
	var all []Tenant
	err := s.db.Read(ctx, func(tx *db.Tx) error {
		all = nil
		return tx.Query(listTenants, []any{after, limit}, appendTenant(&all))
	})
	return all, err
}

func appendTenant(to *[]Tenant) func(*db.Row) error {
	return func(r *db.Row) error {
		var t Tenant
		if err := t.scan(r); err != nil {
			return err
		}
		*to = append(*to, t)
		return nil
	}
}

const tenantsNamed = `SELECT ` + tenantColumns + ` FROM tenants WHERE name = $1 OR lower(name) = $2 ORDER BY id LIMIT 3`

// Named gives the tenant with a name, whatever its capitals. It is for people: a
// name that several tenants have is refused with their ids.
func (s *Store) Named(ctx context.Context, name string) (Tenant, error) {
	var all []Tenant
	err := s.db.Read(ctx, func(tx *db.Tx) error {
		all = nil
		return tx.Query(tenantsNamed, []any{name, strings.ToLower(name)}, appendTenant(&all))
	})
	switch {
	case err != nil:
		return Tenant{}, err
	case len(all) == 0:
		return Tenant{}, errNotFound()
	case len(all) == 1:
		return all[0], nil
	}
	var ids []string
	for _, t := range all {
		ids = append(ids, t.ID)
	}
	return Tenant{}, problem.Field("tenant", "must be an id: several accounts are called "+name+", such as "+strings.Join(ids, " and "))
}

const insertTenant = `INSERT INTO tenants (` + tenantColumns + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`

// Create makes a tenant in tx and opens its wallet and its credits. Members of
// t that are zero get their default: an id, the limits, the merchant bearing
// fees, duplicates refused, the quotas of the installation. The tenant as made is returned; id is made before the transaction by
// callers whose transaction may run twice.
func (s *Store) Create(tx *db.Tx, t Tenant) (Tenant, error) {
	if t.ID == "" {
		t.ID = uuid.Must(uuid.NewV7()).String()
	}
	if t.PayoutLimitWallet == 0 {
		t.PayoutLimitWallet = DefaultWalletLimit
	}
	if t.PayoutLimitBank == 0 {
		t.PayoutLimitBank = DefaultBankLimit
	}
	if t.FeeBearer == "" {
		t.FeeBearer = Merchant
	}
	if t.Listed == "" {
		t.Listed = ListedPayouts
	}
	if t.Duplicates == "" {
		t.Duplicates = RefuseDuplicates
	}
	if t.RefundAirtime == "" {
		t.RefundAirtime = RefundToWallet
	}
	err := t.Check()
	if err == nil {
		err = checkName(t.Name)
	}
	if err != nil {
		return Tenant{}, err
	}
	t.CreatedAt = s.clock.Now()
	t.UpdatedAt = t.CreatedAt
	_, err = tx.Exec(insertTenant, t.ID, t.Name, t.Mode, t.CollectionsEnabled, t.Blocked, t.PayoutsStopped,
		t.PayoutLimitWallet, t.PayoutLimitBank, t.FeeBearer, t.Duplicates, t.Listed,
		t.Quotas.Contacts, t.Quotas.Groups, t.Quotas.Senders, t.Quotas.Campaigns, t.CreatedAt, t.UpdatedAt, t.LowBalance, t.RefundAirtime, t.Email, t.Voucher)
	if errors.Is(err, db.ErrUnique) {
		err = problem.Wrap(err, problem.Duplicate, "tenant_exists", "There is an account with this id already")
	}
	if err != nil {
		return Tenant{}, err
	}
	for _, key := range []ledger.Key{t.Wallet(), t.SMSCredits()} {
		s.ledger.Create(tx, key, 0)
	}
	tx.AfterCommit(func() { s.tenants.Forget(t.ID) })
	return t, nil
}

// checkName refuses a name that a reader could take for another one.
func checkName(name string) error {
	if usertext.Honest(name) {
		return nil
	}
	return problem.Field("name", "must have no invisible characters, and letters of one alphabet in a word: type it instead of pasting it")
}

// Check refuses a tenant that cannot be stored, naming each bad field.
func (t Tenant) Check() error {
	var f problem.Fields
	if !wellFormed(t.ID) {
		f.Add("id", "must have 1 to 64 letters, digits and hyphens")
	}
	if strings.TrimSpace(t.Name) != t.Name || t.Name == "" || utf8.RuneCountInString(t.Name) > maxName || !utf8.ValidString(t.Name) {
		f.Add("name", "must have 1 to 120 characters and no space around them")
	}
	if t.Mode != Test && t.Mode != Live {
		f.Add("mode", "must be test or live")
	}
	if t.FeeBearer != Merchant && t.FeeBearer != Customer {
		f.Add("fee_bearer", "must be merchant or customer")
	}
	if t.Listed != ListedPayouts && t.Listed != ListedSpending {
		f.Add("listed", "must be payouts or spending")
	}
	if t.Duplicates != RefuseDuplicates && t.Duplicates != RepeatDuplicates {
		f.Add("duplicates", "must be refuse or repeat")
	}
	if t.RefundAirtime != RefundToWallet && t.RefundAirtime != RefundToPayer {
		f.Add("refund_airtime", "must be wallet or payer")
	}
	if t.Email != "" && !usertext.IsEmail(t.Email) {
		f.Add("email", "must be an e-mail address, such as accounts@example.com")
	}
	if t.LowBalance < 0 {
		f.Add("low_balance", "must not be below zero")
	}
	if t.PayoutLimitWallet <= 0 {
		f.Add("transfer_limit", "must be above zero")
	}
	if t.PayoutLimitBank <= 0 {
		f.Add("bank_transfer_limit", "must be above zero")
	}
	t.Quotas.check(&f)
	return f.Err()
}

// wellFormed reports whether id can be a tenant's. Names of ledger accounts contain it, so it has none of their
// separators.
func wellFormed(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool {
		return !strings.ContainsRune(idLetters, r)
	})
}

// Change has the new value of each member; nil leaves it as it is.
type Change struct {
	Name               *string
	CollectionsEnabled *bool
	Blocked            *bool
	PayoutsStopped     *bool
	PayoutLimitWallet  *money.Pesewas
	PayoutLimitBank    *money.Pesewas
	FeeBearer          *FeeBearer
	Duplicates         *Duplicates
	RefundAirtime      *AirtimeRefund
	Email              *string
	Voucher            *bool
	Listed             *Listed
	Quotas             QuotaChange
	LowBalance         *money.Pesewas
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

const updateTenant = `UPDATE tenants SET name = $2, collections_enabled = $3, blocked = $4, payouts_stopped = $5,
	wallet_limit = $6, bank_limit = $7, fee_bearer = $8, duplicates = $9, listed = $10, updated_at = $11,
	quota_contacts = $12, quota_groups = $13, quota_sender_ids = $14, quota_campaigns = $15, low_balance = $16, refund_airtime = $17, email = $18, voucher = $19 WHERE id = $1`

// Set changes a tenant in tx, where the caller also writes the audit entry, and
// gives it as it was and as it is.
func (s *Store) Set(tx *db.Tx, id string, c Change) (before, after Tenant, err error) {
	before, err = s.lock(tx, id)
	if err != nil {
		return Tenant{}, Tenant{}, err
	}
	after = before
	set(&after.Name, c.Name)
	set(&after.CollectionsEnabled, c.CollectionsEnabled)
	set(&after.Blocked, c.Blocked)
	set(&after.PayoutsStopped, c.PayoutsStopped)
	set(&after.PayoutLimitWallet, c.PayoutLimitWallet)
	set(&after.PayoutLimitBank, c.PayoutLimitBank)
	set(&after.FeeBearer, c.FeeBearer)
	set(&after.Duplicates, c.Duplicates)
	set(&after.RefundAirtime, c.RefundAirtime)
	set(&after.Email, c.Email)
	set(&after.Voucher, c.Voucher)
	set(&after.Listed, c.Listed)
	set(&after.LowBalance, c.LowBalance)
	after.Quotas.set(c.Quotas)
	err = after.Check()
	if err == nil && after.Name != before.Name { // an older name may stay
		err = checkName(after.Name)
	}
	if err != nil {
		return Tenant{}, Tenant{}, err
	}
	after.UpdatedAt = s.clock.Now()
	tx.Defer(updateTenant, 1, id, after.Name, after.CollectionsEnabled, after.Blocked, after.PayoutsStopped,
		after.PayoutLimitWallet, after.PayoutLimitBank, after.FeeBearer, after.Duplicates, after.Listed, after.UpdatedAt,
		after.Quotas.Contacts, after.Quotas.Groups, after.Quotas.Senders, after.Quotas.Campaigns, after.LowBalance, after.RefundAirtime, after.Email, after.Voucher)
	tx.AfterCommit(func() { s.tenants.Forget(id) })
	return before, after, nil
}

// Locked reads a tenant in tx and keeps others from changing it until the end.
func (s *Store) Locked(tx *db.Tx, id string) (Tenant, error) { return s.lock(tx, id) }

func (s *Store) lock(tx *db.Tx, id string) (t Tenant, err error) {
	found := false
	err = tx.Query(selectTenant+tx.ForUpdate(), []any{id}, func(r *db.Row) error {
		found = true
		return t.scan(r)
	})
	if err == nil && !found {
		err = errNotFound()
	}
	return t, err
}

const stopPayouts = `UPDATE tenants SET payouts_stopped = 1, updated_at = $2 WHERE id = $1 AND payouts_stopped = 0`

// StopPayouts refuses further payouts of the tenants from the commit of tx on;
// it is written without waiting for an answer. A settlement uses it when a
// reversed collection was not covered by the wallet.
func (s *Store) StopPayouts(tx *db.Tx, ids ...string) {
	for _, id := range ids {
		tx.Defer(stopPayouts, -1, id, s.clock.Now())
		tx.AfterCommit(func() { s.tenants.Forget(id) })
	}
}
