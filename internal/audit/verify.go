package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
)

// maxFaults is the maximum number of faults that a verification lists. All are counted.
const maxFaults = 100

// lateAfter is the age of an entry at the time of its link from which it counts as late.
const lateAfter = time.Hour

// Kind is a kind of fault of the chain.
type Kind string

// The kinds of faults.
const (
	Changed   Kind = "changed"
	Removed   Kind = "removed"
	Inserted  Kind = "inserted"
	Reordered Kind = "reordered"
	Truncated Kind = "truncated"
	Relinked  Kind = "relinked"
)

// Fault is a difference between the chain and the entries as they were linked.
type Fault struct {
	Kind   Kind
	Number int64 // number of the link; 0: the entry has none
	Tenant string
	Entry  string
	What   string

	content string // hash of an entry that differs from the link's
}

// Verified is the result of Verify.
type Verified struct {
	At       time.Time
	Links    int64
	Unlinked int64 // committed entries without a link, written in the last second or while no server ran
	// Late counts entries that are more than an hour older than their link. Such entries were written while no server
	// ran, or before the chain began, or later with an earlier time.
	Late       int64
	Unchecked  int64 // keyed links that cannot be checked without the master key
	Keyed      int64 // number of the first keyed link; 0: there is none
	Head       Head
	Faults     []Fault // at most 100
	FaultCount int64
}

// OK reports whether everything was checked and no fault was found.
func (v Verified) OK() bool { return v.FaultCount == 0 && v.Unchecked == 0 }

const (
	selectChain = `SELECT ` + entryColumns + `, a.linked, 1, c.number, c.tenant, c.entry, c.linked_at, c.hash, c.content
		FROM audit_chain c JOIN audit_log a ON a.tenant = c.tenant AND a.id = c.entry WHERE c.number < $1 AND c.number > $2
		UNION ALL
		SELECT '', '', 0, '', '', '', '', '', '', '', 0, 0, c.number, c.tenant, c.entry, c.linked_at, c.hash, c.content
		FROM audit_chain c WHERE NOT EXISTS (SELECT 1 FROM audit_log a WHERE a.tenant = c.tenant AND a.id = c.entry)
		AND c.number < $1 AND c.number > $2
		ORDER BY 13`

	selectOutside = `SELECT a.tenant, a.id, a.linked FROM audit_log a WHERE a.id >= $1 AND a.id <= $2 AND NOT EXISTS (
		SELECT 1 FROM audit_chain c WHERE c.tenant = a.tenant AND c.entry = a.id) ORDER BY a.id`

	selectLink = `SELECT hash, linked_at FROM audit_chain WHERE number = $1`

	selectContent = `SELECT number FROM audit_chain WHERE content = $1 AND number <> $2 ORDER BY number LIMIT 1`
)

// Verify reads the whole log in one snapshot. It also checks that the chain still contains kept, a head that was
// stored elsewhere. The zero Head means that there is none.
func (l *Log) Verify(ctx context.Context, kept Head) (v Verified, err error) {
	return l.verify(ctx, Head{}, kept)
}

// VerifySince verifies the links after a head that was verified before, and the end of the chain. It finds no change of an
// earlier link. Entries that Verify would count are not counted before the head.
func (l *Log) VerifySince(ctx context.Context, since, kept Head) (v Verified, err error) {
	return l.verify(ctx, since, kept)
}

func (l *Log) verify(ctx context.Context, since, kept Head) (v Verified, err error) {
	err = l.db.ReadWhole(ctx, func(tx *db.Tx) error {
		v, err = l.follow(tx, since, kept, fence)
		return err
	})
	return v, err
}

// follow verifies the links after a head and before the number upto. With upto = fence it also checks the end of the chain.
func (l *Log) follow(tx *db.Tx, since, kept Head, upto int64) (Verified, error) {
	w := walk{kept: kept, forged: -1, Verified: Verified{At: l.clock.Now(), Head: since}}
	if err := w.begin(l, tx); err != nil {
		return Verified{}, err
	}
	if err := w.continues(tx); err != nil {
		return Verified{}, err
	}
	if err := tx.Query(selectChain, []any{upto, since.Number}, w.link); err != nil {
		return Verified{}, err
	}
	if upto == fence {
		if err := w.end(tx); err != nil {
			return Verified{}, err
		}
	}
	return w.Verified, w.locate(tx)
}

// walk is the state of one verification.
type walk struct {
	Verified
	kept   Head
	key    *chainKey
	locked bool   // the chain has a key that this process cannot open
	first  string // lowest id of an entry that may lack its link
	forged int    // index of the first fault about a link that was not made with the key; -1: none
}

func (w *walk) begin(l *Log, tx *db.Tx) (err error) {
	w.key, err = l.key(tx)
	switch {
	case errors.Is(err, errNoMaster):
		w.locked = true
		return nil
	case errors.Is(err, errKeyLost):
		w.locked = true
		w.fault(Fault{Kind: Removed, What: "the key of the chain was removed from the database"})
		return nil
	case err != nil || w.key == nil:
		return err
	}
	w.Keyed = w.key.Last.Number + 1
	var one int64
	if fenced, err := tx.One(selectFence, []any{int64(fence)}, &one); err != nil || fenced {
		return err
	}
	w.fault(Fault{Kind: Removed, What: "the row that prevents links without the key was removed"})
	return nil
}

// continues checks that the chain still has the head after which the walk begins.
func (w *walk) continues(tx *db.Tx) error {
	if w.Head.Number == 0 {
		return nil
	}
	var hash string
	var at time.Time
	found, err := tx.One(selectLink, []any{w.Head.Number}, &hash, &at)
	switch {
	case err != nil:
		return err
	case !found:
		w.fault(Fault{Kind: Removed, Number: w.Head.Number, What: "the link that was verified last was removed"})
	case hash != w.Head.Hash:
		w.fault(Fault{Kind: Relinked, Number: w.Head.Number, What: "the link that was verified last has another hash: the chain was made anew"})
	}
	w.first = firstID(at.Add(-lateAfter))
	return nil
}

// link checks the next link of the chain. After a fault it continues from the stored link, so that one change
// causes one fault.
func (w *walk) link(r *db.Row) error {
	var e Entry
	var marked, there bool
	var c link
	if err := scan(r, &e, &marked, &there, &c.number, &c.tenant, &c.entry, &c.at, &c.hash, &c.content); err != nil {
		return err
	}
	fault := func(kind Kind, what string) *Fault {
		return w.fault(Fault{Kind: kind, Number: c.number, Tenant: c.tenant, Entry: c.entry, What: what})
	}
	before, gap := w.Head, c.number != w.Head.Number+1
	if gap {
		fault(Removed, fmt.Sprintf("the links %d to %d are missing", before.Number+1, c.number-1))
		before.Number = c.number - 1
	}
	keyed := w.key != nil && c.number > w.key.Last.Number || w.locked && c.content != ""
	switch {
	case !there:
		fault(Removed, "the entry was removed")
	case keyed && w.locked:
		w.Unchecked++
	case keyed:
		w.judge(e, c, before, gap, fault)
	case before.unkeyed(e, c.at) != c.hash:
		fault(Changed, "the entry, its link or its place in the chain was changed")
	}
	if there && !marked {
		fault(Changed, "the entry is marked as not linked")
	}
	if w.key != nil && c.number == w.key.Last.Number && c.hash != w.key.Last.Hash {
		fault(Relinked, "the links before the first keyed link were replaced")
	}
	if c.number == w.kept.Number && c.hash != w.kept.Hash {
		fault(Relinked, "the link's hash differs from the kept head: the chain was replaced")
	}
	if w.locked && w.Keyed == 0 && c.content != "" {
		w.Keyed = c.number
	}
	if there && c.at.Sub(e.At) > lateAfter {
		w.Late++
	}
	w.Links++
	w.Head = Head{c.number, c.hash}
	return nil
}

// judge checks a keyed link. One of its two hashes covers the entry, the other the position in the chain. After a gap
// the previous link is unknown, so the position is not checked.
func (w *walk) judge(e Entry, c link, before Head, gap bool, fault func(Kind, string) *Fault) {
	content := w.key.content(e)
	own := content == c.content
	placed := w.key.place(before, c.number, c.at, c.content) == c.hash
	switch {
	case own && (placed || gap):
		if e.Action == actionHeadLost {
			fault(Truncated, "the sealed head was missing or changed when this entry was linked: earlier entries may be missing")
		}
	case own:
		fault(Reordered, "the link, its time or the link before it was moved or changed")
	case placed:
		if f := fault(Changed, "the entry was changed"); f != nil {
			f.content = content
		}
	case before.unkeyed(e, c.at) == c.hash:
		fault(Relinked, "the link was made without the key")
	default:
		if f := fault(Relinked, "the link was not made with the key"); f != nil && w.forged < 0 {
			w.forged = len(w.Faults) - 1
		}
	}
}

// end checks the end of the chain, and entries without a link.
func (w *walk) end(tx *db.Tx) error {
	if w.Head.Number < w.kept.Number {
		w.fault(Fault{Kind: Truncated, Number: w.kept.Number, What: fmt.Sprintf("the chain ends at %d, before the head that was kept", w.Head.Number)})
	}
	if w.key != nil {
		if err := w.sealed(tx); err != nil {
			return err
		}
	}
	return w.outside(tx, w.first, lastID)
}

// locate looks for the links that entries with a fault belong to.
func (w *walk) locate(tx *db.Tx) error {
	for n := range w.Faults {
		if f := &w.Faults[n]; f.content != "" {
			var place int64
			if found, err := tx.One(selectContent, []any{f.content, f.Number}, &place); err != nil {
				return err
			} else if found {
				f.Kind, f.What = Reordered, fmt.Sprintf("the entry belongs to link %d", place)
			}
		}
	}
	return nil
}

// outside checks the entries without a link, among those whose ids are in a range.
func (w *walk) outside(tx *db.Tx, from, upto string) error {
	return tx.Query(selectOutside, []any{from, upto}, func(r *db.Row) error {
		f := Fault{Kind: Inserted, What: "the entry is marked as linked, but the chain does not contain it"}
		var marked bool
		if err := r.Scan(&f.Tenant, &f.Entry, &marked); err != nil {
			return err
		}
		w.Unlinked++
		if marked {
			w.fault(f)
		}
		return nil
	})
}

// sealed compares the end of the chain with the sealed head.
func (w *walk) sealed(tx *db.Tx) error {
	head, intact, err := sealedHead(tx, w.key)
	switch {
	case err != nil:
		return err
	case !intact:
		w.fault(Fault{Kind: Truncated, What: "the sealed head is missing or was changed: the end of the chain may be missing"})
	case head.Number > w.Head.Number:
		w.fault(Fault{Kind: Truncated, Number: head.Number, What: fmt.Sprintf("the links %d to %d were cut off the end", w.Head.Number+1, head.Number)})
	case head.Number < w.Head.Number && w.forged >= 0:
		w.Faults[w.forged].Kind = Inserted
	case head.Number < w.Head.Number:
		w.fault(Fault{Kind: Inserted, Number: w.Head.Number, What: fmt.Sprintf("links after %d, the sealed head, were inserted", head.Number)})
	case head.Hash != w.Head.Hash && w.forged < 0:
		w.fault(Fault{Kind: Relinked, Number: head.Number, What: "the last link's hash differs from the sealed head"})
	}
	return nil
}

// fault counts a fault and adds it to the list. It returns nil if the list is full.
func (w *walk) fault(f Fault) *Fault {
	if w.FaultCount++; len(w.Faults) >= maxFaults {
		return nil
	}
	w.Faults = append(w.Faults, f)
	return &w.Faults[len(w.Faults)-1]
}
