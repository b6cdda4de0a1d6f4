// Package tenant stores the customers of an installation: whether a customer's money is test or live, its
// permissions, its limits for one transfer, and its fees. A tenant's mode never changes, because test and live money
// are separate assets of the ledger, and the tenant's wallets are created with the tenant. Keys and allowed addresses
// are in package access.
//
// Each node reads a tenant or its fees at most once a second. A change therefore applies on every node within one
// second.
package tenant

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
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

// The modes. The simulator serves all test tenants and no live ones.
const (
	Test Mode = "test"
	Live Mode = "live"
)

// FeeBearer is the party that pays the charges of a collection.
type FeeBearer string

// The bearers. Either the merchant receives amount - charges, or the customer pays amount + charges and the merchant
// receives the amount.
const (
	Merchant FeeBearer = "merchant"
	Customer FeeBearer = "customer"
)

// Listed selects the requests that must come from an address on the allow-list.
type Listed string

// Requests that must come from a listed address: payouts only, which is the documented default, or also airtime, data
// and messages.
const (
	ListedPayouts  Listed = "payouts"
	ListedSpending Listed = "spending"
)

// Duplicates selects the response to a request whose reference was used before.
type Duplicates string

// Responses to duplicates. The documented default is a refusal. The other response is the current state of the first
// payment. It applies for a day, and only to equal requests.
const (
	RefuseDuplicates Duplicates = "refuse"
	RepeatDuplicates Duplicates = "repeat"
)

// AirtimeRefund selects who receives the money if airtime paid by mobile money fails.
type AirtimeRefund string

// The wallet keeps the money, which is the documented default, or it is refunded to the payer.
const (
	RefundToWallet AirtimeRefund = "wallet"
	RefundToPayer  AirtimeRefund = "payer"
)

// The transfer limits of a tenant without its own limits.
const (
	DefaultWalletLimit = 15_000 * money.Cedi
	DefaultBankLimit   = 50_000 * money.Cedi
)

// The format of an id: its characters and its maximum length.
const (
	maxID     = 64
	idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"
)

// maxName is the maximum length of a name in characters.
const maxName = 120

// MaxURL is the longest address of an account for events, in characters.
const MaxURL = 500

// Freshness is the maximum age of a cached tenant or fee plan. It also limits how long a missing one is
// cached.
const Freshness = time.Second

// cached is the maximum number of tenants in a node's cache.
const cached = 10_000

// Tenant is one customer of the installation.
type Tenant struct {
	ID                 string
	Name               string
	Mode               Mode
	CollectionsEnabled bool
	Blocked            bool          // 403 for every call except checkstatus
	PayoutsStopped     bool          // by an operator, or because the wallet did not cover a reversal
	PayoutLimitWallet  money.Pesewas // maximum amount of one transfer to a wallet
	PayoutLimitBank    money.Pesewas // maximum amount of one transfer to a bank account
	FeeBearer          FeeBearer
	Duplicates         Duplicates
	RefundAirtime      AirtimeRefund
	Listed             Listed
	Quotas             Quotas
	Email              string        // e-mail address for providers of collections that require one; may be empty
	Voucher            bool          // the account's clients send the payers' vouchers, which Telecel may need
	LowBalance         money.Pesewas // below which balance of the wallet the account wants to be warned; 0: never
	SMSURL             string        // where texts from handsets are sent; empty: nowhere
	BatchURL           string        // webhook URL for finished batches; empty: no webhook is sent
	CreatedAt          time.Time
	UpdatedAt          time.Time
}

// Money returns the asset of the tenant's wallet.
func (t Tenant) Money() ledger.Asset {
	if t.Mode == Live {
		return ledger.GHS
	}
	return ledger.TestGHS
}

// Credits returns the asset of the tenant's SMS credits.
func (t Tenant) Credits() ledger.Asset {
	if t.Mode == Live {
		return ledger.SMS
	}
	return ledger.TestSMS
}

// Wallet returns the ledger account of the tenant's money.
func (t Tenant) Wallet() ledger.Key {
	return ledger.Key{Asset: t.Money(), ID: ledger.Wallet(t.ID)}
}

// SMSCredits returns the ledger account of the tenant's SMS credits.
func (t Tenant) SMSCredits() ledger.Key {
	return ledger.Key{Asset: t.Credits(), ID: ledger.Credits(t.ID)}
}

// Blocked returns the error for a blocked tenant.
func Blocked() error {
	return problem.New(problem.Forbidden, "account_blocked", "Account is blocked")
}

// NoPayouts returns the error for a tenant whose payouts are stopped.
func NoPayouts() error {
	return problem.New(problem.Forbidden, "payouts_stopped", "Payouts of this account are stopped")
}

// NoCollections returns the error for a tenant whose collections are not enabled.
func NoCollections() error {
	return problem.New(problem.Forbidden, "collections_disabled", "Account not allowed for momo collection")
}

// Store stores the tenants and their fee plans.
type Store struct {
	db      *db.DB
	ledger  *ledger.Ledger
	clock   *clock.Clock
	tenants *cache.Cache[string, lookup]
	plans   *cache.Cache[string, []plan]
}

// lookup is a cached tenant. A missing tenant is cached, too.
type lookup struct {
	tenant Tenant
	found  bool
}

// New returns a Store. It creates the wallets of new tenants in the ledger.
func New(d *db.DB, l *ledger.Ledger, c *clock.Clock) *Store {
	s := &Store{db: d, ledger: l, clock: c}
	s.tenants = cache.New(c, Freshness, cached, s.load)
	s.plans = cache.New(c, Freshness, cached, s.loadPlans)
	return s
}

// errNotFound returns the error for an unknown id.
func errNotFound() error {
	return problem.New(problem.NotFound, "tenant_not_found", "Account not found")
}

// Get returns a tenant. The result may be up to a second old.
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
	created_at, updated_at, low_balance, refund_airtime, email, voucher, sms_url, batch_url`

const selectTenant = `SELECT ` + tenantColumns + ` FROM tenants WHERE id = $1`

func (t *Tenant) scan(r *db.Row) error {
	return r.Scan(&t.ID, &t.Name, &t.Mode, &t.CollectionsEnabled, &t.Blocked, &t.PayoutsStopped,
		&t.PayoutLimitWallet, &t.PayoutLimitBank, &t.FeeBearer, &t.Duplicates, &t.Listed,
		&t.Quotas.Contacts, &t.Quotas.Groups, &t.Quotas.Senders, &t.Quotas.Campaigns, &t.CreatedAt, &t.UpdatedAt, &t.LowBalance, &t.RefundAirtime, &t.Email, &t.Voucher, &t.SMSURL, &t.BatchURL)
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

// List returns at most limit tenants in the order of their ids, after the id after. An empty after means from the
// first. Ids are in the order of creation, unless an id was chosen.
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

// Named returns the tenant with a name, in upper or lower case. It is for people: if several tenants have the name,
// the error lists their ids.
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
	return Tenant{}, problem.Field("tenant", "must be an id, because several accounts are called "+name+", such as "+strings.Join(ids, " and "))
}

// idLength is the length of a new tenant's id in characters of five bits.
const idLength = 12

// IDOf returns the id of the tenant that a form with this id creates. It is short, because the transfers and indexes of a
// payment repeat it about ten times. Forms have a UUIDv7, so the ids of later tenants sort after those of earlier ones. Two
// tenants of one millisecond have the same id once in 262,144 times: Create then refuses the second. An id is not a secret.
// Tenants of earlier releases have a UUID.
func IDOf(form string) string {
	sum := sha256.Sum256([]byte(form))
	id := binary.BigEndian.Uint64(sum[:])
	if u, err := uuid.Parse(form); err == nil && u.Version() == 7 {
		s, ns := u.Time().UnixTime()
		ms := s*1000 + ns/1_000_000
		id = uint64(ms)<<22 | id>>42 // 42 bits of time last until the year 2109, and 18 of the hash end the id's 60
	}
	return strings.ToLower(base32.HexEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, id)))[:idLength]
}

const insertTenant = `INSERT INTO tenants (` + tenantColumns + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)`

// Create creates a tenant in tx, with its wallet and credits, and returns it. Zero fields of t get their defaults: a
// new id, the limits, the merchant as fee bearer, duplicates refused, the quotas of the installation. A caller whose
// transaction may run twice must set the id before the transaction.
func (s *Store) Create(tx *db.Tx, t Tenant) (Tenant, error) {
	if t.ID == "" {
		t.ID = IDOf(uuid.Must(uuid.NewV7()).String())
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
		t.Quotas.Contacts, t.Quotas.Groups, t.Quotas.Senders, t.Quotas.Campaigns, t.CreatedAt, t.UpdatedAt, t.LowBalance, t.RefundAirtime, t.Email, t.Voucher, t.SMSURL, t.BatchURL)
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

// checkName returns an error for a name that people could confuse with another.
func checkName(name string) error {
	if usertext.Honest(name) {
		return nil
	}
	return problem.Field("name", "must have no invisible characters, and only letters of one alphabet in each word: type it instead of pasting it")
}

// Check returns an error that names all invalid fields of a tenant.
func (t Tenant) Check() error {
	var f problem.Fields
	if !wellFormed(t.ID) {
		f.Add("id", "must have 1 to 64 letters, digits and hyphens")
	}
	if strings.TrimSpace(t.Name) != t.Name || t.Name == "" || utf8.RuneCountInString(t.Name) > maxName || !utf8.ValidString(t.Name) {
		f.Add("name", "must have 1 to 120 characters and no space at its beginning or end")
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
	for _, address := range []struct{ field, url string }{{"sms_url", t.SMSURL}, {"batch_url", t.BatchURL}} {
		if len(address.url) > MaxURL {
			f.Add(address.field, fmt.Sprintf("must have at most %d characters", MaxURL))
		}
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

// wellFormed reports whether id has the format of a tenant's id. It must not contain the separators of ledger
// accounts, whose names contain it.
func wellFormed(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool {
		return !strings.ContainsRune(idLetters, r)
	})
}

// Change has the new value of each field. A nil value changes nothing.
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
	SMSURL             *string
	BatchURL           *string
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
	quota_contacts = $12, quota_groups = $13, quota_sender_ids = $14, quota_campaigns = $15, low_balance = $16, refund_airtime = $17, email = $18, voucher = $19, sms_url = $20, batch_url = $21 WHERE id = $1`

// Set changes a tenant in tx and returns it before and after the change. The caller writes the audit entry in the
// same transaction.
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
	set(&after.SMSURL, c.SMSURL)
	set(&after.BatchURL, c.BatchURL)
	set(&after.Listed, c.Listed)
	set(&after.LowBalance, c.LowBalance)
	after.Quotas.set(c.Quotas)
	err = after.Check()
	if err == nil && after.Name != before.Name { // an existing name may stay
		err = checkName(after.Name)
	}
	if err != nil {
		return Tenant{}, Tenant{}, err
	}
	after.UpdatedAt = s.clock.Now()
	tx.Defer(updateTenant, 1, id, after.Name, after.CollectionsEnabled, after.Blocked, after.PayoutsStopped,
		after.PayoutLimitWallet, after.PayoutLimitBank, after.FeeBearer, after.Duplicates, after.Listed, after.UpdatedAt,
		after.Quotas.Contacts, after.Quotas.Groups, after.Quotas.Senders, after.Quotas.Campaigns, after.LowBalance, after.RefundAirtime, after.Email, after.Voucher, after.SMSURL, after.BatchURL)
	tx.AfterCommit(func() { s.tenants.Forget(id) })
	return before, after, nil
}

// Unlocked reads a tenant in tx without a lock.
func (s *Store) Unlocked(tx *db.Tx, id string) (Tenant, error) { return s.read(tx, selectTenant, id) }

// Locked reads a tenant in tx and locks it until tx ends.
func (s *Store) Locked(tx *db.Tx, id string) (Tenant, error) { return s.lock(tx, id) }

func (s *Store) lock(tx *db.Tx, id string) (Tenant, error) {
	return s.read(tx, selectTenant+tx.ForUpdate(), id)
}

func (s *Store) read(tx *db.Tx, sql, id string) (t Tenant, err error) {
	found := false
	err = tx.Query(sql, []any{id}, func(r *db.Row) error {
		found = true
		return t.scan(r)
	})
	if err == nil && !found {
		err = errNotFound()
	}
	return t, err
}

const stopPayouts = `UPDATE tenants SET payouts_stopped = 1, updated_at = $2 WHERE id = $1 AND payouts_stopped = 0`

// StopPayouts stops further payouts of the tenants when tx commits. The write is deferred. A settlement calls it if
// the wallet does not cover a reversed collection.
func (s *Store) StopPayouts(tx *db.Tx, ids ...string) {
	for _, id := range ids {
		tx.Defer(stopPayouts, -1, id, s.clock.Now())
		tx.AfterCommit(func() { s.tenants.Forget(id) })
	}
}
