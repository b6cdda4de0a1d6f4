package funds

import (
	"slices"
	"strings"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/route"
)

// Catalogue holds the commands of makola catalogue.
type Catalogue struct {
	List     catalogueList     `cmd:"" help:"List networks, data services and banks with the ids that clients send."`
	Set      catalogueSet      `cmd:"" help:"Change the id, name or status of an entry."`
	BankCode catalogueBankCode `cmd:"" name:"bank-code" help:"Set a provider's own code of a bank."`
	Prefix   cataloguePrefix   `cmd:"" help:"Assign a range of phone numbers to a network. It is only a hint, because numbers can be ported."`
}

// catalogueEntry is an entry of any catalogue as it is printed.
type catalogueEntry struct {
	kind, key, id, name, network, status string
	codes                                []string
}

func catalogueColumns() []frame.Column[catalogueEntry] {
	return []frame.Column[catalogueEntry]{
		{Name: "kind", Value: func(c catalogueEntry) any { return c.kind }},
		{Name: "key", Value: func(c catalogueEntry) any { return c.key }},
		{Name: "id", Value: func(c catalogueEntry) any { return c.id }},
		{Name: "name", Value: func(c catalogueEntry) any { return c.name }},
		{Name: "network", Value: func(c catalogueEntry) any { return c.network }},
		{Name: "status", Value: func(c catalogueEntry) any { return c.status }},
		{Name: "provider_codes", Value: func(c catalogueEntry) any { return c.codes }},
	}
}

// The kinds of catalogue entries.
const (
	kindNetwork = "network"
	kindService = "service"
	kindBank    = "bank"
)

// catalogueOf reads every entry.
func catalogueOf(e *frame.Env, routes *route.Table) ([]catalogueEntry, error) {
	all, err := routes.Catalogue(e.Ctx)
	if err != nil {
		return nil, err
	}
	list := []catalogueEntry{}
	for _, n := range all.Networks {
		list = append(list, catalogueEntry{kind: kindNetwork, key: string(n.Network), id: n.ID, name: n.Name, network: string(n.Network), status: n.Status})
	}
	for _, s := range all.Services {
		list = append(list, catalogueEntry{kind: kindService, key: s.Key, id: s.ID, name: s.Name, network: string(s.Network), status: s.Status})
	}
	for _, b := range all.Banks {
		c := catalogueEntry{kind: kindBank, key: b.Code, id: b.ID, name: b.Name, status: b.Status}
		for provider, code := range b.Codes {
			c.codes = append(c.codes, provider+"="+code)
		}
		slices.Sort(c.codes)
		list = append(list, c)
	}
	return list, nil
}

type catalogueList struct {
	frame.Common
	Kind string `name:"kind" enum:"network,service,bank," default:"" placeholder:"network|service|bank" help:"Kind of the entries to list."`
}

// Run lists the catalogues.
func (c *catalogueList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		return printCatalogue(e, o.Routes(), c.Output, func(x catalogueEntry) bool { return c.Kind == "" || c.Kind == x.kind })
	})
}

// printCatalogue prints the entries of the catalogue for which show returns true.
func printCatalogue(e *frame.Env, routes *route.Table, format string, show func(catalogueEntry) bool) error {
	all, err := catalogueOf(e, routes)
	if err != nil {
		return err
	}
	return frame.PrintAll(e.Stdout, format, catalogueColumns(), slices.DeleteFunc(all, func(x catalogueEntry) bool { return !show(x) }))
}

type catalogueSet struct {
	frame.Common
	frame.Writing
	Kind   string `arg:"" enum:"network,service,bank" help:"network, service or bank."`
	Key    string `arg:"" help:"Key of the entry: MTN, mtn_data, or a bank's sort code."`
	ID     string `name:"id" help:"New id that clients send."`
	Name   string `name:"name" help:"New name that clients see."`
	Status string `name:"status" enum:"active,inactive," default:"" placeholder:"active|inactive" help:"Whether clients can use the entry."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Check refuses a change without any field.
func (c *catalogueSet) Check() error {
	if c.ID+c.Name+c.Status == "" {
		return frame.Usage("Give at least one of --id, --name and --status")
	}
	return nil
}

// showEntry prints the entry of a change.
func showEntry(q *frame.Ask) error {
	return printCatalogue(q.E, q.O.Routes(), q.Output, func(x catalogueEntry) bool { return x.kind == q.Values["catalogue"] && x.key == q.Values["key"] })
}

type catalogueBankCode struct {
	frame.Common
	frame.Writing
	Bank     string `arg:"" help:"Sort code of the bank."`
	Provider string `arg:"" help:"Name of the provider, such as mtn or hubtel."`
	Code     string `arg:"" optional:"" help:"The provider's code of the bank. Without it the provider does not reach the bank."`
	Reason   string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// showBankCodes prints the bank of a change.
func showBankCodes(q *frame.Ask) error {
	return printCatalogue(q.E, q.O.Routes(), q.Output, func(x catalogueEntry) bool { return x.kind == kindBank && x.key == q.Values["bank"] })
}

type cataloguePrefix struct {
	frame.Common
	frame.Writing
	Prefix  string `arg:"" help:"First digits of a local number, such as 024 or 0553."`
	Network string `arg:"" optional:"" help:"Network of the range. Without it the range has no network."`
	Reason  string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// showPrefixes prints the network of each range of numbers.
func showPrefixes(q *frame.Ask) error {
	all, err := q.O.Routes().Catalogue(q.E.Ctx)
	if err != nil {
		return err
	}
	prefixes := []string{}
	for prefix := range all.Prefixes {
		prefixes = append(prefixes, prefix)
	}
	slices.SortFunc(prefixes, strings.Compare)
	return frame.PrintAll(q.E.Stdout, q.Output, []frame.Column[string]{
		{Name: "prefix", Value: func(p string) any { return p }},
		{Name: "network", Value: func(p string) any { return string(all.Prefixes[p]) }},
	}, prefixes)
}
