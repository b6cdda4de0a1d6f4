package changes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
)

// KindCatalogue changes an entry that clients see, KindBankCode under which code a provider is sent payouts to a bank, and KindPrefix
// whose numbers a range is taken for, which is a hint: numbers move.
const (
	KindCatalogue = "catalogue.set"
	KindBankCode  = "catalogue.bank_code"
	KindPrefix    = "catalogue.prefix"
)

// entry is what its maker asked for and saw. Its members and their order are what is hashed: they never change.
type entry struct {
	Kind     string `json:"kind"`
	Key      string `json:"key"`
	Provider string `json:"provider,omitempty"`
	Value    string `json:"value,omitempty"`
	ID       string `json:"id,omitempty"`
	Name     string `json:"name,omitempty"`
	Status   string `json:"status,omitempty"`
	Was      string `json:"was"`
}

func (p entry) change() route.CatalogueChange {
	return route.CatalogueChange{Kind: route.CatalogueKind(p.Kind), Key: p.Key, Provider: p.Provider, Value: p.Value, Edit: route.Edit{ID: p.ID, Name: p.Name, Status: p.Status}}
}

// becomes says what the entry is changed to.
func (p entry) becomes() string {
	switch route.CatalogueKind(p.Kind) {
	case route.BankCodeEntry, route.PrefixEntry:
		return cmp.Or(p.Value, "none")
	}
	var list []string
	for _, m := range [][2]string{{"id", p.ID}, {"name", p.Name}, {"status", p.Status}} {
		if m[1] != "" {
			list = append(list, m[0]+" "+m[1])
		}
	}
	return strings.Join(list, ", ")
}

// ChangeCatalogue asks for an entry of the catalogues to be changed.
func (a *Changes) ChangeCatalogue(ctx context.Context, by By, id string, c route.CatalogueChange, reason string) (Request, error) {
	p := entry{Kind: string(c.Kind), Key: c.Key, Provider: c.Provider, Value: c.Value, ID: c.Edit.ID, Name: c.Edit.Name, Status: c.Edit.Status}
	var err error
	if p.Was, err = a.Routes.EntryNow(ctx, c); err != nil {
		return Request{}, err
	}
	d := Draft{Kind: KindCatalogue, Sentence: fmt.Sprintf("Change the %s %s of the catalogue to %s; it is %s", p.Kind, p.Key, p.becomes(), p.Was)}
	switch c.Kind {
	case route.BankCodeEntry:
		d.Kind, d.Sentence = KindBankCode, fmt.Sprintf("Send payouts to the bank %s by %s under the code %s; it is %s", p.Key, p.Provider, p.becomes(), cmp.Or(p.Was, "none"))
	case route.PrefixEntry:
		d.Kind, d.Sentence = KindPrefix, fmt.Sprintf("Take numbers that begin with %s for those of %s; they are those of %s", p.Key, p.becomes(), cmp.Or(p.Was, "none"))
	default:
		if p.Was == "" {
			return Request{}, problem.New(problem.NotFound, "catalogue_entry_not_found", "There is no entry "+p.Key+" in the catalogue")
		}
	}
	d.Payload = p
	return a.make(ctx, Order{By: by, ID: id, Reason: reason}, d)
}

func (a *Changes) catalogueKind(name, title string, light bool) Kind {
	return written(a, name, title, Rule{Make: identity.MakeTenants, Check: identity.CheckMoney, Light: light}, func(tx *db.Tx, act Request, p entry) ([]audit.Change, error) {
		c := p.change()
		was, err := a.Routes.EntryIn(tx, c, " FOR UPDATE")
		if err != nil {
			return nil, err
		}
		if was != p.Was {
			return nil, errChanged("The entry")
		}
		what := strings.TrimSpace(p.Kind + " " + p.Key + " " + p.Provider)
		return []audit.Change{{What: what, Before: was, After: p.becomes()}}, a.Routes.ChangeEntry(tx, c)
	})
}
