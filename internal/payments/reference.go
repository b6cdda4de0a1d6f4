package payments

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/payments/book"
)

// references makes ProviderReferences: an HMAC under the installation's secret
// over what names a request. The same request makes the same reference on every
// rail and attempt and also after a restore, so that one question to a rail tells
// the truth. HMACs are kept for reuse: keying one costs more than the rest.
type references struct{ pool sync.Pool }

func newReferences(key []byte) *references {
	return &references{pool: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// firstAttempt ends the bytes of every reference. Earlier versions gave each
// attempt a reference of its own; the first one's is the payment's now.
const firstAttempt = 1

// make gives the reference of a payment, shaped as a UUIDv4.
func (r *references) make(p book.Payment) string { return r.ofAttempt(p, firstAttempt) }

func (r *references) ofAttempt(p book.Payment, attempt int) string {
	mac := r.pool.Get().(hash.Hash)
	defer r.pool.Put(mac)
	mac.Reset()
	var field [96]byte
	for _, s := range []string{p.Mode, p.Tenant, string(p.Kind), p.Reference} {
		// Each field says how long it is, so that no two lists of fields are
		// the same bytes.
		b := strconv.AppendInt(field[:0], int64(len(s)), 10)
		b = append(b, ':')
		b = append(b, s...)
		mac.Write(b)
	}
	mac.Write(strconv.AppendInt(field[:0], int64(attempt), 10))
	var id uuid.UUID
	var sum [sha256.Size]byte
	copy(id[:], mac.Sum(sum[:0]))
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// airtimeRefund is the Reference under which the collection of failed airtime is refunded.
func (r *references) airtimeRefund(of book.Payment) string {
	of.Kind = "airtime refund"
	return r.make(of)
}

// earlierAttempts is how many attempts of earlier versions References tells the
// references of.
const earlierAttempts = 3

// all gives the ProviderReference of a payment, and then those that further attempts had in earlier versions.
func (r *references) all(p book.Payment) []string {
	list := make([]string, 1+earlierAttempts)
	for i := range list {
		list[i] = r.ofAttempt(p, firstAttempt+i)
	}
	return list
}

// mint gives a new payment its ids and its first attempt.
func (r *references) mint(pay *book.Payment, now time.Time) {
	pay.ID, pay.CreatedAt = book.NewID(now), now
	pay.Attempt, pay.Posts = 1, 1
	pay.ProviderReference = r.make(*pay)
	pay.AttemptReference = pay.ProviderReference
}

// mintReference gives a payment whose customer gave none a Reference. With an
// Idempotency-Key it is the same for the same key on the same day, so that a
// request that comes again after a restore makes the same ProviderReference; a
// key is remembered for a whole day, so that one that may be used anew never
// meets its old Reference.
func (r *references) mintReference(pay *book.Payment, now time.Time) {
	if pay.Reference != "" {
		return
	}
	pay.Details.Minted = true
	if pay.IdempotencyKey == "" {
		pay.Reference = uuid.NewString()
		return
	}
	pay.Reference = r.mintedOn(*pay, now)
}

// mintedOn is the Reference that a payment's Idempotency-Key makes on a day.
func (r *references) mintedOn(pay book.Payment, day time.Time) string {
	pay.Reference = day.Format(time.DateOnly) + " " + pay.IdempotencyKey
	return r.ofAttempt(pay, 0)
}
