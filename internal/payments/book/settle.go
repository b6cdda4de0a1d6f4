package book

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/webhook"
)

// A settlement asks for one arrow of the table: a final word, a word that
// contradicts an earlier one, or a mark on an open payment.
type Settlement struct {
	Payment Payment // as last read; Attempt must still be the current one
	Event   Event
	At      time.Time // made by settle when zero
	// known: payment is what this process itself last wrote or read as the
	// owner of its job, so that it may be tried without reading again.
	Known   bool
	Reason  string           // stable code; decides between failed, declined and invalid
	Outcome provider.Outcome // UpstreamID, Fee, Commission, Name
	Refused bool             // payouts: the request that asked is still waiting and is told so
	Note    string           // an operator's reason
	Mark    *Mark            // for the arrows that stay on pending
	// posts, where it is not 0, must still be the row's, and payment's mark, too: the
	// word is about these submissions, and another node that took the payment over may have
	// sent one more, or the first.
	Posts int
	// judge, where it is not nil, may refuse the row as it is under its lock.
	Judge func(Payment) error
	// also runs in the same transaction: an operator's audit row.
	Also func(*db.Tx) error
}

// A settled is what came of a settlement.
type Settled struct {
	Payment Payment // the row as it is now
	Changed bool    // false: another process was first, or the arrow does not start where the row is
}

// A move is a change of status as it is written, row being what becomes of it.
type move struct {
	row     Payment
	was     Status
	wasHeld time.Time
	posts   int // 0: any
}

// A Mark changes the attempt of an open payment; row is what becomes of it.
type Mark struct {
	Row                  Payment
	WasAttempt, WasPosts int
	WasSending, WasHeld  time.Time
}

// MarkTo is the mark by which an open payment as it was read becomes row.
func (p Payment) MarkTo(row Payment) *Mark {
	return &Mark{Row: row, WasAttempt: p.Attempt, WasPosts: p.Posts, WasSending: p.SendingAt, WasHeld: p.HeldUntil}
}

// A contradiction notes that a provider contradicted its own final word: for the first
// time, or again, after the word that was.
type contradiction struct {
	row   Payment
	again bool
	was   string
}

// An abandonedAttempt is an attempt that gave way to another.
type abandonedAttempt struct {
	row    Payment // as it was
	reason string
	at     time.Time
}

// Settle takes a payment along an arrow: the guarded transition, its postings,
// the customer's event, the counters, and the end of the job where the payment
// is final, in one transaction with whatever else is waiting. Arrows that post
// to a wallet go through the wallet's lane, the others through the lanes by
// payment.
func (bk *Book) Settle(ctx context.Context, s Settlement) (Settled, error) {
	if s.At.IsZero() {
		s.At = bk.clock.Now()
	}
	l := bk.lanes.payment(s.Payment.ID)
	if s.byWallet() {
		l = bk.lanes.wallet(s.Payment.Tenant)
	}
	r, err := l.Do(ctx, s.Payment.Tenant, rowsOf, &Op{Settle: &s})
	if err != nil {
		return Settled{}, err
	}
	return Settled{Payment: r.Payment, Changed: r.Changed}, nil
}

// byWallet says whether an arrow of the event can lock a wallet.
func (s *Settlement) byWallet() bool {
	switch s.Event {
	case EventSucceeded:
		return s.Payment.Kind == KindCollection
	case EventFailed:
		return s.Payment.Kind != KindCollection
	case EventPaidLate:
		return true
	case EventReversed:
		return s.Payment.Kind == KindCollection
	}
	return false
}

// settleOne judges a settlement inside the transaction and adds what it writes.
func (b *batch) settleOne(s *Settlement) (Result, error) {
	row := b.rows[s.Payment.ID]
	if row == nil {
		return Result{}, problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	}
	if s.Judge != nil {
		if err := s.Judge(*row); err != nil {
			return Result{}, err
		}
	}
	way, ok := arrow(row.Kind, row.Status, s.Event)
	if b.touched[row.ID] { // one change of a row in a transaction
		return Result{Payment: *row}, nil
	}
	if !ok || row.Attempt != s.Payment.Attempt || s.Posts != 0 && (row.Posts != s.Posts || !row.SendingAt.Equal(s.Payment.SendingAt)) {
		return Result{Payment: *row}, nil
	}
	var err error
	switch {
	case s.Mark != nil:
		if !s.Mark.starts(*row) {
			return Result{Payment: *row}, nil
		}
		b.markOne(row, s)
	case s.Event == EventReversed || s.Event == EventFoundPaid:
		if !row.ContradictedAt.IsZero() {
			return Result{Payment: *row}, nil
		}
		err = b.contradictOne(row, way, s)
	case s.Event == EventOpposite:
		if row.ContradictedAt.IsZero() || row.ProviderState() == s.Outcome.State {
			return Result{Payment: *row}, nil
		}
		b.opposeOne(row, s)
	default:
		err = b.moveOne(row, way, s)
	}
	if err != nil {
		return Result{}, err
	}
	b.touched[row.ID] = true
	if s.Also != nil {
		b.also = append(b.also, s.Also)
	}
	return Result{Payment: *row, Changed: true}, nil
}

// moveOne ends a payment, or revives one that had ended.
func (b *batch) moveOne(row *Payment, way Arrow, s *Settlement) error {
	was := row.Status
	to := way.To[0]
	if s.Event == EventFailed {
		to = failure(row.Kind, s.Reason)
	}
	if !slices.Contains(way.To, to) {
		return errNoArrow(*row, s.Event)
	}
	if err := b.postings(way, *row, s.At); err != nil {
		return err
	}
	if to == StatusSuccess {
		if err := b.providerCosts(*row, s); err != nil {
			return err
		}
	}
	row.Status, row.SettledAt, row.Reason = to, s.At, s.Reason
	row.Refused, row.Note, row.EscalatedAt = s.Refused, s.Note, time.Time{}
	row.Class, row.Classed = s.Outcome.Class, true
	row.Refusal, row.RefusalReason, row.RefusedAt = RefusalNone, "", time.Time{}
	held := row.HeldUntil
	row.HeldUntil = time.Time{}
	if s.Outcome.UpstreamID != "" {
		row.UpstreamID = s.Outcome.UpstreamID
	}
	if row.AccountName == "" {
		row.AccountName = s.Outcome.Name
	}
	b.moves = append(b.moves, move{row: *row, was: was, wasHeld: held, posts: s.Posts})
	b.tally.Changes(listOf(*row), row.Seq, was.counted(), to.counted())
	b.recheckLater(*row, s.At)
	if was == StatusPending {
		b.finished = append(b.finished, row.ID)
		b.closed = append(b.closed, row.ID)
	}
	if s.Event == EventPaidLate {
		b.contradicts(*row, s)
	}
	b.event(*row, way, was.Open(), s.At)
	if row.Child != "" && was == StatusPending {
		return b.childOne(*row, s)
	}
	return nil
}

// childOne opens the top-up that a collection paid for, or ends it with the
// collection.
func (b *batch) childOne(parent Payment, s *Settlement) error {
	child := b.rows[parent.Child]
	e := childEvent(parent.Status)
	if child == nil {
		return errNoArrow(Payment{Kind: KindTopUp, Status: "missing"}, e)
	}
	way, ok := arrow(child.Kind, child.Status, e)
	if !ok {
		return errNoArrow(*child, e)
	}
	if err := b.postings(way, *child, s.At); err != nil {
		return err
	}
	was := child.Status
	child.Status = way.To[0]
	if child.Status.Open() {
		b.job(b.book.hooks.Track(*child), *child)
	} else {
		child.SettledAt, child.Reason = s.At, s.Reason
	}
	b.moves = append(b.moves, move{row: *child, was: was})
	b.tally.Changes(listOf(*child), child.Seq, was.counted(), child.Status.counted())
	b.event(*child, way, true, s.At)
	return nil
}

// contradictOne notes a contradiction. What a reversed collection takes back from its
// tenant stops the tenant's payouts.
func (b *batch) contradictOne(row *Payment, way Arrow, s *Settlement) error {
	if err := b.postings(way, *row, s.At); err != nil {
		return err
	}
	if err := b.contradictedCosts(*row, s); err != nil {
		return err
	}
	row.ContradictedAt = s.At
	if s.Event == EventReversed {
		row.Reason = cmp.Or(s.Reason, provider.ReasonReversed)
		if row.Kind == KindCollection {
			b.stopped = append(b.stopped, row.Tenant)
		}
	}
	if s.Note != "" {
		row.Note = s.Note
	}
	b.turns = append(b.turns, contradiction{row: *row})
	b.contradicts(*row, s)
	return nil
}

// opposeOne keeps a word that contradicts an earlier contradiction. What is in
// suspense stays there.
func (b *batch) opposeOne(row *Payment, s *Settlement) {
	was := row.LastWord
	row.LastWord = s.Outcome.State.String()
	b.turns = append(b.turns, contradiction{row: *row, again: true, was: was})
	b.contradicts(*row, s)
}

func (b *batch) markOne(row *Payment, s *Settlement) {
	if s.Event == EventRerouted {
		b.left = append(b.left, abandonedAttempt{row: *row, reason: s.Reason, at: s.At})
	}
	opens := row.Waits() && !s.Mark.Row.Waits()
	*row = s.Mark.Row
	b.marks = append(b.marks, *s.Mark)
	if opens {
		b.job(b.book.hooks.Track(*row), *row)
	}
}

// starts says whether a row is where a mark begins.
func (m *Mark) starts(row Payment) bool {
	return row.Attempt == m.WasAttempt && row.Posts == m.WasPosts && row.SendingAt.Equal(m.WasSending) && row.HeldUntil.Equal(m.WasHeld)
}

// covered is how much of a reversed collection its wallet can give back.
func (b *batch) covered(p Payment) int64 {
	return max(0, min(int64(p.Net()), b.page.Available(walletOf(p))))
}

// providerCosts posts what the provider took for itself or gave us, as far as it
// says so.
func (b *batch) providerCosts(p Payment, s *Settlement) error {
	if !s.Outcome.FeeKnown {
		return nil
	}
	var transfers []ledger.Transfer
	add := func(leg string, from, to ledger.AccountID, amount money.Pesewas) {
		if amount > 0 {
			transfers = append(transfers, transfer(p, s.Event, leg, from, to, int64(amount), s.At))
		}
	}
	add(LegProviderFee, ledger.ProviderFees(p.Rail), ledger.Float(p.Rail), s.Outcome.Fee)
	add(LegCommission, ledger.Float(p.Rail), ledger.Commission(p.Rail), s.Outcome.Commission)
	return b.add(p, transfers...)
}

// event tells the customer, where the arrow says so and the customer asked. A
// payout that was refused in its own answer is no payout to its customer: a
// webhook besides the answer would have it refunded twice in their books.
func (b *batch) event(p Payment, way Arrow, first bool, at time.Time) {
	url := p.CallbackURL
	if child := b.rows[p.Child]; url == "" && p.Child != "" && way.Event == EventPaidLate && child != nil {
		url = child.CallbackURL // the receiver that was told of the failed airtime hears of the money
	}
	if !way.Callback || url == "" || p.Refused {
		return
	}
	kind := webhook.Payout
	switch p.Kind {
	case KindCollection:
		kind = webhook.Collection
	case KindTopUp, KindBundle:
		kind = webhook.Airtime
	}
	status := string(StatusFailed)
	if p.Status == StatusSuccess {
		status = string(StatusSuccess)
	}
	b.events = append(b.events, webhook.Event{
		ID: eventID(p, status, first), Tenant: p.Tenant, Mode: p.Mode, Subject: p.ID, Kind: kind, URL: url,
		Amount: p.Amount, Charges: p.Charges, Status: status, Reference: p.Reference,
		ProviderReference: p.ProviderReference, Phone: p.MSISDN().Local(), First: first,
	})
}

// eventID is the webhook-id of a payment's final word. It is made from what both
// lives of a database that went back in time know, so that a customer who was told
// in the first one recognises the second telling. Its first bytes put a later word
// after the first one.
func eventID(p Payment, status string, first bool) string {
	number := byte(2)
	if first {
		number = 1
	}
	sum := sha256.Sum256([]byte(p.ProviderReference + "/" + string(p.Kind) + "/" + status + "/" + string('0'+rune(number))))
	id := uuid.UUID(sum[:16])
	id[0], id[1], id[2], id[3] = 0, 0, 0, number
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// An openPayment is one that the transaction opened, with its memory.
type openPayment struct {
	memo any
	row  Payment
}

// job adds the job of an open payment.
func (b *batch) job(memo any, p Payment) {
	b.opened = append(b.opened, openPayment{memo, p})
	b.jobs = append(b.jobs, JobOf(p, b.book.clock.Now(), memo))
}

var moveColumns = []db.Column[move]{
	{Name: "id", Text: func(m move) string { return m.row.ID }},
	{Name: "was", Text: func(m move) string { return string(m.was) }},
	{Name: "attempt", Int: func(m move) int64 { return int64(m.row.Attempt) }},
	{Name: "posts", Int: func(m move) int64 { return int64(m.posts) }},
	{Name: "sending_at", Int: func(m move) int64 { return db.Micros(m.row.SendingAt) }},
	{Name: "status", Text: func(m move) string { return string(m.row.Status) }},
	{Name: "settled_at", Int: func(m move) int64 { return db.Micros(m.row.SettledAt) }},
	{Name: "reason", Text: func(m move) string { return m.row.Reason }},
	{Name: "refused", Bool: func(m move) bool { return m.row.Refused }},
	{Name: "note", Text: func(m move) string { return m.row.Note }},
	{Name: "class", Text: func(m move) string { return classWord(m.row) }},
	{Name: "upstream_id", Text: func(m move) string { return m.row.UpstreamID }},
	{Name: "account_name", Text: func(m move) string { return m.row.AccountName }},
	{Name: "was_held", Int: func(m move) int64 { return db.Micros(m.wasHeld) }},
}

var markColumns = []db.Column[Mark]{
	{Name: "id", Text: func(m Mark) string { return m.Row.ID }},
	{Name: "was_attempt", Int: func(m Mark) int64 { return int64(m.WasAttempt) }},
	{Name: "was_posts", Int: func(m Mark) int64 { return int64(m.WasPosts) }},
	{Name: "was_sending", Int: func(m Mark) int64 { return db.Micros(m.WasSending) }},
	{Name: "rail", Text: func(m Mark) string { return m.Row.Rail }},
	{Name: "attempt", Int: func(m Mark) int64 { return int64(m.Row.Attempt) }},
	{Name: "attempt_reference", Text: func(m Mark) string { return m.Row.AttemptReference }},
	{Name: "posts", Int: func(m Mark) int64 { return int64(m.Row.Posts) }},
	{Name: "unsent", Int: func(m Mark) int64 { return int64(m.Row.Unsent) }},
	{Name: "sending_at", Int: func(m Mark) int64 { return db.Micros(m.Row.SendingAt) }},
	{Name: "class", Text: func(m Mark) string { return classWord(m.Row) }},
	{Name: "reason", Text: func(m Mark) string { return m.Row.Reason }},
	{Name: "escalated_at", NullInt: func(m Mark) *int64 { return nullTime(m.Row.EscalatedAt) }},
	{Name: "refusal", Text: func(m Mark) string { return string(m.Row.Refusal) }},
	{Name: "refusal_reason", Text: func(m Mark) string { return m.Row.RefusalReason }},
	{Name: "refused_at", Int: func(m Mark) int64 { return db.Micros(m.Row.RefusedAt) }},
	{Name: "held_until", Int: func(m Mark) int64 { return db.Micros(m.Row.HeldUntil) }},
	{Name: "was_held", Int: func(m Mark) int64 { return db.Micros(m.WasHeld) }},
}

var turnColumns = []db.Column[contradiction]{
	{Name: "id", Text: func(t contradiction) string { return t.row.ID }},
	{Name: "status", Text: func(t contradiction) string { return string(t.row.Status) }},
	{Name: "reason", Text: func(t contradiction) string { return t.row.Reason }},
	{Name: "note", Text: func(t contradiction) string { return t.row.Note }},
	{Name: "turned_at", Int: func(t contradiction) int64 { return db.Micros(t.row.ContradictedAt) }},
	{Name: "again", Bool: func(t contradiction) bool { return t.again }},
	{Name: "was", Text: func(t contradiction) string { return t.was }},
	{Name: "last_word", Text: func(t contradiction) string { return t.row.LastWord }},
}

var leftColumns = []db.Column[abandonedAttempt]{
	{Name: "tenant", Text: func(l abandonedAttempt) string { return l.row.Tenant }},
	{Name: "kind", Text: func(l abandonedAttempt) string { return string(l.row.Kind) }},
	{Name: "payment", Text: func(l abandonedAttempt) string { return l.row.ID }},
	{Name: "number", Int: func(l abandonedAttempt) int64 { return int64(l.row.Attempt) }},
	{Name: "rail", Text: func(l abandonedAttempt) string { return l.row.Rail }},
	{Name: "provider_reference", Text: func(l abandonedAttempt) string { return l.row.AttemptReference }},
	{Name: "posts", Int: func(l abandonedAttempt) int64 { return int64(l.row.Posts) }},
	{Name: "class", Text: func(abandonedAttempt) string { return provider.NotSent.String() }},
	{Name: "reason", Text: func(l abandonedAttempt) string { return l.reason }},
	{Name: "ended_at", Int: func(l abandonedAttempt) int64 { return db.Micros(l.at) }},
}

func classWord(p Payment) string {
	if !p.Classed {
		return ""
	}
	return p.Class.String()
}

func nullTime(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	us := db.Micros(t)
	return &us
}

// The guards: the row is still where the arrow begins, and the attempt is still
// the current one. A row that is not there fails the whole transaction.
const (
	paymentsMove = `UPDATE payments SET status = m.status, settled_at = m.settled_at, reason = m.reason,
refused = m.refused, note = m.note, class = m.class, upstream_id = m.upstream_id, account_name = m.account_name, escalated_at = NULL,
refusal = '', refusal_reason = '', refused_at = 0, held_until = 0
FROM rows($1) AS m
WHERE payments.id IN (m.id) AND payments.status = m.was AND payments.attempt = m.attempt AND payments.held_until = m.was_held
AND (m.posts = 0 OR payments.posts = m.posts AND payments.sending_at = m.sending_at)`

	paymentsMark = `UPDATE payments SET rail = m.rail, attempt = m.attempt, attempt_reference = m.attempt_reference, posts = m.posts,
unsent = m.unsent, sending_at = m.sending_at, class = m.class, reason = m.reason, escalated_at = m.escalated_at,
refusal = m.refusal, refusal_reason = m.refusal_reason, refused_at = m.refused_at, held_until = m.held_until
FROM rows($1) AS m
WHERE payments.id IN (m.id) AND payments.status = 'pending' AND payments.held_until = m.was_held
AND payments.attempt = m.was_attempt AND payments.posts = m.was_posts AND payments.sending_at = m.was_sending`

	paymentsTurn = `UPDATE payments SET reason = m.reason, note = m.note, turned_at = m.turned_at, last_word = m.last_word
FROM rows($1) AS m
WHERE payments.id IN (m.id) AND payments.status = m.status AND payments.last_word = m.was
AND CASE WHEN payments.turned_at IS NULL THEN 0 ELSE 1 END = m.again`
)

// deferMoves defers the changes of rows, in the order of the key.
func (b *batch) deferMoves(tx *db.Tx) {
	if len(b.marks) > 0 {
		slices.SortFunc(b.marks, func(x, y Mark) int { return cmp.Compare(x.Row.ID, y.Row.ID) })
		tx.Defer(paymentsMark, int64(len(b.marks)), db.RowsOf(markColumns, b.marks))
	}
	if len(b.moves) > 0 {
		slices.SortFunc(b.moves, func(x, y move) int { return cmp.Compare(x.row.ID, y.row.ID) })
		tx.Defer(paymentsMove, int64(len(b.moves)), db.RowsOf(moveColumns, b.moves))
	}
	if len(b.turns) > 0 {
		slices.SortFunc(b.turns, func(x, y contradiction) int { return cmp.Compare(x.row.ID, y.row.ID) })
		tx.Defer(paymentsTurn, int64(len(b.turns)), db.RowsOf(turnColumns, b.turns))
	}
	db.Insert(tx, "attempts", leftColumns, b.left)
	db.Insert(tx, "payment_contradictions", contradictionColumns, b.contradictions)
}
