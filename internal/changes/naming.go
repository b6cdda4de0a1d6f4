package changes

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

const (
	// namesRead is the maximum number of accounts that are compared with a name. namesAtOnce is the number
	// that is read at once.
	namesRead   = 20_000
	namesAtOnce = 500
	// nearShown is the maximum number of similar names in a warning.
	nearShown = 3
)

// nearNames returns some accounts of the same mode whose names a person may confuse with the name of t.
func (a *Changes) nearNames(ctx context.Context, t tenant.Tenant) (near []tenant.Tenant, err error) {
	name := letters(t.Name)
	for after, read := "", 0; read < namesRead; {
		list, err := a.Tenants.List(ctx, after, namesAtOnce)
		if err != nil || len(list) == 0 {
			return near, err
		}
		for _, other := range list {
			if other.ID != t.ID && other.Mode == t.Mode && mistakable(name, letters(other.Name)) {
				if near = append(near, other); len(near) == nearShown {
					return near, nil
				}
			}
		}
		after, read = list[len(list)-1].ID, read+len(list)
	}
	return near, nil
}

// letters reduces a name to its letters and digits in lower case.
func letters(name string) []rune {
	return []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name))
}

// mistakable reports whether two names differ in at most one letter, or in two if they are long.
func mistakable(a, b []rune) bool {
	most := 1
	switch short := min(len(a), len(b)); {
	case short < 4:
		most = 0
	case short >= 9:
		most = 2
	}
	if max(len(a), len(b))-min(len(a), len(b)) > most {
		return false
	}
	row := make([]int, len(b)+1) // edit distances between the letters of a so far and each beginning of b
	for i := range row {
		row[i] = i
	}
	for n, c := range a {
		diagonal := row[0]
		row[0] = n + 1
		for i := range b {
			wrong := 1
			if c == b[i] {
				wrong = 0
			}
			diagonal, row[i+1] = row[i+1], min(diagonal+wrong, row[i]+1, row[i+1]+1)
		}
	}
	return row[len(b)] <= most
}

// shortID returns the end of an id, which distinguishes accounts with similar names.
func shortID(id string) string {
	if len(id) <= 8 {
		return id
	}
	return id[len(id)-6:]
}

// titled names an account for the sentence of a request at a place. At the installation, a name that people may
// confuse with another gets the end of the account's id. An account's own people see nothing about other accounts.
func (a *Changes) titled(ctx context.Context, place string, t tenant.Tenant) (string, error) {
	if place != roles.Installation {
		return fmt.Sprintf("%s (%s)", t.Name, t.Mode), nil
	}
	near, err := a.nearNames(ctx, t)
	if len(near) > 0 {
		return fmt.Sprintf("%s (%s, id …%s)", t.Name, t.Mode, shortID(t.ID)), err
	}
	return fmt.Sprintf("%s (%s)", t.Name, t.Mode), err
}

// nearWarnings returns warnings of accounts whose names people may confuse with the name of t.
func (a *Changes) nearWarnings(ctx context.Context, t tenant.Tenant) ([]Fact, error) {
	near, err := a.nearNames(ctx, t)
	if err != nil || len(near) == 0 {
		return nil, err
	}
	var names []string
	for _, other := range near {
		names = append(names, fmt.Sprintf("%s (id …%s)", other.Name, shortID(other.ID)))
	}
	return []Fact{warning(fmt.Sprintf("%s (id …%s) has a name like %s. Check that this is the right account.", t.Name, shortID(t.ID), strings.Join(names, ", ")))}, nil
}

// accountFacts returns the facts about the account of a request of the installation.
func (a *Changes) accountFacts(ctx context.Context, r Request) ([]Fact, error) {
	if r.Place != roles.Installation || r.Tenant == "" {
		return nil, nil
	}
	t, err := a.Tenants.Get(ctx, r.Tenant)
	if problem.Is(err, problem.NotFound) { // the account does not exist yet
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := []Fact{{Name: "Account", Value: fmt.Sprintf("%s (%s)", t.Name, t.Mode), Of: ofAccount(t.ID)}}
	near, err := a.nearWarnings(ctx, t)
	return append(list, near...), err
}

// worth formats an amount of a payment for people.
func worth(p book.Payment, amount money.Pesewas) string { return p.Money().Text(int64(amount)) }

// masked formats the payee of a payout for a sentence. Its readers may not see complete numbers. The page of
// the payment shows the number to people who may see it.
func masked(pay book.Payment) string {
	if pay.BankID == "" {
		return pay.Channel + " " + pay.MSISDN().Masked()
	}
	return "bank " + pay.BankID + ", account ****" + pay.Account[max(0, len(pay.Account)-4):]
}

// reference formats a payout's reference for everybody who sees the request. A reference that contains a number is
// masked like the number.
func reference(pay book.Payment) string {
	if !pay.ReferenceHoldsNumber() {
		return pay.Reference
	}
	return "****" + pay.Reference[max(0, len(pay.Reference)-3):]
}
