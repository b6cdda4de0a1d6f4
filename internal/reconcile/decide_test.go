package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/money"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// payout returns a payout of 10.00 that succeeded at noon.
func payout() ours {
	return ours{ID: "p", AtRail: "mtn", Current: true, Amount: 1000, Paid: true, Party: "233241234567", From: noon.Add(-early), Until: noon}
}

// lineOf returns the line of that payout.
func lineOf(change func(*Line)) Line {
	l := Line{ID: "l", Amount: -1000, At: noon, Status: StatusSuccess, Party: "233241234567", Reference: refA, TheirID: "77"}
	if change != nil {
		change(&l)
	}
	return l
}

// A line that names a payment is matched with it. Each difference between the two is an exception.
func TestByReference_differences(t *testing.T) {
	type kinds = []Kind
	for name, c := range map[string]struct {
		line  func(*Line)
		ours  func(*ours)
		match bool
		leg   Leg
		want  kinds
	}{
		"the same":                          {nil, nil, true, LegMovement, nil},
		"another amount":                    {func(l *Line) { l.Amount = -1001 }, nil, true, LegMovement, kinds{AmountOff}},
		"another fee":                       {func(l *Line) { l.Fee, l.FeeKnown = 5, true }, nil, true, LegMovement, kinds{FeeOff}},
		"a fee that the file does not have": {nil, func(o *ours) { o.Fee = 5 }, true, LegMovement, nil},
		"paid there, failed here":           {nil, func(o *ours) { o.Paid = false }, true, LegMovement, kinds{StateOff}},
		"paid there, open here":             {nil, func(o *ours) { o.Paid, o.Open = false, true }, true, LegMovement, kinds{StateOff}},
		"failed there, paid here":           {func(l *Line) { l.Status = StatusFailed }, nil, false, LegMovement, kinds{StateOff}},
		"failed there and here":             {func(l *Line) { l.Status = StatusFailed }, func(o *ours) { o.Paid = false }, false, LegMovement, nil},
		"a failed try of a paid one":        {func(l *Line) { l.Status = StatusFailed }, func(o *ours) { o.Movement = "other" }, false, LegMovement, nil},
		"another failed try":                {func(l *Line) { l.Status = StatusFailed }, func(o *ours) { o.Denied = "other" }, false, LegMovement, nil},
		"a failed reversal":                 {func(l *Line) { l.Status, l.Amount = StatusFailed, 1000 }, nil, false, LegReversal, nil},
		"failed there, given up here":       {func(l *Line) { l.Status = StatusFailed }, func(o *ours) { o.Current = false }, false, LegMovement, nil},
		"pending there":                     {func(l *Line) { l.Status = StatusPending }, nil, false, "", nil},
		"a second line":                     {nil, func(o *ours) { o.Movement = "other" }, false, LegMovement, kinds{Twice}},
		"the line that is matched":          {nil, func(o *ours) { o.Movement = "l" }, true, LegMovement, nil},
		"taken back there":                  {func(l *Line) { l.Amount = 1000 }, nil, true, LegReversal, kinds{StateOff}},
		"taken back there and here":         {func(l *Line) { l.Amount = 1000 }, func(o *ours) { o.Paid, o.Movement = false, "m" }, true, LegReversal, nil},
		"taken back but never moved":        {func(l *Line) { l.Amount = 1000 }, func(o *ours) { o.Paid = false }, true, LegReversal, kinds{AmountOff}},
		"taken back twice":                  {func(l *Line) { l.Amount = 1000 }, func(o *ours) { o.Paid, o.Reversing = false, "other" }, false, LegReversal, kinds{Twice}},
		"a part taken back":                 {func(l *Line) { l.Amount = 400 }, nil, true, LegReversal, kinds{StateOff}},
		"a part taken back there and here":  {func(l *Line) { l.Amount = 400 }, func(o *ours) { o.Paid = false }, true, LegReversal, kinds{AmountOff}},
		"taken back with the fee":           {func(l *Line) { l.Amount = 1005 }, func(o *ours) { o.Paid, o.Movement, o.Fee = false, "m", 5 }, true, LegReversal, nil},
		"taken back as its line has it":     {func(l *Line) { l.Amount = 1007 }, func(o *ours) { o.Paid, o.Movement = false, "m"; moved := money.Pesewas(-1007); o.Moved = &moved }, true, LegReversal, nil},
		"paid, and then taken back":         {nil, func(o *ours) { o.Paid, o.Reversal = false, true }, true, LegMovement, nil},
		"an attempt that was given up":      {nil, func(o *ours) { o.Current = false }, false, LegMovement, kinds{StateOff}},
		"another amount and fee":            {func(l *Line) { l.Amount, l.Fee, l.FeeKnown = -900, 1, true }, nil, true, LegMovement, kinds{AmountOff, FeeOff}},
	} {
		o := payout()
		if c.ours != nil {
			c.ours(&o)
		}
		v := byReference(lineOf(c.line), o, RuleReference, day, noon.Add(2*day))
		var got kinds
		for _, d := range v.differences {
			got = append(got, d.Kind)
			if d.Amount <= 0 || d.Reason == "" {
				t.Errorf("%s: the difference is %+v", name, d)
			}
		}
		if (v.rule != "") != c.match || v.leg != c.leg || !slices.Equal(got, c.want) {
			t.Errorf("%s: match %q as %q with %v, want %v as %q with %v", name, v.rule, v.leg, got, c.match, c.leg, c.want)
		}
	}
}

// The fee of a payment that is not paid in our books is unknown. A statement amount less the fee then does not differ from the
// payment, and shows the payment as paid.
func TestByReference_lessTheFee(t *testing.T) {
	for name, c := range map[string]struct {
		in     bool
		amount money.Pesewas
		paid   bool
		want   bool
	}{
		"the amount":            {true, 1000, false, true},
		"less the fee":          {true, 981, false, true},
		"far less":              {true, 100, false, false},
		"more":                  {true, 1001, false, false},
		"a payout with its fee": {false, -1800, false, true},
		"a payout of less":      {false, -999, false, false},
		"a payout of far more":  {false, -3000, false, false},
		"another fee is booked": {true, 981, true, false},
	} {
		o := payout()
		o.In, o.Paid, o.Open = c.in, c.paid, !c.paid
		l := lineOf(func(l *Line) { l.Amount, l.net = c.amount, true })
		off := slices.ContainsFunc(byReference(l, o, RuleReference, day, noon.Add(2*day)).differences, func(d Difference) bool { return d.Kind == AmountOff })
		if off == c.want || o.has(l) != c.want {
			t.Errorf("%s: another amount %v, the payment's %v, want %v", name, off, o.has(l), c.want)
		}
	}
}

// Within the lag an open payment is in transit, not an exception.
func TestByReference_inTransit(t *testing.T) {
	o := payout()
	o.Paid, o.Open = false, true
	if v := byReference(lineOf(nil), o, RuleReference, day, noon.Add(day)); v.rule != RuleReference || len(v.differences) != 0 {
		t.Errorf("decided %+v", v)
	}
}

// Amount, direction, party and time match a line only if exactly one payment and one line have them.
func TestBySimilar_exactlyOne(t *testing.T) {
	one, other := payout(), payout()
	other.ID = "q"
	with := func(change func(*ours)) ours { o := payout(); change(&o); return o }
	for name, c := range map[string]struct {
		candidates []ours
		rivals     int
		want       bool
	}{
		"one":               {[]ours{one}, 1, true},
		"none":              {nil, 1, false},
		"two payments":      {[]ours{one, other}, 1, false},
		"two lines":         {[]ours{one}, 2, false},
		"another party":     {[]ours{with(func(o *ours) { o.Party = "233200000000" })}, 1, false},
		"another amount":    {[]ours{with(func(o *ours) { o.Amount++ })}, 1, false},
		"another direction": {[]ours{with(func(o *ours) { o.In = true })}, 1, false},
		"too late":          {[]ours{with(func(o *ours) { o.Until = noon.Add(-day - time.Second) })}, 1, false},
		"across midnight":   {[]ours{with(func(o *ours) { o.Until = noon.Add(-day) })}, 1, true},
		"too early":         {[]ours{with(func(o *ours) { o.From = noon.Add(time.Second) })}, 1, false},
		"matched already":   {[]ours{with(func(o *ours) { o.Movement = "x" })}, 1, false},
		"the other is used": {[]ours{one, with(func(o *ours) { o.Movement = "x" })}, 1, true},
	} {
		if _, ok := bySimilar(lineOf(nil), c.candidates, c.rivals, day); ok != c.want {
			t.Errorf("%s: %v, want %v", name, ok, c.want)
		}
	}
}

// A payer writes the narrative: a mention of a payment matches only if amount, direction and time agree.
func TestByNarrative_forged(t *testing.T) {
	for name, c := range map[string]struct {
		amount money.Pesewas
		at     time.Time
		want   bool
	}{
		"all agree":         {-1000, noon, true},
		"another amount":    {-999, noon, false},
		"another direction": {1000, noon, false},
		"too late":          {-1000, noon.Add(day + time.Second), false},
	} {
		l := lineOf(func(l *Line) { l.Amount, l.At, l.Reference, l.Text = c.amount, c.at, "", "for "+refA })
		if _, ok, suggestion := byNarrative(l, []ours{payout()}, day); ok != c.want || suggestion == "" {
			t.Errorf("%s: %v with %q, want %v", name, ok, suggestion, c.want)
		}
	}
	if _, ok, _ := byNarrative(lineOf(nil), []ours{payout(), payout()}, day); ok {
		t.Error("two payments match")
	}
}
