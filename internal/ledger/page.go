package ledger

import (
	"fmt"
	"math"
	"slices"

	"github.com/makola/makola/internal/db"
)

// Page is the ledger's state in one transaction: the wallets that the transaction has locked, and the transfers added
// so far. Use a Page in only one run of a transaction.
type Page struct {
	ledger    *Ledger
	tx        *db.Tx
	wallets   map[Key]*wallet
	shards    map[Key]int64
	transfers []line
	posted    bool
}

// A wallet is a locked row. Its balance and sequence include the transfers of this page.
type wallet struct {
	key      Key
	floor    int64
	balance  int64
	sequence int64
	at       int64
	was      int64 // the sequence that was read from the row
	delta    int64
}

// A line is a transfer as it is stored.
type line struct {
	Transfer
	at       int64
	wallet   *string
	sequence *int64
	balance  *int64
}

// sqlLock locks rows in the order of ids. All transactions do so, which prevents deadlocks.
const sqlLock = `SELECT w.id, w.asset, w.floor, w.balance, w.sequence, w.at
FROM rows($1) AS r JOIN wallets w ON w.id = r.id AND w.asset = r.asset
ORDER BY w.id FOR UPDATE OF w`

var keyColumns = []db.Column[Key]{
	{Name: "id", Text: func(k Key) string { return string(k.ID) }},
	{Name: "asset", Text: func(k Key) string { return string(k.Asset) }},
}

// Open locks the floored accounts among keys until the transaction ends. A transfer can only change a wallet that its
// page has locked. Accounts without a floor need no lock and may be absent from keys.
func (l *Ledger) Open(tx *db.Tx, keys ...Key) (*Page, error) {
	p := &Page{}
	q := l.OpenQuery(tx, keys, p)
	if q.SQL == "" {
		return p, nil
	}
	return p, tx.Query(q.SQL, q.Args, q.Each)
}

// OpenQuery returns the query of Open, which fills page. The caller sends it together with its own reads, to save a
// round trip. If no account among keys has a floor, the SQL of the query is "". The caller must then not send it, and
// the page is ready.
func (l *Ledger) OpenQuery(tx *db.Tx, keys []Key, page *Page) db.Query {
	*page = Page{ledger: l, tx: tx, wallets: map[Key]*wallet{}, shards: map[Key]int64{}}
	floored := make([]Key, 0, len(keys))
	for _, k := range keys {
		if k.ID.Floored() {
			floored = append(floored, k)
		}
	}
	if len(floored) == 0 {
		return db.Query{}
	}
	slices.SortFunc(floored, compareKeys)
	floored = slices.Compact(floored)
	return db.Query{SQL: sqlLock, Args: []any{db.RowsOf(keyColumns, floored)}, Each: func(r *db.Row) error {
		w := &wallet{}
		if err := r.Scan(&w.key.ID, &w.key.Asset, &w.floor, &w.balance, &w.sequence, &w.at); err != nil {
			return err
		}
		w.was = w.sequence
		page.wallets[w.key] = w
		return nil
	}}
}

// Exists reports whether the page has locked this wallet.
func (p *Page) Exists(key Key) bool { return p.wallets[key] != nil }

// Balance returns the balance of the wallet including all added transfers. It is zero for a wallet that does not
// exist.
func (p *Page) Balance(key Key) int64 {
	if w := p.wallets[key]; w != nil {
		return w.balance
	}
	return 0
}

// Available returns the amount that can leave the wallet, which is its balance above the floor.
func (p *Page) Available(key Key) int64 {
	if w := p.wallets[key]; w != nil {
		return w.balance - w.floor
	}
	return 0
}

// Covers reports whether amount can leave the wallet.
func (p *Page) Covers(key Key, amount int64) bool {
	return p.wallets[key] != nil && amount <= p.Available(key)
}

// Add adds the transfers in order: all of them, or none if it returns an error. It returns ErrInsufficient or
// ErrNoAccount, or another error for a bug of the caller, such as an amount that is not positive.
func (p *Page) Add(transfers ...Transfer) error {
	if p.posted {
		return fmt.Errorf("ledger: a transfer was added to a page that is posted")
	}
	touched := make([]undo, 0, len(transfers))
	for _, t := range transfers {
		u, err := p.add(t)
		if err != nil {
			p.revert(touched)
			return err
		}
		touched = append(touched, u)
	}
	return nil
}

// An undo has the state that one added transfer replaced.
type undo struct {
	transfer Transfer
	wallet   *wallet
	before   wallet
}

func (p *Page) add(t Transfer) (undo, error) {
	u := undo{transfer: t}
	switch {
	case t.Amount <= 0:
		return u, fmt.Errorf("ledger: a transfer of %d", t.Amount)
	case t.From == t.To, t.From == "", t.To == "", t.Asset == "", t.Subject == "", t.Leg == "":
		return u, fmt.Errorf("ledger: an incomplete transfer: %s of %s from %s to %s", t.Leg, t.Subject, t.From, t.To)
	case t.From.Floored() && t.To.Floored():
		// A stored transfer has columns for the number and balance of only one wallet. A movement between two
		// wallets needs two transfers through clearing.
		return u, fmt.Errorf("ledger: a transfer from wallet to wallet: %s of %s", t.Leg, t.Subject)
	}
	stored := line{Transfer: t, at: db.Micros(t.At)}
	delta := t.Amount
	key := Key{t.Asset, t.To}
	if t.From.Floored() {
		delta, key = -t.Amount, Key{t.Asset, t.From}
	}
	if key.ID.Floored() {
		w := p.wallets[key]
		if w == nil {
			return u, fmt.Errorf("%w: %s", ErrNoAccount, key.ID)
		}
		if delta < 0 && w.balance-w.floor < t.Amount {
			return u, ErrInsufficient
		}
		if delta > 0 && w.balance > math.MaxInt64-t.Amount {
			return u, fmt.Errorf("ledger: the balance of %s overflows", key.ID)
		}
		u.wallet, u.before = w, *w
		w.balance += delta
		w.delta += delta
		w.sequence++
		w.at = max(w.at, stored.at)
		stored.at = w.at
		id, sequence, balance := string(key.ID), w.sequence, w.balance
		stored.wallet, stored.sequence, stored.balance = &id, &sequence, &balance
	}
	p.shift(t, 1)
	p.transfers = append(p.transfers, stored)
	return u, nil
}

// shift adds the amount of a transfer to its accounts that have shards. A sign of -1 subtracts the amount
// again.
func (p *Page) shift(t Transfer, sign int64) {
	if !t.From.Floored() {
		p.shards[Key{t.Asset, t.From}] -= sign * t.Amount
	}
	if !t.To.Floored() {
		p.shards[Key{t.Asset, t.To}] += sign * t.Amount
	}
}

func (p *Page) revert(added []undo) {
	for _, u := range slices.Backward(added) {
		if u.wallet != nil {
			*u.wallet = u.before
		}
		p.shift(u.transfer, -1)
	}
	p.transfers = p.transfers[:len(p.transfers)-len(added)]
}

const (
	// The sequence guards that the row is unchanged since it was locked.
	sqlPostWallets = `UPDATE wallets SET balance = wallets.balance + r.delta, sequence = r.sequence, at = r.at
FROM rows($1) AS r WHERE wallets.id = r.id AND wallets.sequence = r.was`
	sqlPostShards = `INSERT INTO shards (id, asset, shard, balance) SELECT id, asset, shard, balance FROM rows($1) AS r WHERE true
ON CONFLICT (id, asset, shard) DO UPDATE SET balance = shards.balance + excluded.balance`
)

var transferColumns = []db.Column[line]{
	{Name: "amount", Int: func(l line) int64 { return l.Amount }},
	{Name: "at", Int: func(l line) int64 { return l.at }},
	{Name: "sequence", NullInt: func(l line) *int64 { return l.sequence }},
	{Name: "balance", NullInt: func(l line) *int64 { return l.balance }},
	{Name: "subject", Text: func(l line) string { return l.Subject }},
	{Name: "leg", Text: func(l line) string { return l.Leg }},
	{Name: "asset", Text: func(l line) string { return string(l.Asset) }},
	{Name: "kind", Text: func(l line) string { return l.Kind }},
	{Name: "from_account", Text: func(l line) string { return string(l.From) }},
	{Name: "to_account", Text: func(l line) string { return string(l.To) }},
	{Name: "wallet", NullText: func(l line) *string { return l.wallet }},
}

var walletColumns = []db.Column[*wallet]{
	{Name: "id", Text: func(w *wallet) string { return string(w.key.ID) }},
	{Name: "delta", Int: func(w *wallet) int64 { return w.delta }},
	{Name: "sequence", Int: func(w *wallet) int64 { return w.sequence }},
	{Name: "at", Int: func(w *wallet) int64 { return w.at }},
	{Name: "was", Int: func(w *wallet) int64 { return w.was }},
}

// A shard is a part of an account and the amount added to it.
type shard struct {
	key   Key
	delta int64
	shard int64
}

var shardColumns = []db.Column[shard]{
	{Name: "id", Text: func(s shard) string { return string(s.key.ID) }},
	{Name: "asset", Text: func(s shard) string { return string(s.key.Asset) }},
	{Name: "shard", Int: func(s shard) int64 { return s.shard }},
	{Name: "balance", Int: func(s shard) int64 { return s.delta }},
}

// Post defers the writes of everything that was added: the transfers, one UPDATE of the wallets, and one of the
// shards. Nothing can be added after it.
func (p *Page) Post() {
	p.posted = true
	if len(p.transfers) == 0 {
		return
	}
	db.Insert(p.tx, "transfers", transferColumns, p.transfers)
	p.takeHoursBack()
	var moved []*wallet
	for _, w := range p.wallets {
		if w.sequence != w.was {
			moved = append(moved, w)
		}
	}
	if len(moved) > 0 {
		slices.SortFunc(moved, func(a, b *wallet) int { return compareKeys(a.key, b.key) })
		p.tx.Defer(sqlPostWallets, int64(len(moved)), db.RowsOf(walletColumns, moved))
	}
	var parts []shard
	for key, delta := range p.shards {
		if delta != 0 {
			parts = append(parts, shard{key: key, delta: delta})
		}
	}
	if len(parts) == 0 {
		return
	}
	// Concurrent transactions write different shards. A shard stays locked until the disk has made the commit
	// durable.
	slot := p.ledger.slots.take()
	p.tx.AtEnd(func() { p.ledger.slots.give(slot) })
	number := p.ledger.node*shardsANode + slot%shardsANode
	slices.SortFunc(parts, func(a, b shard) int { return compareKeys(a.key, b.key) })
	for i := range parts {
		parts[i].shard = number
	}
	p.tx.Defer(sqlPostShards, int64(len(parts)), db.RowsOf(shardColumns, parts))
}
