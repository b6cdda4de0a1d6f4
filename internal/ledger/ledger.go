// Package ledger holds money and credits: accounts, and transfers that move a positive amount of one asset from one
// account to another. A transfer is never changed or deleted. (subject, leg) is unique, so a payment posts each of
// its movements once: each has a leg of its own.
//
// Wallets and credits have a floor and one row each. A Page locks such rows, decides in Go which transfers of a batch
// they cover, and posts them as deferred writes of the caller's transaction. Each transfer of a wallet has its number
// there and the balance after it. All other accounts (clearing, float, fees, ...) are sums of shards. Shards are not
// locked, so these accounts are exact and never contended. The ledger does not know the meaning of accounts, subjects
// and legs.
//
// Files:
//
//	booking.go    references of operators' movements
//	page.go       the wallets that one transaction locks, and its transfers
//	room.go       the amount that an account can take
//	check.go      the check of the whole ledger, and the trial balance
//	proof.go      the checked part of the ledger, which grows in sets
//	statement.go  the transfers of a wallet between two times
//	journal.go    transfers and sums of a period
//	hours.go      the stored sums of hours
//	words.go      amounts of an asset as text
//	ledger.go     accounts, transfers and balances
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// Asset is the unit of an account: pesewas or credits.
type Asset string

// The assets. Test money is a separate asset. It is never mixed with live money.
const (
	GHS     Asset = "GHS"
	TestGHS Asset = "TEST_GHS"
	SMS     Asset = "SMS"
	TestSMS Asset = "TEST_SMS"
)

// AccountID names an account within an asset.
type AccountID string

// The accounts that exist once in each asset.
const (
	Clearing AccountID = "clearing" // accepted, not yet settled
	Fees     AccountID = "fees"     // earned by the installation
	Suspense AccountID = "suspense" // contradicted by a provider; an operator decides
	Funding  AccountID = "funding"  // source of money and credits that name no bank account
	Used     AccountID = "used"     // credits spent
	Transit  AccountID = "transit"  // our money on its way between bank accounts and floats
)

const (
	walletPrefix  = "wallet:"
	creditsPrefix = "credits:"
	floatPrefix   = "float/"
	bankPrefix    = "bank/"
)

// Wallet returns the account of a tenant's money. It has a floor.
func Wallet(tenant string) AccountID { return AccountID(walletPrefix + tenant) }

// Credits returns the account of a tenant's message credits. It has a floor.
func Credits(tenant string) AccountID { return AccountID(creditsPrefix + tenant) }

// Float returns the ledger account of our money at a provider whose account there is unknown. It has the postings of
// earlier releases, which had one float for each provider.
func Float(provider string) AccountID { return AccountID(floatPrefix + provider) }

// FloatAt returns the ledger account of our money in one account at a provider. If account is empty, it returns
// Float.
func FloatAt(provider, account string) AccountID {
	if account == "" {
		return Float(provider)
	}
	return AccountID(floatPrefix + provider + "/" + account)
}

// IsFloat reports whether the account is our money at a provider.
func (id AccountID) IsFloat() bool { return strings.HasPrefix(string(id), floatPrefix) }

// Bank returns the account of our money in a bank account of the company.
func Bank(name string) AccountID { return AccountID(bankPrefix + name) }

// IsBank reports whether the account is a bank account of the company.
func (id AccountID) IsBank() bool { return strings.HasPrefix(string(id), bankPrefix) }

// IsHeld reports whether the account is our money in the hands of others: in a float, at a bank, or in transit. Its
// balance is negative while there is money.
func (id AccountID) IsHeld() bool { return id.IsFloat() || id.IsBank() || id == Transit }

// BankFees returns the account of fees that a bank charged us.
func BankFees(name string) AccountID { return AccountID("bank_fees/" + name) }

// ProviderFees returns the account of fees that a provider charged us.
func ProviderFees(provider string) AccountID { return AccountID("provider_fees/" + provider) }

// Commission returns the account of commissions that a provider paid us.
func Commission(provider string) AccountID { return AccountID("commission/" + provider) }

// Reserve returns the account of a tenant's money that is reserved for payouts of its batches. It covers the
// payouts that are not accepted yet.
func Reserve(tenant string) AccountID { return AccountID("reserve/" + tenant) }

// Receivable returns the account of a tenant's debt to the installation.
func Receivable(tenant string) AccountID { return AccountID("receivable/" + tenant) }

// Floored reports whether the account is a single row with a floor, which transactions lock.
func (id AccountID) Floored() bool {
	return strings.HasPrefix(string(id), walletPrefix) || strings.HasPrefix(string(id), creditsPrefix)
}

// Key names one account.
type Key struct {
	Asset Asset
	ID    AccountID
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Asset, b.Asset))
}

// Transfer moves Amount (pesewas or credits, always positive) between two
// accounts of one asset.
type Transfer struct {
	Asset    Asset
	From, To AccountID
	Amount   int64
	Subject  string    // id of a payment, a campaign, ...
	Leg      string    // name of the movement within its subject; unique there
	Kind     string    // name of the event, for statements
	At       time.Time // within a wallet, times never go back
}

// Errors that callers distinguish with errors.Is.
var (
	// ErrInsufficient is returned if a wallet does not cover a transfer out of it.
	ErrInsufficient = errors.New("ledger: the balance does not cover the transfer")
	// ErrNoAccount is returned for a wallet that was never created.
	ErrNoAccount = errors.New("ledger: no such account")
)

// Ledger reads and writes accounts. It is safe for concurrent use.
type Ledger struct {
	db    *db.DB
	clock *clock.Clock
	node  int64
	slots slots
}

// shardsANode limits the shards of an account that one node writes. nodesApart limits the number of nodes with shards
// of their own, because the rows of nodes that were removed stay.
const (
	shardsANode = 256
	nodesApart  = 256
)

// New returns a ledger in d. node names this process. Nodes with different names most likely write different shards.
func New(d *db.DB, c *clock.Clock, node string) *Ledger {
	h := fnv.New32a()
	_, _ = h.Write([]byte(node))
	return &Ledger{db: d, clock: c, node: int64(h.Sum32() % nodesApart)}
}

// slots are the shards of this node that no transaction uses now.
type slots struct {
	mu   sync.Mutex
	free []int64
	next int64
}

func (s *slots) take() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	s.next++
	return s.next - 1
}

func (s *slots) give(slot int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, slot)
}

const sqlCreate = `INSERT INTO wallets (id, asset, floor, balance, sequence, at) VALUES ($1, $2, $3, 0, 0, 0)`

// Create defers the creation of a wallet or credits account with a balance of zero. The balance never falls below
// floor, which is zero or negative. If the id exists, the transaction fails with db.ErrUnique.
func (l *Ledger) Create(tx *db.Tx, key Key, floor int64) {
	tx.Defer(sqlCreate, 1, key.ID, key.Asset, floor)
}

const (
	sqlWalletBalance = `SELECT balance FROM wallets WHERE id = $1 AND asset = $2`
	sqlShardBalance  = `SELECT CAST(COALESCE(sum(balance), 0) AS INTEGER) FROM shards WHERE id = $1 AND asset = $2`
)

// Balance returns the balance of an account. For a wallet that was never created it returns ErrNoAccount. Any other
// account has a balance of zero until its first transfer.
func (l *Ledger) Balance(ctx context.Context, key Key) (int64, error) {
	return db.Get(ctx, l.db, func(tx *db.Tx) (int64, error) { return l.BalanceIn(tx, key) })
}

// BalanceIn is Balance inside a transaction. It locks nothing.
func (l *Ledger) BalanceIn(tx *db.Tx, key Key) (balance int64, err error) {
	sql := sqlShardBalance
	if key.ID.Floored() {
		sql = sqlWalletBalance
	}
	found, err := tx.One(sql, []any{key.ID, key.Asset}, &balance)
	if err == nil && !found {
		err = fmt.Errorf("%w: %s", ErrNoAccount, key.ID)
	}
	return balance, err
}

const sqlShardBalances = `SELECT id, CAST(sum(balance) AS INTEGER) FROM shards WHERE id IN (SELECT value FROM texts($1)) AND asset = $2 GROUP BY id`

// Balances returns the current balances of accounts without a floor, from one snapshot. An account without any
// transfer is not in the map.
func (l *Ledger) Balances(ctx context.Context, asset Asset, ids []AccountID) (map[AccountID]int64, error) {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	var balances map[AccountID]int64
	err := l.db.Read(ctx, func(tx *db.Tx) error {
		balances = make(map[AccountID]int64, len(ids))
		return tx.Query(sqlShardBalances, []any{names, asset}, func(r *db.Row) error {
			var id AccountID
			var balance int64
			err := r.Scan(&id, &balance)
			balances[id] = balance
			return err
		})
	})
	return balances, err
}
