package changes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
)

// KindCatalogue changes an entry that clients see. KindBankCode sets the code under which a provider receives payouts to
// a bank. KindPrefix sets the network of a range of numbers, which is only a hint, because numbers can be ported.
const (
	KindCatalogue = "catalogue.set"
	KindBankCode  = "catalogue.bank_code"
	KindPrefix    = "catalogue.prefix"
)

// entry is the payload of a change of the catalogue, as the requester saw it. Its members and their order are hashed,
// so they never change.
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

// becomes describes the new state of the entry.
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

// lookEntry drafts the change of an entry. sentence describes the change, given the new and the old state.
func (a *Changes) lookEntry(ctx context.Context, p entry, sentence func(p entry) string) (Draft, error) {
	var err error
	if p.Was, err = a.Routes.EntryNow(ctx, p.change()); err != nil {
		return Draft{}, err
	}
	return Draft{Sentence: sentence(p), Payload: p}, nil
}

func (a *Changes) lookCatalogue(ctx context.Context, o Order) (Draft, error) {
	v := o.Values
	d, err := a.lookEntry(ctx, entry{Kind: v["catalogue"], Key: v["key"], ID: v["id"], Name: v["name"], Status: v["status"]}, func(p entry) string {
		return fmt.Sprintf("Change the %s %s of the catalogue to %s; it is %s", p.Kind, p.Key, p.becomes(), p.Was)
	})
	if err == nil && d.Payload.(entry).Was == "" {
		err = problem.New(problem.NotFound, "catalogue_entry_not_found", "There is no entry "+v["key"]+" in the catalogue")
	}
	return d, err
}

func (a *Changes) lookBankCode(ctx context.Context, o Order) (Draft, error) {
	v := o.Values
	return a.lookEntry(ctx, entry{Kind: string(route.BankCodeEntry), Key: v["bank"], Provider: v["provider"], Value: v["code"]}, func(p entry) string {
		return fmt.Sprintf("Send payouts to the bank %s by %s under the code %s; now the code is %s", p.Key, p.Provider, p.becomes(), cmp.Or(p.Was, "none"))
	})
}

func (a *Changes) lookPrefix(ctx context.Context, o Order) (Draft, error) {
	network, known := msisdn.ParseNetwork(o.Values["network"])
	if !known && o.Values["network"] != "" {
		return Draft{}, problem.Field("network", msisdn.ErrNetwork.Error())
	}
	return a.lookEntry(ctx, entry{Kind: string(route.PrefixEntry), Key: o.Values["prefix"], Value: string(network)}, func(p entry) string {
		return fmt.Sprintf("Assign numbers that begin with %s to %s; now they are assigned to %s", p.Key, p.becomes(), cmp.Or(p.Was, "none"))
	})
}

// catalogueKinds are the three kinds about entries.
func (a *Changes) catalogueKinds() []Kind {
	return []Kind{
		a.catalogueKind(KindCatalogue, "Entry of the catalogue", false).by(a.lookCatalogue,
			Field{Name: "catalogue", Label: "Catalogue", Options: []string{string(route.BankEntry), string(route.NetworkEntry), string(route.ServiceEntry)}, Max: 10, Required: true},
			Field{Name: "key", Label: "Entry", Hint: "Enter a bank's sort code, a network or a service.", Max: 40, Required: true},
			Field{Name: "id", Label: "Id for clients", Max: 64}, Field{Name: "name", Label: "Name for clients", Max: 120}, Field{Name: "status", Label: "Status", Max: 20}),
		a.catalogueKind(KindBankCode, "Code of a bank at a provider", false).by(a.lookBankCode,
			Field{Name: "bank", Label: "Bank", Hint: "Enter the sort code of the bank.", Max: 40, Required: true}, Field{Name: "provider", Label: "Provider", Max: 40, Required: true},
			Field{Name: "code", Label: "Code at the provider", Hint: "Leave empty for none.", Max: 40}),
		a.catalogueKind(KindPrefix, "Network of a number range", true).by(a.lookPrefix,
			Field{Name: "prefix", Label: "First digits", Hint: "Enter the beginning of local numbers, such as 024.", Max: 10, Required: true}, Field{Name: "network", Label: "Network", Hint: "Leave empty for none.", Max: 20}),
	}
}

func (a *Changes) catalogueKind(name, title string, light bool) Kind {
	return written(a, name, title, Rule{Make: roles.ChangeTenants, Check: roles.ApproveMoney, Light: light}, func(tx *db.Tx, request Request, p entry) ([]audit.Change, error) {
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
	}).showing(a.checkEntry)
}

// checkEntry returns the entry before and after.
func (a *Changes) checkEntry(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[entry](r)
	if err != nil {
		return nil, err
	}
	was, err := a.Routes.EntryNow(ctx, p.change())
	switch {
	case err != nil:
		return nil, err
	case was != p.Was:
		return nil, errChanged("The entry")
	}
	list := becomes("Entry", cmp.Or(was, "none"), p.becomes())
	if p.Provider != "" {
		list = append(list, Fact{Name: "Provider", Value: p.Provider, Of: ofProvider(p.Provider)})
	}
	if p.Kind != string(route.BankCodeEntry) {
		return list, nil
	}
	banks, err := a.Routes.Catalogue(ctx)
	for _, b := range banks.Banks {
		if b.Code == p.Key || b.ID == p.Key {
			list = append(list, Fact{Name: "Bank", Value: b.Name})
		}
	}
	return append(list, warning("This code decides which bank gets the money. Compare it with the provider's own list.")), err
}
