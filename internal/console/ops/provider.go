package ops

import (
	"fmt"
	"slices"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/checkup"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// checkupBadges are the results of checks.
var checkupBadges = map[checkup.State]page.Badge{
	checkup.OK: {Tone: page.Good, Word: "OK"}, checkup.Warn: {Tone: page.Open, Word: "Check"}, checkup.Fail: {Tone: page.Bad, Word: "Failed"},
}

// checkupColumns are the columns of a test.
var checkupColumns = []console.Column[checkup.Result]{
	console.Text("Check", "", func(r checkup.Result) string { return r.Subject }).Laid(console.Link),
	console.Text("Mode", "", func(r checkup.Result) string { return words.Mode(tenant.Mode(r.Mode)) }).Laid(console.Minor),
	console.Shown("Result", func(r checkup.Result) templ.Component { return page.Mark(checkupBadges[r.State]) }),
	console.Text("Finding", "", func(r checkup.Result) string { return r.Fact }),
	console.Text("What to do", "", func(r checkup.Result) string { return r.Fix }),
}

// testPage returns a function that returns the path of a provider's test page, or "" if the provider cannot be tested.
func (ps *Pages) testPage(v *console.Visit) (func(providerLine) string, error) {
	names, err := ps.Checkup.Names(v.Ctx)
	return func(p providerLine) string {
		if !slices.Contains(names, p.name) {
			return ""
		}
		return "/ops/providers/" + p.name
	}, err
}

// tested returns the provider of a page. It fails for a provider that cannot be tested here.
func (ps *Pages) tested(v *console.Visit) (name string, err error) {
	names, err := ps.Checkup.Names(v.Ctx)
	if name = v.R.PathValue("name"); err == nil && !slices.Contains(names, name) {
		err = console.ErrNoPage()
	}
	return name, err
}

// provider shows the last test of a provider's set-up.
func (ps *Pages) provider(v *console.Visit) (console.Answer, error) {
	name, err := ps.tested(v)
	if err != nil {
		return console.Answer{}, err
	}
	results, err := ps.Checkup.Latest(v.Ctx, name)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: words.ProviderName(name), Lead: "Shows whether the provider is set up right. A test queries the provider and moves no money.", Grid: console.Grid(checkupColumns, results, nil),
		Empty: page.Empty{Title: "Not tested yet", Text: "Test the provider after every change of its settings, and before the first payment."}}
	if len(results) > 0 {
		l.Count = "Tested " + page.When(results[0].At)
	}
	body := []templ.Component{page.Listing(l)}
	if v.Can(roles.SwitchProviders) {
		body = append(body, page.ActionButton("/ops/providers/"+name+"/test", "Test provider", ""))
	}
	return console.Answer{Title: l.Title, Body: page.Join(body...)}, nil
}

// testProvider tests a provider, and shows the results.
func (ps *Pages) testProvider(v *console.Visit) (console.Answer, error) {
	name, err := ps.tested(v)
	if err != nil {
		return console.Answer{}, err
	}
	v.FormPage = "/ops/providers/" + name
	if err := v.Use(identity.ProviderTests, name, v.Entry(checkup.Action, "", name)); err != nil {
		return console.Answer{}, err
	}
	if _, err := ps.Checkup.Test(v.Ctx, name, ""); err != nil {
		return console.Answer{}, fmt.Errorf("test of provider %s: %w", name, err)
	}
	return console.Answer{To: v.FormPage}, nil
}
