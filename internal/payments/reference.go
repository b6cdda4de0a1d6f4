package payments

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/tenant"
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

// earlierAttempts is how many attempts of earlier versions References tells the
// references of.
const earlierAttempts = 3

// References gives the ProviderReference of a client's request, whether the
// request is known here or not, and then those that further attempts had in
// earlier versions. An operator finds with them what a provider did for a request
// that the database does not know.
func (p *Payments) References(t tenant.Tenant, k book.Kind, reference string) []string {
	pay := book.Payment{Mode: string(t.Mode), Tenant: t.ID, Kind: k, Reference: reference}
	list := make([]string, 1+earlierAttempts)
	for i := range list {
		list[i] = p.references.ofAttempt(pay, firstAttempt+i)
	}
	return list
}
