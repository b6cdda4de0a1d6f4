package sim

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/makola/makola/internal/money"
)

// book has the true state of all providers: every order by reference, and our float. It returns copies.
type book struct {
	journal *journal

	mu       sync.Mutex
	entries  map[string]*Entry   // by provider and plain reference
	parties  map[string][]*Entry // by party, oldest first
	refunds  map[string][]*Entry // by provider and plain reference of the collection
	pending  map[int64]*Entry
	number   int64
	first    money.Pesewas
	floats   map[string]money.Pesewas // change since the opening float
	incoming map[string]money.Pesewas // part of the change that collections made
	reserved map[string]money.Pesewas // amount that pending entries will take from the float
	users    map[string]User          // by id
	moved    []move                   // every change of a float
	single   map[string]bool          // providers with one account for collections and payouts; set when the book is opened
}

// openBook reads the book in dir. If dir is empty, it creates a book in memory.
func openBook(dir string, opening money.Pesewas) (*book, error) {
	b := &book{
		entries: map[string]*Entry{}, parties: map[string][]*Entry{}, refunds: map[string][]*Entry{}, pending: map[int64]*Entry{},
		first: opening, floats: map[string]money.Pesewas{}, incoming: map[string]money.Pesewas{}, reserved: map[string]money.Pesewas{},
		users: map[string]User{},
	}
	if dir == "" {
		return b, nil
	}
	var err error
	b.journal, err = openJournal(dir, b.replay)
	return b, err
}

// replay applies a line of the journal when the book is opened. It reports whether the line is a record.
func (b *book) replay(line []byte) bool {
	var r record
	if json.Unmarshal(line, &r) != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.Enter != nil:
		b.insertLocked(r.Enter)
	case r.Settle != nil:
		if e := b.entries[key(r.Settle.Provider, r.Settle.Reference)]; e != nil {
			b.applyLocked(e, *r.Settle)
		}
	case r.Float != nil:
		b.depositLocked(*r.Float)
	case r.User != nil:
		b.users[r.User.ID] = *r.User
	}
	return true
}

func (b *book) close() error { return b.journal.close() }

func (b *book) insertLocked(e *Entry) {
	b.entries[key(e.Provider, e.Reference)] = e
	b.parties[e.Party] = append(b.parties[e.Party], e)
	if e.Refunds != "" {
		of := key(e.Provider, e.Refunds)
		b.refunds[of] = append(b.refunds[of], e)
	}
	b.number = max(b.number, e.Number)
	b.pending[e.Number] = e
	if out := -e.effect(); out > 0 {
		b.reserved[e.Provider] += out
	}
}

func (b *book) applyLocked(e *Entry, r settleRecord) {
	if e.Status == Pending {
		delete(b.pending, e.Number)
		if out := -e.effect(); out > 0 {
			b.reserved[e.Provider] -= out
		}
	}
	change := money.Pesewas(0)
	if e.Status != Success && r.Status == Success {
		change = e.effect()
	}
	if e.Status == Success && r.Status != Success {
		change = -e.effect()
	}
	b.floats[e.Provider] += change
	if change != 0 {
		b.moved = append(b.moved, move{at: r.At, provider: e.Provider, entry: e, back: r.Status != Success})
	}
	if e.Kind == Collection {
		b.incoming[e.Provider] += change
	}
	e.Status, e.Reason, e.Settled, e.Reversed = r.Status, r.Reason, r.At, r.Reversed
	if r.Answer != "" {
		e.Answer = r.Answer
	}
}

// create stores an order durably. For a known reference it returns the earlier entry, and existed is true. For an
// order that the float does not cover, it returns a reason in refused. It calls entered before other calls can see
// the entry, so that the entry's settlement is already scheduled then.
func (b *book) create(o Order, p Plan, now time.Time, entered func(Entry)) (e Entry, existed bool, refused Reason, err error) {
	b.mu.Lock()
	if old := b.entries[key(o.Provider, o.Reference)]; old != nil {
		e = *old
		b.mu.Unlock()
		return e, true, "", e.group.wait()
	}
	if o.Refunds != "" && p.Then == Success && o.Amount > b.refundableLocked(o) {
		p.Then, p.Reason = Failed, OverRefunded
	}
	made := &Entry{Number: b.number + 1, Order: o, Plan: p, At: now, Status: Pending}
	if !p.Wait || p.Delay > 0 {
		made.Due = now.Add(p.Delay)
	}
	if out := -made.effect(); out > b.payoutAccountLocked(o.Provider)-b.reserved[o.Provider] {
		b.mu.Unlock()
		return Entry{}, false, FloatLow, nil
	}
	made.group = b.journal.add(record{Enter: made}, false)
	b.insertLocked(made)
	e = *made
	entered(e)
	b.mu.Unlock()
	return e, false, "", e.group.wait()
}

// refundableLocked returns the amount of a collection that can still be refunded. It subtracts the refunds that
// succeeded or are pending.
func (b *book) refundableLocked(o Order) money.Pesewas {
	of := key(o.Provider, o.Refunds)
	collected := b.entries[of]
	if collected == nil || collected.Kind != Collection || collected.Status != Success {
		return 0
	}
	left := collected.Amount
	for _, e := range b.refunds[of] {
		if e.Status == Success || e.Status == Pending && e.Plan.Then == Success {
			left -= e.Amount
		}
	}
	return left
}

// get returns an entry after it is durable.
func (b *book) get(provider, reference string) (Entry, bool) {
	b.mu.Lock()
	found := b.entries[key(provider, reference)]
	if found == nil {
		b.mu.Unlock()
		return Entry{}, false
	}
	e := *found
	b.mu.Unlock()
	return e, e.group.wait() == nil
}

// settle ends a pending entry, or changes a final one, and reports whether it did. A settlement that follows from the
// entry's own plan may be written lazily: after a crash the same settlement happens again.
func (b *book) settle(r settleRecord, lazily bool) (Entry, bool, error) {
	b.mu.Lock()
	e := b.entries[key(r.Provider, r.Reference)]
	if e == nil || r.Contradicted && (e.Status == Pending || e.Status == r.Status) || !r.Contradicted && e.Status != Pending {
		b.mu.Unlock()
		return Entry{}, false, nil
	}
	g := b.journal.add(record{Settle: &r}, lazily)
	b.applyLocked(e, r)
	after := *e
	b.mu.Unlock()
	if lazily {
		return after, true, nil
	}
	return after, true, g.wait()
}

// open returns the entries that have not settled.
func (b *book) open() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return sorted(maps.Values(b.pending), len(b.pending))
}

func (b *book) all() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return sorted(maps.Values(b.entries), len(b.entries))
}

func sorted(from func(func(*Entry) bool), n int) []Entry {
	list := make([]Entry, 0, n)
	for e := range from {
		list = append(list, *e)
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// of returns the last entries of a party, oldest first.
func (b *book) of(party string, most int) []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.parties[party]
	all = all[max(0, len(all)-most):]
	list := make([]Entry, len(all))
	for i, e := range all {
		list[i] = *e
	}
	return list
}

func (b *book) opening(string) money.Pesewas { return b.first }

func (b *book) float(provider string) money.Pesewas {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first + b.floats[provider]
}

// accounts returns the two parts of the float: the money that collections brought, and the account that pays
// everything else.
func (b *book) accounts(provider string) (incoming, outgoing money.Pesewas) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.single[provider] {
		return 0, b.payoutAccountLocked(provider)
	}
	return b.incoming[provider], b.payoutAccountLocked(provider)
}

func (b *book) payoutAccountLocked(provider string) money.Pesewas {
	if b.single[provider] {
		return b.first + b.floats[provider]
	}
	return b.first + b.floats[provider] - b.incoming[provider]
}

// addFloat changes the float by hand, like a deposit at the provider.
func (b *book) addFloat(provider string, amount money.Pesewas, at time.Time) error {
	b.mu.Lock()
	r := floatRecord{provider, amount, at}
	g := b.journal.add(record{Float: &r}, false)
	b.depositLocked(r)
	b.mu.Unlock()
	return g.wait()
}

func (b *book) depositLocked(r floatRecord) {
	if b.floats[r.Provider] += r.Amount; r.Amount == 0 {
		return
	}
	b.moved = append(b.moved, move{at: r.At, provider: r.Provider, deposit: r.Amount})
}

// moves returns the changes of the float of a provider, by time.
func (b *book) moves(provider string) []move {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []move
	for _, m := range b.moved {
		if m.provider != provider {
			continue
		}
		if m.entry != nil {
			e := *m.entry
			m.entry = &e
		}
		list = append(list, m)
	}
	return list
}

// accountOf returns the account of a provider that an entry debits or credits.
func (b *book) accountOf(e *Entry) string {
	if e != nil && e.Kind == Collection && !b.single[e.Provider] {
		return AccountCollection
	}
	return AccountDisbursement
}
