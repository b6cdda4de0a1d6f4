package changes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// KindPolicy changes how many approvers a request needs.
const KindPolicy = "policy.set"

// lined is the payload of a change of the approval policy, as the requester saw it. Its members and their order are
// hashed, so they never change.
type lined struct {
	Kind      string        `json:"kind"`
	Tenant    string        `json:"tenant"`
	From      money.Pesewas `json:"pesewas"`
	Approvers int           `json:"checkers"`
	Before    int           `json:"before"`
	Own       bool          `json:"own,omitempty"`
}

func (l lined) line() Line {
	return Line{Kind: l.Kind, Tenant: l.Tenant, Own: l.Own, From: l.From, Approvers: l.Approvers}
}

func (a *Changes) policyKind() Kind {
	return Kind{Name: KindPolicy, Title: "Approval policy", Rule: Rule{Make: roles.ChangePolicy, Check: roles.ApprovePolicy}, Look: a.lookPolicy, Check: a.checkPolicy, Apply: a.doPolicy,
		Fields: []Field{{Name: "kind", Label: "Kind of change", Max: 40, Required: true}, {Name: FieldTenant, Label: "Account", Hint: "Enter the id of an account. Leave empty for all accounts.", Max: 64},
			{Name: "from", Label: "From an amount on", Hint: "In cedis, such as 1000.00.", Max: 20, Required: true},
			{Name: "approvers", Label: "Approvers", Hint: "Enter -1 to remove the line.", Options: []string{"0", "1", "2", "-1"}, Max: 2, Required: true}}}
}

// Kinds returns the kinds of a site for which the policy can set a number of approvers, with their titles.
func (a *Changes) Kinds(at roles.Site) map[string]string {
	titles := map[string]string{}
	for name, k := range a.kinds {
		if slices.ContainsFunc(roles.At(at), func(r roles.Role) bool { return roles.Can(at, r, k.Rule.Make) }) {
			titles[name] = k.Title
		}
	}
	return titles
}

// InForce is a row of the policy in force: the approvals needed from an amount.
type InForce struct {
	Kind, Title string
	ByKey       bool     // an API key requests it
	Requesters  []string // e-mail addresses of the people to whom the row applies; empty: an API key
	From        money.Pesewas
	Text        string // such as "2 approvers from GHS 500.00"
	Alone       bool   // nobody else may approve, so the change is applied at once
}

// requester is a person or key whose policy is computed.
type requester struct {
	id, name string
	key      bool
}

// aKey is any API key of an account. All people of the account may approve its requests.
var aKey = requester{key: true}

// InForce returns the policy in force for the requests of somebody, and of an API key, at a place about an account. The
// function that decides about each request computes it. about is empty for the installation itself.
func (a *Changes) InForce(ctx context.Context, by By, about string) ([]InForce, error) {
	return a.inForce(ctx, by.Place, about, func([]identity.Holder, Rule) []requester { return []requester{{id: by.id(), name: by.name()}} })
}

// InForceAt is InForce for everybody who may make requests at a place. People with the same policy share a
// row.
func (a *Changes) InForceAt(ctx context.Context, place, about string) ([]InForce, error) {
	return a.inForce(ctx, place, about, func(holders []identity.Holder, rule Rule) (list []requester) {
		for _, h := range holders {
			if roles.Can(roles.SiteOf(place), h.Role, rule.Make) {
				list = append(list, requester{id: h.ID, name: h.Email})
			}
		}
		return list
	})
}

func (a *Changes) inForce(ctx context.Context, place, about string, who func([]identity.Holder, Rule) []requester) (list []InForce, err error) {
	if place != roles.Installation {
		about = place
	}
	lines, err := a.Store.Policy(ctx)
	if err != nil {
		return nil, err
	}
	titles := a.Kinds(roles.SiteOf(place))
	err = a.Store.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		holders, err := a.Store.people.Holders(tx, place)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(titles)) {
			k, rows := a.kinds[name], []InForce(nil)
			all := who(holders, k.Rule)
			if k.Rule.ByKey && place != roles.Installation {
				all = append(all, aKey)
			}
			for _, one := range all {
				of, err := a.Store.inForceOf(tx, holders, k, Request{Kind: name, Tenant: about, Place: place, Requester: one.id}, one, amountsOf(lines, name, place, about))
				if err != nil {
					return err
				}
				rows = joined(rows, of)
			}
			list = append(list, rows...)
		}
		return nil
	})
	return list, err
}

// inForceOf returns the policy in force for a requester, with a row for each amount at which the number of approvers
// changes.
func (s *Store) inForceOf(tx *db.Tx, holders []identity.Holder, k Kind, r Request, one requester, amounts []money.Pesewas) (list []InForce, err error) {
	before := ""
	for _, from := range amounts {
		is := InForce{Kind: k.Name, Title: k.Title, From: from, ByKey: one.key}
		if r.Amount = from; one.key {
			r.Key = "any"
		} else {
			is.Requesters = []string{one.name}
		}
		needs := ""
		if needs, is.Alone, err = s.inForce(tx, holders, k.Rule, r); err != nil {
			return nil, err
		}
		if needs != before {
			is.Text = needs + fromAmount(from)
			list, before = append(list, is), needs
		}
	}
	return list, nil
}

// joined adds the rows of another requester. If an equal row exists, the requester's name is added to it.
func joined(rows, of []InForce) []InForce {
	for _, one := range of {
		at := slices.IndexFunc(rows, func(r InForce) bool {
			return r.Kind == one.Kind && r.ByKey == one.ByKey && r.From == one.From && r.Text == one.Text && r.Alone == one.Alone
		})
		if at < 0 {
			rows = append(rows, one)
		} else {
			rows[at].Requesters = append(rows[at].Requesters, one.Requesters...)
		}
	}
	return rows
}

// amountsOf lists the amounts at which lines about a kind begin, with zero as the first.
func amountsOf(lines []Line, kind, place, about string) []money.Pesewas {
	from := []money.Pesewas{0}
	for _, l := range lines {
		if own := place != roles.Installation; l.Kind == kind && l.Own == own && (l.Tenant == about || !own && l.Tenant == "") {
			from = append(from, l.From)
		}
	}
	slices.Sort(from)
	return slices.Compact(from)
}

// Approvers returns how many approvals a person's next request at a place would need.
func (a *Changes) Approvers(ctx context.Context, by By, r Request) (n int, err error) {
	r.Place, r.Requester = by.Place, by.id()
	return db.Get(ctx, a.Store.db, func(tx *db.Tx) (int, error) { return a.Store.needs(tx, a.kinds[r.Kind].Rule, r) })
}

// SetPolicy requests a change of a line of the policy. id is the id of the form. A tenant's people change the policy of
// their own requests only.
func (a *Changes) SetPolicy(ctx context.Context, by By, id string, l Line, reason string) (Request, error) {
	if l.Own && by.Place == roles.Installation {
		return Request{}, problem.Field("kind", "is not a kind of change")
	}
	return a.Do(ctx, by, KindPolicy, id, Values{"kind": l.Kind, FieldTenant: l.Tenant, "from": l.From.String(), "approvers": strconv.Itoa(l.Approvers)}, reason)
}

// lineOf parses a line of the policy.
func (a *Changes) lineOf(o Order) (l Line, title string, err error) {
	l = Line{Kind: o.Values["kind"], Tenant: o.Values[FieldTenant]}
	if o.By.Place != roles.Installation {
		l.Tenant, l.Own = o.By.Place, true
	}
	title, known := a.Kinds(roles.SiteOf(o.By.Place))[l.Kind]
	if !known {
		return l, "", problem.Field("kind", "is not a kind of change")
	}
	if l.From, err = o.Values.notNegative("from"); err != nil {
		return l, "", err
	}
	l.Approvers, err = strconv.Atoi(o.Values["approvers"])
	if err != nil || l.Approvers < Default || l.Approvers > MostApprovers {
		err = problem.Field("approvers", "must be 0, 1 or 2")
	}
	return l, title, err
}

func (a *Changes) lookPolicy(ctx context.Context, o Order) (Draft, error) {
	l, title, err := a.lineOf(o)
	if err != nil {
		return Draft{}, err
	}
	// A form that is sent twice would take its own line for the earlier line.
	if request, err := a.Store.Get(ctx, o.ID); err == nil && request.Requester == o.By.id() && request.Kind == KindPolicy && request.Reason == strings.TrimSpace(o.Reason) {
		return Draft{Again: &request}, nil
	}
	about, where := "", "everywhere"
	if l.Own {
		about, where = l.Tenant, "in this account"
	} else if l.Tenant != "" {
		t, err := a.Tenants.Get(ctx, l.Tenant)
		if err != nil {
			return Draft{}, err
		}
		title, err := a.titled(ctx, o.By.Place, t)
		if err != nil {
			return Draft{}, err
		}
		where = "for " + title
	}
	lines, err := a.Store.Policy(ctx)
	if err != nil {
		return Draft{}, err
	}
	p := lined{l.Kind, l.Tenant, l.From, l.Approvers, Default, l.Own}
	for _, was := range lines {
		if was.Kind == l.Kind && was.Tenant == l.Tenant && was.Own == l.Own && was.From == l.From {
			p.Before = was.Approvers
		}
	}
	sentence := fmt.Sprintf("%s needs %s%s, %s", title, Approvers(l.Approvers), fromAmount(l.From), where)
	return Draft{Tenant: about, Sentence: sentence, Payload: p}, nil
}

// doPolicy changes the line and ends the request in one transaction.
func (a *Changes) doPolicy(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[lined](*request)
	if err != nil {
		return err
	}
	rule, known := a.Rule(p.Kind)
	if !known {
		return problem.New(problem.Invalid, "kind_unknown", "There is no such kind of request")
	}
	return a.Store.Apply(ctx, *request, func(tx *db.Tx) error {
		before, err := a.Store.SetLine(tx, rule, p.line())
		if err != nil {
			return err
		}
		if before != p.Before {
			return problem.New(problem.Invalid, CodeChanged, "This line of the policy has changed since the request")
		}
		return finish(tx, []audit.Change{{What: "approvers of " + p.Kind + fromAmount(p.From), Before: Approvers(before), After: Approvers(p.Approvers)}})
	})
}

// checkPolicy returns the line before and after. It warns of a line that requires fewer approvers.
func (a *Changes) checkPolicy(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[lined](r)
	if err != nil {
		return nil, err
	}
	lines, err := a.Store.Policy(ctx)
	if err != nil {
		return nil, err
	}
	before := Default
	for _, l := range lines {
		if l.Kind == p.Kind && l.Tenant == p.Tenant && l.Own == p.Own && l.From == p.From {
			before = l.Approvers
		}
	}
	if before != p.Before {
		return nil, errChanged("The line")
	}
	list := becomes("Approvers", Approvers(before), Approvers(p.Approvers))
	if p.Approvers >= 0 && p.Approvers < max(before, 1) || p.Approvers == Default && before > 0 {
		list = append(list, warning("After this change the policy requires fewer approvers."))
	}
	return list, nil
}
