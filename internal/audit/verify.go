package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
)

// maxFaults are kept of a verification; all are counted.
const maxFaults = 100

// lateAfter is how long after its time an entry may be linked without being counted as late.
const lateAfter = time.Hour

// Fault is one thing of the chain that is not as it was linked.
type Fault struct {
	Number int64 // of the link; 0: the entry has none
	Tenant string
	Entry  string
	What   string
}

// Verified is what Verify found.
type Verified struct {
	At       time.Time
	Links    int64
	Unlinked int64 // committed and not in the chain yet: those of the last second, or of a time without a server
	// Late counts entries whose time is more than an hour before their link: of a time without a server, of before the
	// chain began, or written later under an earlier time.
	Late       int64
	Head       Head
	Faults     []Fault // at most 100
	FaultCount int64
}

// OK says that nothing is wrong.
func (v Verified) OK() bool { return v.FaultCount == 0 }

const (
	selectChain = `SELECT ` + entryColumns + `, a.linked, 1, c.number, c.tenant, c.entry, c.linked_at, c.hash
		FROM audit_chain c JOIN audit_log a ON a.tenant = c.tenant AND a.id = c.entry
		UNION ALL
		SELECT '', '', 0, '', '', '', '', '', '', '', 0, 0, c.number, c.tenant, c.entry, c.linked_at, c.hash
		FROM audit_chain c WHERE NOT EXISTS (SELECT 1 FROM audit_log a WHERE a.tenant = c.tenant AND a.id = c.entry)
		ORDER BY 13`

	selectOutside = `SELECT a.tenant, a.id, a.linked FROM audit_log a WHERE NOT EXISTS (
		SELECT 1 FROM audit_chain c WHERE c.tenant = a.tenant AND c.entry = a.id) ORDER BY a.id`
)

// Verify goes through the whole log on one snapshot. kept is a head that was kept elsewhere, which the chain must still
// have; the zero Head: none.
func (l *Log) Verify(ctx context.Context, kept Head) (v Verified, err error) {
	err = l.db.ReadWhole(ctx, func(tx *db.Tx) error {
		v = Verified{At: l.clock.Now()}
		if err := tx.Query(selectChain, nil, func(r *db.Row) error { return v.follow(r, kept) }); err != nil {
			return err
		}
		if v.Head.Number < kept.Number {
			v.fault(Fault{Number: kept.Number, What: fmt.Sprintf("the chain ends at %d, before the head that was kept", v.Head.Number)})
		}
		return tx.Query(selectOutside, nil, func(r *db.Row) error {
			var f Fault
			var marked bool
			if err := r.Scan(&f.Tenant, &f.Entry, &marked); err != nil {
				return err
			}
			v.Unlinked++
			if marked {
				f.What = "the entry says that it is linked, and the chain does not have it"
				v.fault(f)
			}
			return nil
		})
	})
	return v, err
}

// follow takes the next link of the chain. After a fault it goes on from what the chain says, so that one change is one
// fault.
func (v *Verified) follow(r *db.Row, kept Head) error {
	var e Entry
	var marked, there bool
	var c link
	if err := scan(r, &e, &marked, &there, &c.number, &c.tenant, &c.entry, &c.at, &c.hash); err != nil {
		return err
	}
	fault := func(what string) { v.fault(Fault{Number: c.number, Tenant: c.tenant, Entry: c.entry, What: what}) }
	before := v.Head
	if c.number != before.Number+1 {
		fault(fmt.Sprintf("the links %d to %d are missing", before.Number+1, c.number-1))
		before.Number = c.number - 1
	}
	switch {
	case !there:
		fault("the entry was removed")
	case before.next(e, c.at).hash != c.hash:
		fault("the entry, its link or its place in the chain was changed")
	case !marked:
		fault("the entry says that it is not linked")
	}
	if c.number == kept.Number && c.hash != kept.Hash {
		fault("the link has another hash than the head that was kept: the chain was made anew")
	}
	if there && c.at.Sub(e.At) > lateAfter {
		v.Late++
	}
	v.Links++
	v.Head = Head{c.number, c.hash}
	return nil
}

func (v *Verified) fault(f Fault) {
	if v.FaultCount++; len(v.Faults) < maxFaults {
		v.Faults = append(v.Faults, f)
	}
}
