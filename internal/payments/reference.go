package payments

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/tenant"
)

// references makes ProviderReferences: an HMAC under the installation's secret,
// so that the same request makes the same reference even after a restore, and
// the provider's duplicate answer then tells the truth. HMACs are kept for
// reuse: keying one costs more than the rest.
type references struct{ pool sync.Pool }

func newReferences(key []byte) *references {
	return &references{pool: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// make gives the reference of an attempt of a payment, shaped as a UUIDv4.
func (r *references) make(p Payment, attempt int) string {
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

// MaxAttempts is how many attempts References tells the references of: a payment
// has one on each rail at most.
const MaxAttempts = 4

// References gives the ProviderReferences that the attempts of a client's request
// have, the first one first, whether the request is known here or not. After a
// restore an operator finds with them what a provider did for a request that the
// backup does not know, or knows on another rail.
func (p *Payments) References(t tenant.Tenant, k Kind, reference string) []string {
	pay := Payment{Mode: string(t.Mode), Tenant: t.ID, Kind: k, Reference: reference}
	list := make([]string, MaxAttempts)
	for i := range list {
		list[i] = p.references.make(pay, i+1)
	}
	return list
}

// newID makes a UUIDv7 of a moment of our clock, in the order of moments to the
// microsecond (the twelve bits after the version hold its fraction of the
// millisecond). It names things; it is no secret.
func newID(at time.Time) string {
	us := uint64(max(0, at.UnixMicro()))
	ms, fraction := us/1000, us%1000*4096/1000
	var id uuid.UUID
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6] = 0x70 | byte(fraction>>8)
	id[7] = byte(fraction)
	random := rand.Uint64()
	for i := range 8 {
		id[8+i] = byte(random >> (8 * i))
	}
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
