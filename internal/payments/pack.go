package payments

import (
	"encoding/binary"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// A packed payment is one short string. A payment that waits for its next
// question is kept so: as it is it would take three times the memory, in pieces
// that the garbage collector must look at one by one.
type packed string

// pack writes a payment down.
func pack(p *Payment) packed {
	var room [512]byte
	w := packing{buf: room[:0]}
	p.fields(&w)
	return packed(w.buf)
}

// unpack reads it again.
func (s packed) unpack() *Payment {
	p := new(Payment)
	p.fields(&packing{unread: string(s), reads: true})
	return p
}

// fields goes over all fields of a payment, in one order for both directions.
func (p *Payment) fields(w *packing) {
	for _, s := range []*string{
		&p.ID, &p.Tenant, (*string)(&p.Kind), &p.Mode, &p.Channel, &p.Reference, &p.ProviderReference, &p.FeeBearer,
		&p.Account, &p.AccountName, &p.BankID, &p.Label, &p.CallbackURL, &p.Key, &p.IdempotencyKey, &p.IdempotencyHash,
		&p.Parent, &p.Child, (*string)(&p.Status), &p.Reason, &p.Note, &p.Rail, &p.UpstreamID, &p.AttemptReference,
		&p.Details.AccountType, &p.Details.NetworkID, &p.Details.ServiceID, &p.Details.Service, &p.Details.OfferID,
		&p.Details.Display, &p.Details.Value, &p.Details.Name, &p.Details.To, &p.Details.Note,
		(*string)(&p.Refusal), &p.RefusalReason, &p.LastWord,
	} {
		w.text(s)
	}
	for _, n := range []*int64{&p.Seq, (*int64)(&p.Amount), (*int64)(&p.Charges), &p.Plan} {
		w.number(n)
	}
	for _, n := range []*int{&p.Attempt, &p.Posts, &p.Unsent} {
		as(w, n, func(n int) int64 { return int64(n) }, func(n int64) int { return int(n) })
	}
	for _, t := range []*time.Time{&p.SendingAt, &p.CreatedAt, &p.SettledAt, &p.EscalatedAt, &p.TurnedAt, &p.RefusedAt} {
		as(w, t, db.Micros, db.FromMicros)
	}
	for _, b := range []*bool{&p.Refused, &p.Classed, &p.Details.Minted} {
		as(w, b, func(b bool) int64 {
			if b {
				return 1
			}
			return 0
		}, func(n int64) bool { return n == 1 })
	}
	as(w, &p.Class, func(c provider.Class) int64 { return int64(c) }, func(n int64) provider.Class { return provider.Class(n) }) //nolint:gosec // it was one
}

// A packing goes through a packed payment, writing or reading.
type packing struct {
	buf    []byte
	unread string
	reads  bool
}

func (w *packing) number(n *int64) {
	if !w.reads {
		w.buf = binary.AppendVarint(w.buf, *n)
		return
	}
	var length int
	*n, length = binary.Varint([]byte(w.unread[:min(len(w.unread), binary.MaxVarintLen64)]))
	w.unread = w.unread[length:]
}

func (w *packing) text(s *string) {
	n := int64(len(*s))
	w.number(&n)
	if !w.reads {
		w.buf = append(w.buf, *s...)
		return
	}
	*s, w.unread = w.unread[:n], w.unread[n:]
}

// as packs what can be told by a number.
func as[T any](w *packing, v *T, to func(T) int64, from func(int64) T) {
	n := to(*v)
	w.number(&n)
	*v = from(n)
}
