package approvals

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
)

const (
	// mostAlike is how many requests one press approves.
	mostAlike = 50
	// mostAlikeShown is the maximum length of the facts that the page showed, in characters: a form has at most 32 KiB.
	mostAlikeShown = 24_000
	// mostLeft bounds the text with the ids of the requests that the visitor leaves out.
	mostLeft = mostAlike * 37
)

// alike selects requests of one kind about one account.
type alike struct{ kind, tenant string }

func alikeOf(a changes.Request) alike { return alike{a.Kind, a.Tenant} }

// path returns the address of the page of the requests. without has the ids of requests that the page leaves out.
func (l alike) path(v *console.Visit, without ...string) string {
	q := url.Values{"kind": {l.kind}, "tenant": {l.tenant}}
	if len(without) > 0 {
		q.Set("without", strings.Join(without, " "))
	}
	return Path(v) + "/alike?" + q.Encode()
}

// title names the requests.
func (l alike) title(ps *Pages, v *console.Visit) string {
	title := ps.Changes.Kinds(v.PersonSite())[l.kind]
	if v.Route.Site == console.Operators && l.tenant != "" {
		title += ", " + v.NameOf(l.tenant)
	}
	return title
}

// alikeLinks lead to the pages of similar requests that wait for the visitor.
func (ps *Pages) alikeLinks(v *console.Visit, forYou []changes.Request) (links []page.Link) {
	count := map[alike]int{}
	for _, a := range forYou {
		if count[alikeOf(a)]++; count[alikeOf(a)] == 2 {
			links = append(links, page.Link{Href: alikeOf(a).path(v), Text: alikeOf(a).title(ps, v)})
		}
	}
	return links
}

// whole is a request as shown on the page of similar requests.
type whole struct {
	sentence string
	facts    []page.Fact
	open     string // its own page
	leave    string // the page without this request
}

// alikePage shows similar requests that wait for the visitor. Each is shown as on its own page, and one button approves all of
// them.
func (ps *Pages) alikePage(v *console.Visit) (console.Answer, error) {
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	l, without := alike{v.Param("kind"), v.Param("tenant")}, strings.Fields(v.Param("without"))
	forYou, _, err := ps.waiting(v)
	if err != nil {
		return console.Answer{}, err
	}
	var list []whole
	var shown []string
	var total money.Pesewas
	for _, a := range forYou {
		if alikeOf(a) != l || slices.Contains(without, a.ID) {
			continue
		}
		seen, err := ps.Changes.Review(v.Ctx, v.Tenant.ID, a.ID)
		if err != nil {
			return console.Answer{}, err
		}
		text := append(slices.Clone(shown), a.ID+"="+seen.Shown)
		if len(text) > mostAlike || len(strings.Join(text, " ")) > mostAlikeShown {
			break
		}
		shown, total = text, total+a.Amount
		list = append(list, whole{a.Sentence, ps.wholeFacts(v, seen), Path(v) + "/" + a.ID, l.path(v, append(slices.Clone(without), a.ID)...)})
	}
	if len(list) == 0 {
		return console.Answer{Title: "Approvals", Body: page.Head("Approvals", "No requests of this kind await your approval.")}, nil
	}
	lead := fmt.Sprintf("%d requests. Each is approved separately. A request that has changed stays waiting.", len(list))
	if total > 0 {
		lead = fmt.Sprintf("%d requests, %s together. Each is approved separately. A request that has changed stays waiting.", len(list), page.Cedis(total))
	}
	hidden := func(name, value string) page.Field {
		return page.Field{Name: name, Type: "hidden", Value: value, Max: mostAlikeShown}
	}
	f := page.Form{ID: "alike", Action: Path(v) + "/alike", Submit: fmt.Sprintf("Approve %d requests", len(list)),
		Fields: []page.Field{hidden("kind", l.kind), hidden("tenant", l.tenant), hidden("shown", strings.Join(shown, " "))}}
	return console.Answer{Title: "Approvals", Body: alikeBody(l.title(ps, v), lead, list, f, Path(v))}, nil
}

// wholeFacts are the facts of a request on the page of similar requests.
func (ps *Pages) wholeFacts(v *console.Visit, seen changes.Review) []page.Fact {
	facts := ps.factsOf(v, seen)
	if seen.Amount > 0 {
		facts = append(facts, page.Fact{Name: "Amount", Value: page.Money(seen.Amount)})
	}
	return append(facts, page.Fact{Name: "Reason", Value: page.Text(seen.Reason)}, page.Fact{Name: "Requested by", Value: page.Text(seen.RequesterName)},
		page.Fact{Name: "Requested from", Value: page.Text(seen.Origin)}, page.Fact{Name: "Requested", Value: page.Time(seen.MadeAt)}, page.Fact{Name: "Expires", Value: page.Time(seen.ExpiresAt)})
}

// fate is the result for one of the similar requests.
type fate struct {
	request changes.Request
	left    string // why the request stays open; empty: it was approved
}

// approveAlike approves similar requests one by one, each with the checks of its own page, and lists the results.
func (ps *Pages) approveAlike(v *console.Visit) (console.Answer, error) {
	value := v.R.PostFormValue
	l := alike{value("kind"), value("tenant")}
	v.FormPage = l.path(v)
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	shown := strings.Fields(value("shown"))
	if len(shown) == 0 || len(shown) > mostAlike {
		return console.Answer{}, problem.Field("shown", fmt.Sprintf("must have 1 to %d requests", mostAlike))
	}
	var fates []fate
	approved := 0
	for _, one := range shown {
		id, saw, _ := strings.Cut(one, "=")
		r, err := ps.approveOne(v, l, id, saw)
		switch e := problem.From(err); {
		case err == nil && r.State == changes.Failed:
			fates = append(fates, fate{r, console.Sentence(r.Note)})
		case err == nil:
			approved++
			fates = append(fates, fate{r, ""})
		case !slices.Contains(shownRefusals, e.Kind) && len(fates) == 0:
			return console.Answer{}, err
		default:
			fates = append(fates, fate{r, console.Sentence(e.Message)})
		}
	}
	title := fmt.Sprintf("%d of %d requests approved", approved, len(shown))
	return console.Answer{Title: "Approvals", Body: fatesBody(title, console.Grid(fateColumns, fates, func(f fate) string { return Path(v) + "/" + f.request.ID }), Path(v))}, nil
}

// approveOne approves a request that is one of the similar requests.
func (ps *Pages) approveOne(v *console.Visit, l alike, id, saw string) (changes.Request, error) {
	r, err := ps.Changes.Get(v.Ctx, v.Tenant.ID, id)
	switch {
	case err != nil:
		return changes.Request{ID: id, Sentence: id}, err
	case alikeOf(r) != l:
		return r, problem.New(problem.Invalid, "not_alike", "This request is of another kind, or about another account")
	}
	done, err := ps.Changes.Approve(v.Ctx, By(v), id, saw)
	if err != nil {
		return r, err
	}
	return done, nil
}
