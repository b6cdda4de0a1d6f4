package payments

import (
	"context"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Collect asks a payer's mobile money wallet for money.
type Collect struct {
	Amount      money.Pesewas
	MSISDN      msisdn.MSISDN
	Network     msisdn.Network
	Reference   string // the client's
	Label       string // shown to the payer; cut when too long
	CallbackURL string // empty: none
}

// The limits of a collection.
const (
	MinCollection = 10 * money.Cedi / 100
	MaxCollection = 15_000 * money.Cedi
)

// labelLength is the longest label in characters.
const labelLength = 64

// referencePattern is what a client's reference looks like.
var referencePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{12,36}$`)

const referenceText = "must be 12 to 36 characters of A-Z, a-z, 0-9, '.', '_' and '-'"

// Collect accepts a collection and answers at once; the payer is asked right
// after. replayed tells that an earlier request made it: with the same
// Idempotency-Key, or the same one of a tenant whose duplicates repeat.
func (p *Payments) Collect(ctx context.Context, c idempotency.Caller, r Collect) (pay book.Payment, replayed bool, err error) {
	t, err := p.customer(ctx, c)
	if err != nil {
		return book.Payment{}, false, err
	}
	if err := mayCollect(t); err != nil {
		return book.Payment{}, false, err
	}
	var bad problem.Fields
	if r.Amount < MinCollection || r.Amount > MaxCollection {
		bad.Add("amount", "must be between "+MinCollection.String()+" and "+MaxCollection.String())
	}
	checkParty(&bad, "phone_number", r.MSISDN, "network", r.Network)
	checkReference(&bad, "transaction_id", r.Reference)
	p.checkCallback(&bad, r.CallbackURL)
	if err := bad.Err(); err != nil {
		return book.Payment{}, false, err
	}
	charges, plan, err := p.tenants.Fee(ctx, t.ID, tenant.Collection, string(r.Network), r.Amount, p.clock.Now())
	if err != nil {
		return book.Payment{}, false, err
	}
	pay = asked(c, t, book.KindCollection)
	pay.Channel, pay.Reference, pay.Account = string(r.Network), r.Reference, string(r.MSISDN)
	pay.Amount, pay.Charges, pay.Plan = r.Amount, charges, plan
	pay.Label, pay.CallbackURL = cut(r.Label, labelLength), r.CallbackURL
	done, err := p.accept(ctx, &acceptance{Acceptance: book.Acceptance{Payment: pay, Repeats: t.Duplicates == tenant.RepeatDuplicates}, field: "network"})
	return done.Payment, done.Replayed, err
}

// customer reads the tenant of a caller and refuses one that is blocked.
func (p *Payments) customer(ctx context.Context, c idempotency.Caller) (tenant.Tenant, error) {
	t, err := p.tenants.Get(ctx, c.Tenant)
	if err == nil && t.Blocked {
		err = tenant.Blocked()
	}
	return t, err
}

func mayCollect(t tenant.Tenant) error {
	if !t.CollectionsEnabled {
		return tenant.NoCollections()
	}
	return nil
}

// asked begins a payment with what every kind takes from the request's caller.
func asked(c idempotency.Caller, t tenant.Tenant, k book.Kind) book.Payment {
	return book.Payment{
		Tenant: t.ID, Kind: k, Mode: string(t.Mode), FeeBearer: string(t.FeeBearer), Key: c.Key,
		IdempotencyKey: c.IdempotencyKey, IdempotencyHash: c.BodyHash,
	}
}

// mint gives a new payment its ids and its first attempt.
func (p *Payments) mint(pay *book.Payment, now time.Time) {
	pay.ID, pay.CreatedAt = book.NewID(now), now
	pay.Attempt, pay.Posts = 1, 1
	pay.ProviderReference = p.references.make(*pay)
	pay.AttemptReference = pay.ProviderReference
}

func checkParty(bad *problem.Fields, numberField string, number msisdn.MSISDN, networkField string, network msisdn.Network) {
	if m, err := msisdn.Parse(string(number)); err != nil || m != number {
		bad.Add(numberField, msisdn.ErrNumber.Error())
	}
	if n, ok := msisdn.ParseNetwork(string(network)); !ok || n != network {
		bad.Add(networkField, msisdn.ErrNetwork.Error())
	}
}

func checkReference(bad *problem.Fields, field, reference string) {
	if !referencePattern.MatchString(reference) {
		bad.Add(field, referenceText)
	}
}

// callbackLength is the longest callback_url in bytes.
const callbackLength = 2000

func (p *Payments) checkCallback(bad *problem.Fields, url string) {
	if url == "" {
		return
	}
	if len(url) > callbackLength {
		bad.Add("callback_url", "is too long")
	} else if err := webhook.CheckURL(url, p.development); err != nil {
		bad.Add("callback_url", err.Error())
	}
}

// cut shortens a text to at most n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}
