package figures

import (
	"math/bits"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
)

// A list has the numbered payments of one account and kind.
type list struct {
	tenant string
	kind   book.Kind
}

// A payment has the members of a payment that the figures count.
type payment struct {
	list
	seq             int64
	mode, rail      string
	status          book.Status
	amount, charges int64
	at              time.Time // time of its acceptance
}

func (p payment) open() bool { return p.status.Open() }

// unpaid reports whether the payment may still be paid late.
func (p payment) unpaid() bool {
	return p.kind == book.KindCollection && !p.open() && p.status != book.StatusSuccess
}

const countedColumns = `tenant, kind, seq, mode, status, rail, amount, charges, created_at`

// ofOpen joins a counted open payment o with its row p. The order and limit of the inner query leave PostgreSQL only the index by the number in
// the list. Without statistics, an index whose first columns are account and kind looks as cheap, and each lookup then reads a whole list.
const ofOpen = `p.id = (SELECT x.id FROM payments AS x WHERE x.tenant = o.tenant AND x.kind = o.kind AND x.seq >= o.seq ORDER BY x.seq LIMIT 1) AND p.seq = o.seq`

const (
	// The lists with payments that are not counted yet.
	listsBehind = `SELECT e.tenant, e.kind, COALESCE(l.seq, 0) FROM payment_ends AS e
LEFT JOIN figures_lists AS l ON l.tenant = e.tenant AND l.kind = e.kind
WHERE e.total > COALESCE(l.seq, 0) ORDER BY e.tenant, e.kind LIMIT $1`

	// The next payments of a list.
	nextOfList = `SELECT ` + countedColumns + ` FROM payments WHERE tenant = $1 AND kind = $2 AND seq > $3 ORDER BY seq LIMIT $4`

	// The counted open payments that have changed, with the counted and the new status and rail.
	changedOpen = `SELECT o.tenant, o.kind, o.seq, o.mode, o.status, o.rail, o.amount, o.charges, o.created_at, p.status, p.rail
FROM figures_open AS o CROSS JOIN payments AS p
WHERE ` + ofOpen + ` AND (p.status <> o.status OR p.rail <> o.rail) LIMIT $1`

	// The collections that were paid late since a time, earliest first.
	paidLate = `SELECT c.at, p.tenant, p.kind, p.seq, p.mode, p.status, p.rail, p.amount, p.charges, p.created_at
FROM (SELECT payment, at FROM payment_contradictions WHERE at >= $1 AND event = 'paid_late' ORDER BY at LIMIT $2) AS c
JOIN payments AS p ON p.id = c.payment ORDER BY c.at`
)

func scanPayment(r *db.Row, before []any, after ...any) (p payment, err error) {
	dest := append(before[:len(before):len(before)], &p.tenant, &p.kind, &p.seq, &p.mode, &p.status, &p.rail, &p.amount, &p.charges, &p.at)
	err = r.Scan(append(dest, after...)...)
	return p, err
}

// listsAtOnce is the number of lists whose payments are read by one database query.
const listsAtOnce = 100

// readNew reads payments that are not yet counted, about most of them. rest reports whether there may be more.
func readNew(tx *db.Tx, most int) (found []payment, rest bool, err error) {
	type position struct {
		list
		seq int64
	}
	var behind []position
	if err := tx.Query(listsBehind, []any{most}, func(r *db.Row) error {
		var p position
		err := r.Scan(&p.tenant, &p.kind, &p.seq)
		behind = append(behind, p)
		return err
	}); err != nil {
		return nil, false, err
	}
	for len(behind) > 0 {
		if len(found) >= most {
			return found, true, nil
		}
		some := behind[:min(len(behind), listsAtOnce)]
		behind = behind[len(some):]
		each := max(1, (most-len(found))/len(some))
		queries := make([]db.Query, len(some))
		for i, p := range some {
			n := 0
			queries[i] = db.Query{SQL: nextOfList, Args: []any{p.tenant, p.kind, p.seq, each}, Each: func(r *db.Row) error {
				one, err := scanPayment(r, nil)
				found = append(found, one)
				if n++; n == each {
					rest = true
				}
				return err
			}}
		}
		if err := tx.Gather(queries...); err != nil {
			return nil, false, err
		}
	}
	return found, rest, nil
}

// A change is a counted payment with its current status and rail.
type change struct {
	was    payment
	status book.Status
	rail   string
}

func (c change) now() payment {
	p := c.was
	p.status, p.rail = c.status, c.rail
	return p
}

func readChanged(tx *db.Tx, most int) ([]change, error) {
	return db.All(tx, changedOpen, []any{most}, func(c *change, r *db.Row) error {
		was, err := scanPayment(r, nil, &c.status, &c.rail)
		c.was = was
		return err
	})
}

// A bit for each payment stores the status of collections that did not succeed, in blocks of blockRows.
const blockRows = 60

// An unpaidKey is a block of collections that were counted with a status.
type unpaidKey struct {
	tenant string
	status book.Status
	block  int64
}

func (p payment) unpaidKey() unpaidKey {
	return unpaidKey{p.tenant, p.status, (p.seq - 1) / blockRows}
}

func (p payment) bit() int64 { return 1 << ((p.seq - 1) % blockRows) }

const unpaidOfBlock = `SELECT status, bits FROM figures_unpaid WHERE tenant = $1 AND status IN ('declined', 'failed', 'invalid') AND block = $2`

// readLate reads the late payments of collections that were counted with another status. If there may be more, next
// is the time at which the next pass begins. Otherwise it is zero.
func readLate(tx *db.Tx, since int64, most int) (found []change, next int64, err error) {
	var late []payment
	seen, last := map[payment]bool{}, int64(0)
	n := 0
	if err := tx.Query(paidLate, []any{since, most}, func(r *db.Row) error {
		p, err := scanPayment(r, []any{&last})
		if n++; !seen[p] {
			seen[p] = true
			late = append(late, p)
		}
		return err
	}); err != nil {
		return nil, 0, err
	}
	if n == most {
		next = last
	}
	queries := make([]db.Query, len(late))
	for i, p := range late {
		queries[i] = db.Query{SQL: unpaidOfBlock, Args: []any{p.tenant, p.unpaidKey().block}, Each: func(r *db.Row) error {
			was, set := p, int64(0)
			err := r.Scan(&was.status, &set)
			if bits.OnesCount64(uint64(set&p.bit())) > 0 {
				found = append(found, change{was: was, status: p.status, rail: p.rail})
			}
			return err
		}}
	}
	return found, next, tx.Gather(queries...)
}
