package history

import (
	"math/bits"
	"slices"

	"github.com/makola/makola/internal/db"
)

// A block is a range of sequence numbers. n is the number of its entries that have the status. In a leaf, bits shows
// which entries these are.
type block struct{ number, n, bits int64 }

// A blockKey identifies a block.
type blockKey struct {
	level  int
	number int64
}

// ranks counts the entries of a list that match a status.
type ranks struct {
	*Reader
	finals [4]string
	rest   bool                 // match the entries without one of finals, instead of those with one
	tops   []block              // largest blocks in order, without blocks that have no matching entry
	below  map[blockKey][]block // loaded parts of blocks, in order and without blocks that have no matching entry
}

const countersOf = `SELECT block, n FROM payment_counters
WHERE tenant = $1 AND kind = $2 AND status IN ($3, $4, $5, $6) AND level = $7 AND block BETWEEN $8 AND $9`

// counters returns the query for the counters of some blocks of one level.
func (r *ranks) counters(level int, first, last int64, into map[int64]int64) db.Query {
	s := r.finals
	return db.Query{SQL: countersOf, Args: []any{r.list.Tenant, r.list.Kind, s[0], s[1], s[2], s[3], level, first, last}, Each: func(row *db.Row) error {
		var number, n int64
		err := row.Scan(&number, &n)
		into[number] += n
		return err
	}}
}

// blocks returns the blocks with matching entries. stored has the stored numbers of all blocks.
func (r *ranks) blocks(level int, first, last int64, stored map[int64]int64) []block {
	var found []block
	for number := first; number <= last; number++ {
		b := block{number: number, n: stored[number]}
		width := max(0, min(r.total-number*blockRows[level], blockRows[level]))
		if level == 0 {
			if b.bits = b.n; r.rest {
				b.bits = bitsBelow(width) &^ b.bits
			}
			b.n = int64(bits.OnesCount64(uint64(b.bits)))
		} else if r.rest {
			b.n = width - b.n
		}
		if b.n > 0 {
			found = append(found, b)
		}
	}
	return found
}

// bitsBelow returns the bits of the first n entries of a leaf.
func bitsBelow(n int64) int64 { return 1<<n - 1 }

// load reads the parts of blocks of one level. numbers must be in order.
func (r *ranks) load(level int, numbers []int64) error {
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool {
		_, loaded := r.below[blockKey{level, n}]
		return loaded
	})
	stored := map[int64]int64{}
	var queries []db.Query
	for i := 0; i < len(numbers); {
		// Adjacent blocks are read with one query. For a final status, one query also reads distant blocks, because
		// only blocks with such entries have stored numbers.
		last := i
		for last+1 < len(numbers) && (!r.rest || numbers[last+1] == numbers[last]+1) {
			last++
		}
		queries = append(queries, r.counters(level-1, numbers[i]*fan, (numbers[last]+1)*fan-1, stored))
		i = last + 1
	}
	if err := r.tx.Gather(queries...); err != nil {
		return err
	}
	for _, n := range numbers {
		r.below[blockKey{level, n}] = r.blocks(level-1, n*fan, (n+1)*fan-1, stored)
	}
	return nil
}

// before returns the number of matching entries with a smaller sequence number.
func (r *ranks) before(seq int64) (n int64, err error) {
	parts := r.tops
	for level := topLevel; ; level-- {
		at := blockOf(seq, level)
		var here block
		for _, b := range parts {
			switch {
			case b.number < at || seq > r.total:
				n += b.n
			case b.number == at:
				here = b
			}
		}
		passed := seq - 1 - at*blockRows[level] // number of the block's entries before seq
		switch {
		case here.n == 0 || passed == 0:
			return n, nil
		case level == 0:
			return n + int64(bits.OnesCount64(uint64(here.bits&bitsBelow(passed)))), nil
		}
		if err := r.load(level, []int64{at}); err != nil {
			return 0, err
		}
		parts = r.below[blockKey{level, at}]
	}
}

// between returns the sequence numbers of the matching entries with low < rank <= high, in order.
func (r *ranks) between(low, high int64) ([]int64, error) {
	parts, rank := r.tops, int64(0)
	for level := topLevel; ; level-- {
		// reach has the blocks that contain these ranks.
		var reach []block
		passed := rank
		for _, b := range parts {
			if passed < high && passed+b.n > low {
				if len(reach) == 0 {
					rank = passed
				}
				reach = append(reach, b)
			}
			passed += b.n
		}
		if level == 0 {
			return ranked(reach, rank, low, high), nil
		}
		numbers := make([]int64, len(reach))
		for i, b := range reach {
			numbers[i] = b.number
		}
		if err := r.load(level, numbers); err != nil {
			return nil, err
		}
		parts = nil
		for _, n := range numbers {
			parts = append(parts, r.below[blockKey{level, n}]...)
		}
	}
}

// ranked returns the sequence numbers with low < rank <= high in leaves. rank is the number of matching entries
// before the first leaf.
func ranked(leaves []block, rank, low, high int64) []int64 {
	seqs := make([]int64, 0, high-low)
	for _, leaf := range leaves {
		for is := uint64(leaf.bits); is != 0; is &= is - 1 {
			if rank++; rank > low && rank <= high {
				seqs = append(seqs, leaf.number*leafRows+int64(bits.TrailingZeros64(is))+1)
			}
		}
	}
	return seqs
}
