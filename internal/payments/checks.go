package payments

import (
	"context"
	"regexp"
	"unicode/utf8"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// customer returns the tenant of a caller, or refuses a blocked one.
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

// labelLength is the maximum length of a label in characters.
const labelLength = 64

// nameLength is the maximum length of a recipient's name in characters.
const nameLength = 100

// referencePattern is the format of a client's reference.
var referencePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{12,36}$`)

const referenceText = "must be 12 to 36 characters of A-Z, a-z, 0-9, '.', '_' and '-'"

func checkParty(bad *problem.Fields, numberField string, number msisdn.MSISDN, networkField string, network msisdn.Network) {
	if m, err := msisdn.Parse(string(number)); err != nil || m != number {
		bad.Add(numberField, msisdn.ErrNumber.Error())
	}
	if n, ok := msisdn.ParseNetwork(string(network)); !ok || n != network {
		bad.Add(networkField, msisdn.ErrNetwork.Error())
	}
}

func checkNumber(bad *problem.Fields, field string, number msisdn.MSISDN) {
	if m, err := msisdn.Parse(string(number)); err != nil || m != number {
		bad.Add(field, msisdn.ErrNumber.Error())
	}
}

func checkReference(bad *problem.Fields, field, reference string) {
	if !referencePattern.MatchString(reference) {
		bad.Add(field, referenceText)
	}
}

// CheckReference returns an error that names field if a client's reference has an invalid format.
func CheckReference(field, reference string) error {
	var bad problem.Fields
	checkReference(&bad, field, reference)
	return bad.Err()
}

func (p *Payments) checkCallback(bad *problem.Fields, url string) {
	if url == "" {
		return
	}
	if err := webhook.CheckURL(url, p.development); err != nil {
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
