package batch

import (
	"encoding/json"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// Counts are the numbers of rows of a batch by their states, with the sums and the registered names of the ready ones.
type Counts struct {
	Rows            map[RowState]int  `json:"rows"`
	Names           map[NameState]int `json:"names"`   // number of ready rows by state of their name; NameUnasked: not looked up
	Unnamed         int               `json:"unnamed"` // ready rows to bank accounts without a registered name
	Amount, Charges money.Pesewas
}

func newCounts() Counts { return Counts{Rows: map[RowState]int{}, Names: map[NameState]int{}} }

// add counts a row n times; -1 removes it.
func (c *Counts) add(r Row, n int) {
	c.Rows[r.State] += n
	if r.State != RowReady {
		return
	}
	c.Names[r.Named] += n
	c.Amount += r.Amount * money.Pesewas(n)
	c.Charges += r.Charges * money.Pesewas(n)
	if r.needsName() {
		c.Unnamed += n
	}
}

// named returns the number of ready rows with a registered name.
func (c Counts) named() int {
	return c.Names[NameSame] + c.Names[NameNear] + c.Names[NameDifferent] + c.Names[NameFound] + c.Names[NameChanged]
}

func encodeCounts(c *Counts) string {
	if c == nil {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic("batch: counts do not encode: " + err.Error())
	}
	return string(text)
}

func decodeCounts(text string) (*Counts, error) {
	if text == "" {
		return nil, nil
	}
	c := newCounts()
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return nil, fmt.Errorf("batch: parse stored counts: %w", err)
	}
	return &c, nil
}

const countRows = `SELECT state, named, CASE WHEN bank <> '' AND registered = '' THEN 1 ELSE 0 END, count(*), CAST(sum(amount) AS INTEGER), CAST(sum(charges) AS INTEGER)
FROM batch_rows WHERE batch = $1 GROUP BY 1, 2, 3`

// countIn counts the rows of a batch by reading all of them.
func countIn(tx *db.Tx, id string) (c Counts, err error) {
	c = newCounts()
	err = tx.Query(countRows, []any{id}, func(r *db.Row) error {
		var state RowState
		var named NameState
		var unnamed, n int
		var amount, charges money.Pesewas
		if err := r.Scan(&state, &named, &unnamed, &n, &amount, &charges); err != nil {
			return err
		}
		c.Rows[state] += n
		if state == RowReady {
			c.Names[named] += n
			c.Unnamed += unnamed * n
			c.Amount, c.Charges = c.Amount+amount, c.Charges+charges
		}
		return nil
	})
	return c, err
}
