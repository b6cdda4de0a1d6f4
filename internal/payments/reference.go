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

// references computes ProviderReferences: an HMAC of the request's identity under the installation's secret. The same
// request has the same reference on every rail and attempt, and after a restore. So one query to a rail shows whether
// it has the payment. HMACs are pooled, because setting the key is the largest part of their cost.
type references struct{ pool sync.Pool }

func newReferences(key []byte) *references {
	return &references{pool: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// firstAttempt ends the bytes of every reference. Earlier versions gave each attempt its own reference. Now all
// attempts use the reference of the first.
const firstAttempt = 1

// make returns the reference of a payment in the form of a UUIDv4.
func (r *references) make(p book.Payment) string { return r.ofAttempt(p, firstAttempt) }

func (r *references) ofAttempt(p book.Payment, attempt int) string {
	mac := r.pool.Get().(hash.Hash)
	defer r.pool.Put(mac)
	mac.Reset()
	var field [96]byte
	for _, s := range []string{p.Mode, p.Tenant, string(p.Kind), p.Reference} {
		// The length before each field keeps two lists of fields from having the same bytes.
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

// airtimeRefund returns the Reference of the refund of failed airtime's collection.
func (r *references) airtimeRefund(of book.Payment) string {
	of.Kind = "airtime refund"
	return r.make(of)
}

// earlierAttempts is the number of further attempts whose references References returns.
const earlierAttempts = 3

// all returns the ProviderReference of a payment, and the references that earlier versions gave to further attempts.
func (r *references) all(p book.Payment) []string {
	list := make([]string, 1+earlierAttempts)
	for i := range list {
		list[i] = r.ofAttempt(p, firstAttempt+i)
	}
	return list
}

// assignIDs sets the ids and the first attempt of a new payment.
func (r *references) assignIDs(pay *book.Payment, now time.Time) {
	pay.ID, pay.CreatedAt = book.NewID(now), now
	pay.Attempt, pay.Submissions = 1, 1
	pay.ProviderReference = r.make(*pay)
	pay.AttemptReference = pay.ProviderReference
}

// assignReference generates a Reference for a payment without one. It depends on the Idempotency-Key and the day, so
// that a repeated request has the same ProviderReference after a restore. A key can be reused only after a whole day.
// So the next request with the key gets another Reference.
func (r *references) assignReference(pay *book.Payment, now time.Time) {
	if pay.Reference != "" {
		return
	}
	pay.Details.Generated = true
	if pay.IdempotencyKey == "" {
		pay.Reference = uuid.NewString()
		return
	}
	pay.Reference = r.generatedReference(*pay, now)
}

// generatedReference returns the Reference for a payment's Idempotency-Key on a day.
func (r *references) generatedReference(pay book.Payment, day time.Time) string {
	pay.Reference = day.Format(time.DateOnly) + " " + pay.IdempotencyKey
	return r.ofAttempt(pay, 0)
}
