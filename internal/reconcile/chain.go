package reconcile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// candidate is one way to read the amounts and the order of lines. The balances prove or disprove it.
type candidate struct {
	sign         Sign
	newest, fees bool

	broken   int           // the first row whose balance does not follow from the one before; 0: none
	expected money.Pesewas // balance there
	proofs   int           // number of balances that follow from the one before
	before   bool          // the balance of the row before is known
	balance  money.Pesewas // the last known balance, with the changes since
	pending  []entry       // if the newest line is first: rows since the last known balance, whose changes lead to it
}

// next reads a row.
func (k *candidate) next(e entry) {
	if k.broken > 0 {
		return
	}
	if k.sign == SignBalance {
		k.byBalance(e)
		return
	}
	change := e.effect(e.directed(k.sign), k.fees)
	if k.newest {
		k.compare(e, k.balance)
		if e.Balanced || k.before {
			base := k.balance
			if e.Balanced {
				base = e.Balance
			}
			k.balance, k.before = base-change, true
		}
		return
	}
	k.compare(e, k.balance+change)
	switch {
	case e.Balanced:
		k.balance, k.before = e.Balance, true
	case k.before:
		k.balance += change
	}
}

// compare checks the balance of a row.
func (k *candidate) compare(e entry, expected money.Pesewas) {
	if !k.before || !e.Balanced {
		return
	}
	if e.Balance == expected {
		k.proofs++
		return
	}
	k.broken, k.expected = e.Row, expected
}

// byBalance checks that the balance changed by the amount of a row, in either direction.
func (k *candidate) byBalance(e entry) {
	of, change := e, e.Balance-k.balance
	if k.newest && len(k.pending) > 0 {
		of, change = k.pending[0], k.balance-e.Balance
	}
	k.pending = append(k.pending[:0], e)
	if !e.Balanced {
		k.broken = e.Row
		return
	}
	if k.before {
		if _, ok := directions(of, change, k.fees); ok {
			k.proofs++
		} else {
			k.broken, k.expected = e.Row, k.balance
		}
	}
	k.balance, k.before = e.Balance, true
}

// directions returns the amount of a row with the direction in which the balance changed.
func directions(e entry, change money.Pesewas, fees bool) (amount money.Pesewas, ok bool) {
	size := magnitude(e.amount)
	for _, amount := range []money.Pesewas{size, -size} {
		if e.effect(amount, fees) == change {
			return amount, true
		}
	}
	return 0, false
}

// chain reads the whole file and checks every cell, the balances and the totals.
func (r *reader) chain() error {
	list := r.candidates()
	var sums totals
	var first, last entry
	signed := false
	err := r.each(func(c cells, kind rowKind) error {
		if kind == totalling {
			return sums.compare(c)
		}
		e, err := r.entryOf(c, kind)
		if err != nil {
			return err
		}
		for _, k := range list {
			k.next(e)
		}
		if !e.line {
			return nil
		}
		signed = signed || e.amount < 0
		sums.add(e)
		if first.Row == 0 {
			first = e
		}
		last = e
		r.span(e.Line)
		return nil
	})
	if err != nil {
		return err
	}
	return r.decide(list, first, last, signed)
}

// entryOf parses a row. A row with only a balance has no date of its own.
func (r *reader) entryOf(c cells, kind rowKind) (e entry, err error) {
	if kind == movement {
		return c.entry()
	}
	e.Row = c.raw.Line
	e.Balance, e.Balanced, err = c.amountOf(FieldBalance)
	return e, err
}

// span keeps the times of the first and the last line.
func (r *reader) span(l Line) {
	if r.First.IsZero() || l.At.Before(r.First) {
		r.First = l.At
	}
	if l.At.After(r.Last) {
		r.Last = l.At
	}
}

// candidates returns the possible interpretations of the file before any row is read.
func (r *reader) candidates() (list []*candidate) {
	signs := []Sign{SignIn, SignOut, SignBalance}
	if r.Sign != "" && r.Sign != SignColumns {
		signs = []Sign{r.Sign}
	}
	if _, amount := r.Columns[FieldAmount]; !amount {
		signs = []Sign{SignColumns}
	}
	for _, sign := range signs {
		for _, newest := range []bool{false, true} {
			for _, fees := range []bool{false, true} {
				list = append(list, &candidate{sign: sign, newest: newest, fees: fees})
			}
		}
	}
	return list
}

// decide chooses the reading, or returns a question about the sign if several readings fit.
func (r *reader) decide(list []*candidate, first, last entry, signed bool) error {
	list = slices.DeleteFunc(list, func(k *candidate) bool {
		return k.newest && first.At.Before(last.At) || !k.newest && first.At.After(last.At) || k.sign == SignBalance && signed
	})
	if len(list) == 0 {
		return problem.Field("file", "has amounts with a sign, unlike earlier files")
	}
	fit := slices.DeleteFunc(slices.Clone(list), func(k *candidate) bool { return k.broken > 0 })
	if len(fit) == 0 {
		return brokenChain(list)
	}
	proved := slices.DeleteFunc(slices.Clone(fit), func(k *candidate) bool { return k.proofs == 0 })
	if len(proved) > 0 {
		fit = proved
		// A sign of the row itself is preferred to one derived from the balance.
		if fit[0].sign != SignBalance {
			fit = slices.DeleteFunc(fit, func(k *candidate) bool { return k.sign == SignBalance })
		}
	} else if r.Sign == "" {
		fit = slices.DeleteFunc(fit, func(k *candidate) bool { return k.sign == SignBalance })
	}
	if slices.ContainsFunc(fit, func(k *candidate) bool { return k.sign != fit[0].sign }) {
		r.Questions = append(r.Questions, Question{QuestionSign, "Is an amount above zero money that came in or money that went out? Both readings fit.", []string{string(SignIn), string(SignOut)}})
		return nil
	}
	r.settle(fit[0])
	if len(proved) > 0 && !slices.ContainsFunc(fit, func(k *candidate) bool { return k.fees != fit[0].fees }) {
		r.Layout.Fees = map[bool]Fees{true: FeesApart, false: FeesWithin}[fit[0].fees]
	}
	return nil
}

// settle stores the chosen reading.
func (r *reader) settle(k *candidate) {
	r.Sign, r.newest, r.fees = k.sign, k.newest, k.fees
	_, balances := r.Columns[FieldBalance]
	r.Chains = balances && (k.proofs > 0 || r.Lines == 1)
}

// brokenChain refuses a file with the error of the reading that fits the most rows.
func brokenChain(list []*candidate) error {
	best := slices.MaxFunc(list, func(a, b *candidate) int { return cmp.Compare(a.broken, b.broken) })
	return refused(best.broken, "", fmt.Sprintf("has a balance that does not follow from the row before; %s was expected. The file has a gap, or a row was changed", best.expected))
}

// totals are the sums of the rows above a totals row.
type totals struct{ all, done, since sums }

type sums struct{ amount, debit, credit, fee money.Pesewas }

func (s *sums) add(e entry) {
	s.amount += e.amount
	s.debit += magnitude(e.debit)
	s.credit += e.credit
	s.fee += e.Fee
}

func (t *totals) add(e entry) {
	t.all.add(e)
	t.since.add(e)
	if e.moves() {
		t.done.add(e)
	}
}

// compare refuses a totals row that equals none of three sums: all rows, the successful rows, and the rows since the
// last totals row.
func (t *totals) compare(c cells) error {
	for field, of := range map[Field]func(sums) money.Pesewas{
		FieldAmount: func(s sums) money.Pesewas { return s.amount }, FieldDebit: func(s sums) money.Pesewas { return s.debit }, FieldCredit: func(s sums) money.Pesewas { return s.credit }} {
		total, has, err := c.amountOf(field)
		if err != nil {
			return err
		}
		if field == FieldDebit {
			total = magnitude(total)
		}
		if has && total != of(t.all) && total != of(t.done) && total != of(t.since) {
			return c.bad(field, fmt.Sprintf("the total is %s, and the rows above add up to %s", total, of(t.all)))
		}
	}
	t.since = sums{}
	return nil
}

// lines returns the lines of the file in its order, with direction and identity. The file must have been surveyed.
func (r *reader) lines(do func(Line) error) error {
	names := counted{}
	give := func(e entry, amount money.Pesewas) error {
		e.finish(amount)
		names.name(&e.Line)
		return do(e.Line)
	}
	d := director{r: r, give: give}
	err := r.each(func(c cells, kind rowKind) error {
		if kind == totalling {
			return nil
		}
		e, err := r.entryOf(c, kind)
		if err != nil {
			return err
		}
		return d.next(e)
	})
	if err == nil {
		err = d.end()
	}
	return err
}

// director sets the direction of lines. If the direction follows from the balance and the newest line comes first, a
// line needs the row after it.
type director struct {
	r       *reader
	give    func(entry, money.Pesewas) error
	before  *entry
	openAt  bool // the opening balance is known
	opening money.Pesewas
	closing money.Pesewas
}

func (d *director) next(e entry) error {
	d.note(e)
	if d.r.Sign != SignBalance {
		d.before = &e
		if !e.line {
			return nil
		}
		return d.give(e, e.directed(d.r.Sign))
	}
	before := d.before
	d.before = &e
	if d.r.newest {
		if before == nil || !before.line {
			return nil
		}
		return d.directed(*before, before.Balance-e.Balance)
	}
	if !e.line {
		return nil
	}
	if before == nil {
		return d.alone(e)
	}
	return d.directed(e, e.Balance-before.Balance)
}

// end sets the direction of the oldest line of a file with the newest line first.
func (d *director) end() error {
	if d.r.Sign == SignBalance && d.r.newest && d.before != nil && d.before.line {
		if err := d.alone(*d.before); err != nil {
			return err
		}
	}
	if d.r.newest {
		d.opening, d.closing = d.closing, d.opening
	}
	d.r.Opening, d.r.Closing = d.opening, d.closing
	return nil
}

func (d *director) directed(e entry, change money.Pesewas) error {
	amount, ok := directions(e, change, d.r.fees)
	if !ok {
		return refused(e.Row, "", "has a balance that does not follow from the row before")
	}
	return d.give(e, amount)
}

// alone sets the direction of the oldest line by its type, because no balance shows it.
func (d *director) alone(e entry) error {
	size := magnitude(e.amount)
	for _, words := range []struct {
		list []string
		sign money.Pesewas
	}{{[]string{"debit", "withdraw", "cash out", "transfer", "payout", "disburse"}, -1}, {[]string{"credit", "deposit", "cash in", "payment", "collect", "receive"}, 1}} {
		for _, word := range words.list {
			if containsFold(e.Type, word) {
				return d.give(e, words.sign*size)
			}
		}
	}
	return refused(e.Row, "", "is the oldest line, and no balance shows its direction: download the file from an earlier day, with a row that has the opening balance")
}

// note stores the balances at both ends of the file.
func (d *director) note(e entry) {
	if !e.Balanced {
		return
	}
	change := e.effect(e.directed(d.r.Sign), d.r.fees)
	if !d.openAt {
		d.openAt = true
		d.opening = e.Balance
		if !d.r.newest {
			d.opening -= change
		}
	}
	d.closing = e.Balance
	if d.r.newest {
		d.closing -= change
	}
}
