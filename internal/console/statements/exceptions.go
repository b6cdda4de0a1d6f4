package statements

import (
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/roles"
)

const exceptionsPage = "/ops/exceptions"

// kindTexts name the kinds of exceptions.
var kindTexts = map[reconcile.Kind]string{
	reconcile.TheirsOnly: "Only in the statement", reconcile.OursOnly: "Missing from the statement", reconcile.AmountOff: "Amount differs", reconcile.FeeOff: "Fee differs",
	reconcile.StateOff: "Status differs", reconcile.Twice: "Twice in the statement",
}

// endingTexts name the ways in which exceptions end.
var endingTexts = map[reconcile.Ending]string{
	reconcile.EndedAgreed: "Both sides agree", reconcile.EndedBooked: "Fee booked", reconcile.EndedSettled: "Outcome set from the statement", reconcile.EndedSuspend: "In suspense",
	reconcile.EndedReleased: "Moved out of suspense", reconcile.EndedAdopted: "In a wallet", reconcile.EndedFunded: "Used by a deposit", reconcile.EndedWritten: "Written off",
}

// ruleTexts name the rules of matches.
var ruleTexts = map[reconcile.Rule]string{
	reconcile.RuleProviderID: "the provider's id", reconcile.RuleReference: "our reference", reconcile.RuleSettlement: "the sum of its settlement",
	reconcile.RuleSimilar: "amount, number and time", reconcile.RuleNarrative: "the reference in its text, with amount and time", reconcile.RulePerson: "a person",
}

// age formats how long something has been open.
func age(since, now time.Time) string {
	switch hours := int(now.Sub(since).Hours()); {
	case hours < 1:
		return "under an hour"
	case hours < 48:
		return strconv.Itoa(hours) + " h"
	default:
		return strconv.Itoa(hours/24) + " days"
	}
}

func (ps *Pages) exceptionColumns(now time.Time) []console.Column[reconcile.Exception] {
	return []console.Column[reconcile.Exception]{
		console.Time("Time", "", func(e reconcile.Exception) time.Time { return e.At }),
		console.Text("Difference", "", func(e reconcile.Exception) string { return kindTexts[e.Kind] }).Laid(console.Link),
		console.Text("Account", "", func(e reconcile.Exception) string { return sourceTitle(e.Source) }).Laid(console.Under),
		console.Money("Amount", "", func(e reconcile.Exception) money.Pesewas { return e.Amount }),
		console.Text("Age", "", func(e reconcile.Exception) string { return age(e.OpenedAt, now) }).Laid(console.Minor),
		console.Text("Owner", "", func(e reconcile.Exception) string { return e.OwnerName }).Laid(console.Minor),
	}
}

// exceptionFilters are the parameters of the list.
var exceptionFilters = []string{"source", "kind", "owner", "older", "least", "most", "state"}

func exceptionInputs() []console.Input {
	return []console.Input{{Name: "before", Max: 36}, {Name: "source", Max: 60}, {Name: "kind", Max: 12}, {Name: "owner", Max: 36}, {Name: "older", Max: 3}, {Name: "least", Max: 20}, {Name: "most", Max: 20}, {Name: "state", Max: 8}}
}

var (
	anyOwner = []page.Option{{Value: "", Text: "Anybody"}, {Value: "me", Text: "Me"}, {Value: reconcile.NoOwner, Text: "Nobody"}}
	anyState = []page.Option{{Value: "", Text: "Open"}, {Value: "suspense", Text: "In suspense"}, {Value: "ended", Text: "Ended"}}
	anyAge   = []page.Option{{Value: "", Text: "Any"}, {Value: "1", Text: "Over a day"}, {Value: "7", Text: "Over a week"}, {Value: "30", Text: "Over a month"}}
)

// narrow reads the filters of the list.
func narrow(v *console.Visit) (f reconcile.Filter, err error) {
	f = reconcile.Filter{Source: v.Param("source"), Kind: reconcile.Kind(v.Param("kind")), Before: v.Param("before"), Ended: v.Param("state") == "ended", Limit: console.PageRows + 1}
	if v.Param("state") == string(reconcile.EndedSuspend) {
		f.Ending = reconcile.EndedSuspend
	}
	if f.Owner = v.Param("owner"); f.Owner == "me" {
		f.Owner = v.Who.Person.ID
	}
	if text := v.Param("older"); text != "" {
		days, err := strconv.Atoi(text)
		if err != nil || days < 0 {
			return f, problem.Field("older", "must be a number of days")
		}
		f.Older = time.Duration(days) * 24 * time.Hour
	}
	for name, into := range map[string]*money.Pesewas{"least": &f.Least, "most": &f.Most} {
		if text := v.Param(name); text != "" {
			if *into, err = money.Parse(text); err != nil {
				return f, problem.Field(name, "must be an amount, such as 12.50")
			}
		}
	}
	return f, nil
}

// exceptionFields are the inputs of the filters.
func (ps *Pages) exceptionFields(v *console.Visit) ([]page.Field, error) {
	sources, err := ps.sources(v, "All")
	kinds := kindOptions("All")
	return []page.Field{
		{Name: "source", Label: "Account", Options: sources, Value: v.Param("source")}, {Name: "kind", Label: "Difference", Options: kinds, Value: v.Param("kind")},
		{Name: "owner", Label: "Owner", Options: anyOwner, Value: v.Param("owner")}, {Name: "older", Label: "Age", Options: anyAge, Value: v.Param("older")},
		{Name: "least", Label: "Amount from", Value: v.Param("least"), Max: 20}, {Name: "most", Label: "Amount to", Value: v.Param("most"), Max: 20},
		{Name: "state", Label: "State", Options: anyState, Value: v.Param("state")},
	}, err
}

// sources returns the options for accounts with statements, after an empty option with the text none.
func (ps *Pages) sources(v *console.Visit, none string) ([]page.Option, error) {
	known, err := ps.Reconcile.Sources(v.Ctx)
	options := []page.Option{{Value: "", Text: none}}
	for _, s := range known {
		options = append(options, page.Option{Value: s.ID, Text: s.Title()})
	}
	return options, err
}

// kindOptions returns the options for kinds of exceptions, after an empty option with the text none.
func kindOptions(none string) []page.Option {
	options := []page.Option{{Value: "", Text: none}}
	for _, k := range reconcile.Kinds() {
		options = append(options, page.Option{Value: string(k), Text: kindTexts[k]})
	}
	return options
}

// writtenSources and writtenKinds return the choices of a request about many exceptions. A request about one exception
// needs neither.
func (ps *Pages) writtenSources(v *console.Visit) ([]page.Option, error) {
	return ps.sources(v, "Not needed for one exception")
}

func writtenKinds(*console.Visit) ([]page.Option, error) {
	return kindOptions("Not needed for one exception"), nil
}

// sourcesToSettle and settledKinds return the choices of a request to set the outcomes of many payments.
func (ps *Pages) sourcesToSettle(v *console.Visit) ([]page.Option, error) {
	return ps.sources(v, "Choose")
}

func settledKinds(*console.Visit) ([]page.Option, error) {
	options := []page.Option{{Value: "", Text: "Choose"}}
	for _, k := range []reconcile.Kind{reconcile.StateOff, reconcile.OursOnly} {
		options = append(options, page.Option{Value: string(k), Text: kindTexts[k]})
	}
	return options, nil
}

// offered is the maximum number of exceptions in a list to choose from.
const offered = 100

// exceptionOptions returns the newest exceptions, after an option for none. Without an ending it returns open exceptions. The
// exception in the address is always included.
func (ps *Pages) exceptionOptions(none string, ending reconcile.Ending) func(v *console.Visit) ([]page.Option, error) {
	return func(v *console.Visit) ([]page.Option, error) {
		list, err := ps.Reconcile.Exceptions(v.Ctx, reconcile.Filter{Ending: ending, Limit: offered})
		if err != nil {
			return nil, err
		}
		given := v.Given(changes.FieldException, "")
		if given != "" && !slices.ContainsFunc(list, func(e reconcile.Exception) bool { return e.ID == given }) {
			switch e, err := ps.Reconcile.Exception(v.Ctx, given); {
			case err == nil:
				list = append(list, e)
			case !problem.Is(err, problem.NotFound):
				return nil, err
			}
		}
		options := []page.Option{{Text: none}}
		for _, e := range list {
			text := kindTexts[e.Kind] + ", " + page.Cedis(e.Amount) + ", " + sourceTitle(e.Source) + ", " + e.At.Format("2 Jan 2006 15:04")
			options = append(options, page.Option{Value: e.ID, Text: text})
		}
		return console.WithGiven(options, given, "An exception that does not exist"), nil
	}
}

// exceptions lists the exceptions.
func (ps *Pages) exceptions(v *console.Visit) (console.Answer, error) {
	f, err := narrow(v)
	if err != nil {
		return console.Answer{}, err
	}
	list, err := ps.Reconcile.Exceptions(v.Ctx, f)
	if err != nil {
		return console.Answer{}, err
	}
	fields, err := ps.exceptionFields(v)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Exceptions", Lead: "Differences between the statements of providers and banks and our payments.", Filters: fields, Active: v.Narrowed(exceptionFilters...), Clear: exceptionsPage,
		Menu: "Resolve many exceptions", Actions: v.Actions(roles.ChangeTreasury, page.Link{Href: exceptionsPage + "/fee", Text: "Book fees"}, page.Link{Href: exceptionsPage + "/suspend", Text: "Put into suspense"},
			page.Link{Href: exceptionsPage + "/release", Text: "Move out of suspense"}, page.Link{Href: exceptionsPage + "/adopt", Text: "Put into a wallet"},
			page.Link{Href: exceptionsPage + "/match-all", Text: "Match with payments"}, page.Link{Href: exceptionsPage + "/end-all", Text: "Set outcomes"}, page.Link{Href: exceptionsPage + "/write-off", Text: "Write off"}),
		Empty: page.Empty{Title: "No exceptions", Text: "Every line of the statements agrees with our payments."}}
	if l.Active > 0 {
		l.Empty = page.Empty{Title: "No results", Text: "No exception matches these filters.", Href: exceptionsPage, Do: "Clear filters"}
	}
	list = console.Keyed(v, &l, "before", list, func(e reconcile.Exception) string { return e.ID })
	l.Grid = console.Grid(ps.exceptionColumns(v.Now()), list, func(e reconcile.Exception) string { return exceptionsPage + "/" + e.ID })
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// find finds the exception of the path.
func (ps *Pages) find(v *console.Visit) (reconcile.Exception, error) {
	e, err := ps.Reconcile.Exception(v.Ctx, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	return e, err
}

// exception shows one exception: both sides, its owner, and a note.
func (ps *Pages) exception(v *console.Visit) (console.Answer, error) {
	e, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	return ps.show(v, e, nil)
}

func (ps *Pages) show(v *console.Visit, e reconcile.Exception, wrong error) (console.Answer, error) {
	theirs, err := ps.theirs(v, e)
	if err != nil {
		return console.Answer{}, err
	}
	ours, err := ps.ours(v, e)
	if err != nil {
		return console.Answer{}, err
	}
	title := kindTexts[e.Kind]
	parts := []templ.Component{page.Head(title, e.Reason), page.Panel("The difference", page.Facts(exceptionFacts(e, v.Now()))), page.Columns(theirs, ours)}
	if v.Can(roles.ImportStatements) && e.EndedAt.IsZero() {
		parts = append(parts, ps.care(v, e, wrong)...)
	}
	if v.Can(roles.ChangeTreasury) {
		for _, l := range resolutions(e) {
			parts = append(parts, page.Button(exceptionsPage+l.Href+"?exception="+e.ID, l.Text))
		}
	}
	return console.Answer{Title: title, Wrong: wrong != nil, Body: page.Join(append(parts, page.Anchor(exceptionsPage, "All exceptions"))...)}, nil
}

// resolutions are the forms that can end an exception, or move its money out of suspense.
func resolutions(e reconcile.Exception) (list []page.Link) {
	if e.Ending == reconcile.EndedSuspend {
		return []page.Link{{Href: "/release", Text: "Move out of suspense"}}
	}
	if !e.EndedAt.IsZero() {
		return nil
	}
	switch e.Kind {
	case reconcile.TheirsOnly:
		list = append(list, page.Link{Href: "/match", Text: "Match with a payment"})
		if _, err := reconcile.CheckAdopt(e); err == nil {
			list = append(list, page.Link{Href: "/adopt", Text: "Put into a wallet"})
		}
	case reconcile.FeeOff:
		list = append(list, page.Link{Href: "/fee", Text: "Book the fee"})
	case reconcile.StateOff, reconcile.OursOnly:
		list = append(list, page.Link{Href: "/end", Text: "Set the payment's outcome from the statement"})
	}
	if e.Kind != reconcile.FeeOff && e.Delta != 0 {
		list = append(list, page.Link{Href: "/suspend", Text: "Put into suspense"})
	}
	return append(list, page.Link{Href: "/write-off", Text: "Write off"})
}

func exceptionFacts(e reconcile.Exception, now time.Time) []page.Fact {
	list := []page.Fact{{Name: "Account", Value: page.Text(sourceTitle(e.Source))}, {Name: "Amount", Value: page.Money(e.Amount)}, {Name: "Statement minus our books", Value: page.Money(e.Delta)}, {Name: "Found", Value: page.Time(e.OpenedAt)}}
	if e.EndedAt.IsZero() {
		list = append(list, page.Fact{Name: "Age", Value: page.Text(age(e.OpenedAt, now))})
	} else {
		list = append(list, page.Fact{Name: "Ended", Value: page.Time(e.EndedAt)}, page.Fact{Name: "How", Value: page.Text(endingTexts[e.Ending])})
	}
	if e.Request != "" {
		list = append(list, page.Fact{Name: "Request", Value: page.Anchor("/ops/acts/"+e.Request, "Open the request")})
	}
	if e.OwnerName != "" {
		list = append(list, page.Fact{Name: "Owner", Value: page.Text(e.OwnerName)})
	}
	if e.Note != "" {
		list = append(list, page.Fact{Name: "Note", Value: page.Text(e.Note)})
	}
	return list
}

// theirs shows the line of the statement.
func (ps *Pages) theirs(v *console.Visit, e reconcile.Exception) (templ.Component, error) {
	const title = "In the statement"
	if e.Line == "" {
		return page.Panel(title, page.Text("No line.")), nil
	}
	l, err := ps.Reconcile.Line(v.Ctx, e.Line)
	if err != nil {
		return nil, err
	}
	s, err := ps.Reconcile.Statement(v.Ctx, l.Statement)
	if err != nil {
		return nil, err
	}
	facts := []page.Fact{
		{Name: "Time", Value: page.Time(l.At)}, {Name: "State", Value: page.Mark(statusBadges[l.Status])}, {Name: "Amount", Value: page.Money(l.Amount)},
		{Name: "File", Value: page.Anchor(base+"/"+s.ID, s.FileName+", row "+strconv.Itoa(l.Row))}, {Name: "Imported by", Value: page.Text(s.UploaderName)},
	}
	if l.FeeKnown {
		facts = append(facts, page.Fact{Name: "Fee", Value: page.Money(l.Fee)})
	}
	for _, f := range [][2]string{{"Provider's id", l.TheirID}, {"Our reference", l.Reference}, {"Settlement", l.Settlement}, {"Type", l.Type}, {"Number", page.Masked(l.Party)}, {"Text", masked(v, l.Text)}} {
		if f[1] != "" {
			facts = append(facts, page.Fact{Name: f[0], Value: page.Text(f[1])})
		}
	}
	m, found, err := ps.Reconcile.MatchOf(v.Ctx, l.ID)
	if err != nil {
		return nil, err
	}
	own, err := ps.Reconcile.OwnTransferOf(v.Ctx, l.ID)
	switch {
	case own != "":
		facts = append(facts, page.Fact{Name: "Matched by", Value: page.Anchor("/ops/acts/"+own, "our own transfer")})
	case found:
		facts = append(facts, page.Fact{Name: "Matched by", Value: page.Text(ruleTexts[m.Rule])})
	}
	return page.Panel(title, page.Facts(facts)), err
}

// masked hides a narrative from visitors who may not read whole numbers: payers write numbers and names into it.
func masked(v *console.Visit, text string) string {
	if text == "" || v.Can(roles.ReadNumbers) {
		return text
	}
	return "Hidden: it may hold a number or a name."
}

// ours shows the payment, and queries the provider on request.
func (ps *Pages) ours(v *console.Visit, e reconcile.Exception) (templ.Component, error) {
	const title = "In our books"
	if e.Payment == "" {
		return page.Panel(title, page.Text("No payment.")), nil
	}
	found, err := ps.Payments.ByIDs(v.Ctx, []string{e.Payment})
	if err != nil {
		return nil, err
	}
	p := found[e.Payment]
	facts := []page.Fact{
		{Name: "Payment", Value: page.Anchor("/ops/payments/"+p.ID, p.Reference)}, {Name: "Status", Value: page.Text(p.PublicStatus())}, {Name: "Amount", Value: page.Money(p.Gross())},
		{Name: "Accepted", Value: page.Time(p.CreatedAt)}, {Name: "Our reference", Value: page.Copyable(p.ProviderReference)},
	}
	if !p.SettledAt.IsZero() {
		facts = append(facts, page.Fact{Name: "Ended", Value: page.Time(p.SettledAt)})
	}
	if p.UpstreamID != "" {
		facts = append(facts, page.Fact{Name: "Provider's id", Value: page.Text(p.UpstreamID)})
	}
	if answer := answerOf(p); answer != "" {
		facts = append(facts, page.Fact{Name: "Provider's last answer", Value: page.Text(answer)})
	}
	parts := []templ.Component{page.Facts(facts)}
	if e.EndedAt.IsZero() && v.Can(roles.ReadPayments) {
		parts = append(parts, page.ActionButton("/ops/payments/"+p.ID+"/ask", "Query provider now", ""))
	}
	return page.Panel(title, page.Join(parts...)), nil
}

// answerOf returns the provider's last answer about a payment.
func answerOf(p book.Payment) string {
	switch {
	case p.Status.Open() && p.Classed:
		return p.Class.String()
	case p.Status.Open():
		return ""
	case p.ProviderState() == provider.Success:
		return "paid"
	}
	return "not paid"
}

// care returns the forms of an open exception: its owner, its note, and the end of its match.
func (ps *Pages) care(v *console.Visit, e reconcile.Exception, wrong error) (parts []templ.Component) {
	here := exceptionsPage + "/" + e.ID
	if e.Owner != v.Who.Person.ID || e.Owner == "" {
		parts = append(parts, page.ActionButton(here+"/own", "Assign to me", "main"))
	} else {
		parts = append(parts, page.ActionButton(here+"/leave", "Remove my assignment", ""))
	}
	note := page.Form{ID: "note", Action: here + "/note", Submit: "Save note", Fields: []page.Field{{Name: "note", Label: "Note", Value: v.Given("note", e.Note), Max: 500}}}
	undo := page.Form{ID: "undo", Action: here + "/undo", Submit: "Undo match", Danger: true,
		Fields: []page.Field{{Name: "reason", Label: "Reason why the line is not this payment", Value: v.Given("reason", ""), Max: 500, Required: true, Hint: "No money moves. The rules will not match this line with this payment again."}}}
	if wrong != nil && v.Route.Path == exceptionsPage+"/{id}/undo" {
		undo = console.Faulty(undo, wrong)
	} else if wrong != nil {
		note = console.Faulty(note, wrong)
	}
	parts = append(parts, page.Panel("Note", page.Asking(note)))
	if e.Line != "" && e.Payment != "" && e.Kind != reconcile.Twice {
		parts = append(parts, page.Panel("Wrong match", page.Asking(undo)))
	}
	return parts
}

// own assigns the exception to the visitor.
func (ps *Pages) own(v *console.Visit) (console.Answer, error) {
	return ps.changed(v, func(e reconcile.Exception) error {
		return ps.Reconcile.Own(v.Ctx, e.ID, v.Who.Person.ID, v.Who.Person.Name)
	})
}

// leave releases the exception from its owner.
func (ps *Pages) leave(v *console.Visit) (console.Answer, error) {
	return ps.changed(v, func(e reconcile.Exception) error { return ps.Reconcile.Own(v.Ctx, e.ID, "", "") })
}

// note stores a note.
func (ps *Pages) note(v *console.Visit) (console.Answer, error) {
	return ps.changed(v, func(e reconcile.Exception) error { return ps.Reconcile.Note(v.Ctx, e.ID, v.R.PostFormValue("note")) })
}

// undo ends the match of the line.
func (ps *Pages) undo(v *console.Visit) (console.Answer, error) {
	return ps.changed(v, func(e reconcile.Exception) error {
		if err := ps.Reconcile.Undo(v.Ctx, e.Line, v.Who.Person.ID, v.R.PostFormValue("reason")); err != nil {
			return err
		}
		entry := v.Entry("statements.undo", "", e.Line)
		entry.Reason, entry.Details = v.R.PostFormValue("reason"), map[string]any{"payment": e.Payment, "exception": e.ID}
		return ps.Audit.Record(v.Ctx, entry)
	})
}

// changed shows the exception again after a change.
func (ps *Pages) changed(v *console.Visit, change func(reconcile.Exception) error) (console.Answer, error) {
	e, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	switch err := change(e); {
	case problem.Is(err, problem.Invalid), problem.Is(err, problem.NotFound):
		return ps.show(v, e, err)
	case err != nil:
		return console.Answer{}, err
	}
	return console.Answer{To: exceptionsPage + "/" + e.ID}, nil
}
