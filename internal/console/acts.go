package console

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// inWords is the amount from which it is written in words, too.
const inWords = money.Pesewas(5_000_00)

// mostShown is how long the text of what an approval's page showed may be, in characters.
const mostShown = 1000

// by is who does something to an act.
func (v *visit) by() changes.By {
	by := changes.By{Visitor: v.who, Place: v.tenant.ID}
	if from := v.from(); from.IsValid() {
		by.Origin = from.String()
	}
	return by
}

// about finds the tenant that a page of the installation is about.
func (v *visit) about() (tenant.Tenant, error) {
	t, err := v.console.Tenants.Get(v.ctx, v.r.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = errNoPage()
	}
	return t, err
}

// walletOrder is one thing that people do to a wallet.
type walletOrder struct {
	name, kind, title, lead string
	takes                   bool // money may be taken out, too
	ask                     func(v *visit, id, tenant string, amount money.Pesewas, reason string) (changes.Request, error)
}

var (
	funding = walletOrder{"fund", changes.KindFund, "Put money into the wallet", "The account has paid you outside of Makola.", false,
		func(v *visit, id, tenant string, amount money.Pesewas, reason string) (changes.Request, error) {
			return v.console.Changes.Fund(v.ctx, v.by(), id, tenant, amount, reason)
		}}
	adjusting = walletOrder{"adjust", changes.KindAdjust, "Correct the wallet", "For what was booked wrongly. Money is made or taken away here: no payment stands behind it.", true,
		func(v *visit, id, tenant string, amount money.Pesewas, reason string) (changes.Request, error) {
			return v.console.Changes.Adjust(v.ctx, v.by(), id, tenant, amount, reason)
		}}
)

func (o walletOrder) path(t tenant.Tenant) string { return "/ops/tenants/" + t.ID + "/" + o.name }

// form asks how much, and why.
func (o walletOrder) form(t tenant.Tenant, amount, way, reason string) page.Form {
	f := page.Form{ID: o.name, Action: o.path(t), Submit: "Go on", Fields: []page.Field{
		{Name: "amount", Label: "Amount in cedis", Value: amount, Max: 20, Required: true, Hint: "Such as 1250.00. Nothing is moved before you have seen it once more."},
		{Name: "reason", Label: "Reason", Value: reason, Max: 500, Required: true, Hint: "By what it is known, for the checker and the audit log."}}}
	if o.takes {
		f.Fields = slices.Insert(f.Fields, 0, page.Field{Name: "way", Label: "Direction", Value: way, Options: []page.Option{{Value: "in", Text: "Put into the wallet"}, {Value: "out", Text: "Take out of the wallet"}}})
	}
	return f
}

// page asks how much.
func (o walletOrder) page(v *visit) (answer, error) {
	t, err := v.about()
	if err != nil {
		return answer{}, err
	}
	if err := v.console.Identity.NeedFactor(v.ctx, v.who); err != nil {
		return answer{}, err
	}
	return answer{title: o.title, body: walletBody(o, t, o.form(t, "", "in", ""))}, nil
}

// amount reads the amount of the form, below zero where it is taken out.
func (o walletOrder) amount(v *visit) (money.Pesewas, error) {
	amount, err := money.Parse(v.r.PostFormValue("amount"))
	if errors.Is(err, money.ErrRange) {
		return 0, problem.Field("amount", err.Error())
	}
	if err != nil || amount <= 0 {
		return 0, problem.Field("amount", "must be an amount above zero, such as 1250.00")
	}
	switch way := v.r.PostFormValue("way"); {
	case o.takes && way == "out":
		return -amount, nil
	case o.takes && way != "in":
		return 0, problem.Field("way", "must be one of the list")
	}
	return amount, nil
}

// confirm shows what would be done.
func (o walletOrder) confirm(v *visit) (answer, error) {
	t, err := v.about()
	if err != nil {
		return answer{}, err
	}
	value := v.r.PostFormValue
	amount, err := o.amount(v)
	if err != nil {
		return answer{title: o.title, wrong: true, body: walletBody(o, t, faulty(o.form(t, value("amount"), value("way"), value("reason")), err))}, nil
	}
	wallet := t.Wallet()
	values := changes.Values{changes.FieldTenant: t.ID, "amount": max(amount, -amount).String()}
	if o.takes {
		values["way"] = value("way")
	}
	preview, err := v.console.Changes.Preview(v.ctx, v.by(), o.kind, values)
	if problem.Is(err, problem.Invalid) {
		return answer{title: o.title, wrong: true, body: walletBody(o, t, faulty(o.form(t, value("amount"), value("way"), value("reason")), err))}, nil
	}
	if err != nil {
		return answer{}, err
	}
	size, submit := max(amount, -amount), "Put %s into the wallet"
	if amount < 0 {
		submit = "Take %s out of the wallet"
	}
	worth := wallet.Asset.Text(int64(size))
	facts := []page.Fact{{Name: "Account", Value: page.Text(t.Name + " (" + string(t.Mode) + ")")}, {Name: "Id", Value: page.ID(t.ID)}, {Name: "Amount", Value: page.Text(wallet.Asset.Text(int64(amount)))}}
	if size >= inWords {
		facts = append(facts, page.Fact{Name: "In words", Value: page.Text(page.Words(size))})
	}
	for _, f := range preview.Facts.List {
		if !f.Warning {
			facts = append(facts, page.Fact{Name: f.Name, Value: page.Text(f.Value)})
		}
	}
	facts = append(facts, page.Fact{Name: "Reason", Value: page.Text(value("reason"))})
	var warnings []string
	for _, f := range preview.Facts.Warnings() {
		warnings = append(warnings, f.Value)
	}
	form := page.Form{ID: "confirm", Action: o.path(t) + "/confirm", Submit: fmt.Sprintf(submit, worth), Danger: amount < 0, Fields: []page.Field{
		{Name: "id", Type: "hidden", Value: uuid.Must(uuid.NewV7()).String()}, {Name: "amount", Type: "hidden", Value: size.String()},
		{Name: "way", Type: "hidden", Value: value("way")}, {Name: "reason", Type: "hidden", Value: value("reason")}}}
	return answer{title: o.title, body: walletConfirmBody(o, warnings, facts, form, o.path(t))}, nil
}

// do makes the act. The form's id is the act's: sent twice it makes one.
func (o walletOrder) do(v *visit) (answer, error) {
	t, err := v.about()
	if err != nil {
		return answer{}, err
	}
	v.formPage = o.path(t)
	amount, err := o.amount(v)
	if err != nil {
		return answer{}, err
	}
	act, err := o.ask(v, v.r.PostFormValue("id"), t.ID, amount, v.r.PostFormValue("reason"))
	if err != nil {
		return answer{}, err
	}
	return answer{to: "/ops/acts/" + act.ID}, nil
}

// actsPath is where the acts of the visit's place are.
func (v *visit) actsPath() string { return v.base() + "/acts" }

// stateBadge says what became of an act.
func stateBadge(a changes.Request) page.Badge {
	switch a.State {
	case changes.Waiting:
		return page.Badge{Tone: page.Open, Word: "Waits for a second person"}
	case changes.Done:
		return page.Badge{Tone: page.Good, Word: "Done"}
	case changes.Failed:
		return page.Badge{Tone: page.Bad, Word: "Failed"}
	}
	return page.Badge{Tone: page.Declined, Word: map[changes.State]string{changes.Rejected: "Rejected", changes.Withdrawn: "Withdrawn", changes.Expired: "Expired"}[a.State]}
}

// actRows are acts in a table.
func (v *visit) actRows(list []changes.Request) (rows []page.Row) {
	for _, a := range list {
		rows = append(rows, page.Row{Href: v.actsPath() + "/" + a.ID, Cells: []templ.Component{page.Text(a.Sentence), page.Mark(stateBadge(a)), page.Text(a.MakerName), page.Time(a.MadeAt)}})
	}
	return rows
}

var actColumns = []page.Column{{Name: "What"}, {Name: "State"}, {Name: "Made by", Minor: true}, {Name: "Made", Minor: true}}

// actList lists acts, those that wait or all.
func actList(v *visit) (answer, error) {
	f := changes.Filter{Place: v.tenant.ID, State: changes.State(v.param("state")), Before: v.param("before"), Limit: pageRows + 1}
	list, err := v.console.Changes.Store.List(v.ctx, f)
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Acts", Lead: "What people asked for that moves money or says who may, and what became of it.", Columns: actColumns, Active: f.State != "", Clear: v.actsPath(),
		Filters: []page.Field{{Name: "state", Label: "State", Value: string(f.State), Options: []page.Option{{Text: "All"}, {Value: string(changes.Waiting), Text: "Waiting"},
			{Value: string(changes.Done), Text: "Done"}, {Value: string(changes.Rejected), Text: "Rejected"}, {Value: string(changes.Withdrawn), Text: "Withdrawn"},
			{Value: string(changes.Expired), Text: "Expired"}, {Value: string(changes.Failed), Text: "Failed"}}}},
		Empty: page.Empty{Title: "No acts", Text: "What people ask for that moves money or says who may appears here."}}
	if len(list) > pageRows {
		list = list[:pageRows]
		l.Next = v.query("before", list[pageRows-1].ID)
	}
	if f.Before != "" {
		l.Prev = v.query("before", "")
	}
	l.Rows = v.actRows(list)
	if v.r.URL.RawQuery != "" { // a part of the list, without what it begins with
		return answer{title: l.Title, body: page.Listing(l)}, nil
	}
	forYou, byYou, err := v.waitingActs()
	return answer{title: l.Title, body: actsBody(forYou, byYou, l)}, err
}

// actPage is one act with what the visitor may do about it.
func actPage(v *visit) (answer, error) { return v.act(v.rejectForm(), "") }

// may is what a visitor may do about an act, as far as the page can tell.
type may struct {
	approve, withdraw, again bool
	barred                   string // why the visitor, whose role approves such acts, may not approve this one
	note                     string // what others will know of the approval
}

func (v *visit) may(a changes.Request) (m may, err error) {
	rule, known := v.console.Changes.Rule(a.Kind)
	if !known || a.State != changes.Waiting {
		return m, nil
	}
	own := a.Maker == v.who.Person.ID
	m = may{withdraw: own, again: own && a.Needs == 0}
	if own || a.Needs == 0 || !v.can(rule.Check) {
		return m, nil
	}
	outlook, err := v.console.Changes.Store.Outlook(v.ctx, v.by(), rule, a)
	m.approve, m.note = outlook.Refused == nil, outlook.Note
	if outlook.Refused != nil {
		m.barred = problem.From(outlook.Refused).Message
	}
	return m, err
}

// actPath is where the act of the page is.
func (v *visit) actPath() string { return v.actsPath() + "/" + v.r.PathValue("id") }

func (v *visit) rejectForm() page.Form {
	return page.Form{ID: "reject", Action: v.actPath() + "/reject", Submit: "Reject", Danger: true, Fields: []page.Field{
		{Name: "digest", Type: "hidden"}, {Name: "note", Label: "Why not", Max: 500, Required: true}}}
}

func (v *visit) act(reject page.Form, wrong string) (answer, error) {
	seen, err := v.console.Changes.Review(v.ctx, v.tenant.ID, v.r.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = errNoPage()
	}
	if err != nil {
		return answer{}, err
	}
	a := seen.Request
	a.Shown = seen.Shown
	reject.Fields[0].Value = a.Digest
	facts := []page.Fact{{Name: "State", Value: page.Mark(stateBadge(a))}, {Name: "Reason", Value: page.Text(a.Reason)}, {Name: "Made by", Value: page.Text(a.MakerName)}, {Name: "From", Value: page.Text(a.Origin)},
		{Name: "Made", Value: page.Time(a.MadeAt)}, {Name: "Checks", Value: page.Text(strconv.Itoa(a.Approvals()) + " of " + strconv.Itoa(a.Needs))}}
	facts = append(facts, v.factsOf(seen)...)
	for _, c := range a.Checks {
		by := c.Name + ", " + page.When(c.At)
		if c.Note != "" {
			by += " (" + c.Note + ")"
		}
		if c.Lapsed {
			by += " (counts no longer: this person may not check it now)"
		}
		facts = append(facts, page.Fact{Name: "Approved by", Value: page.Text(by)})
	}
	if a.State == changes.Waiting {
		facts = append(facts, page.Fact{Name: "Waits until", Value: page.Time(a.ExpiresAt)})
	} else {
		facts = append(facts, page.Fact{Name: "Ended", Value: page.Time(a.EndedAt)})
	}
	if a.Kind == changes.KindSendPayout && v.can(identity.ReadPayments) { // the act has the payment's id
		facts = append(facts, page.Fact{Name: "Payout", Value: page.Anchor(v.base()+"/payments/"+a.ID, "its page")})
	}
	if a.Note != "" {
		facts = append(facts, page.Fact{Name: "Note", Value: page.Text(a.Note)})
	}
	kept, err := v.kept(a)
	if err != nil {
		return answer{}, err
	}
	if rule, known := v.console.Changes.Rule(a.Kind); known && a.State == changes.Done && a.Needs == 0 && !rule.Light && !v.console.Development {
		facts = append(facts, page.Fact{Name: "Approved by", Value: page.Mark(page.Badge{Tone: page.Bad, Word: "nobody else: applied at once"})})
	}
	may, err := v.may(a)
	if err != nil {
		return answer{}, err
	}
	facts = append(facts, page.Fact{Name: "Digest", Value: page.ID(a.Digest)}, page.Fact{Name: "Id", Value: page.Copyable(a.ID)})
	return answer{title: "Act", wrong: v.r.Method != http.MethodGet, body: actBody(a, v.actPath(), may, kept, facts, reject, wrong)}, nil
}

// factsOf are the facts of a request: as its requester saw them and, while it waits, as they are now. Facts with a name are for the
// requester and those who may approve.
func (v *visit) factsOf(seen changes.Review) (list []page.Fact) {
	rule, _ := v.console.Changes.Rule(seen.Kind)
	personal := seen.Maker == v.who.Person.ID || v.can(rule.Check)
	show := func(name string, f changes.Fact) {
		switch {
		case f.Personal && !personal:
		case f.Warning:
			list = append(list, page.Fact{Name: name, Value: page.Mark(page.Badge{Tone: page.Bad, Word: f.Value})})
		default:
			list = append(list, page.Fact{Name: name, Value: page.Text(f.Value)})
		}
	}
	for _, f := range seen.Now.List {
		show(f.Name, f)
	}
	before := ", when it was requested"
	if seen.State != changes.Waiting {
		before = ""
	}
	for _, f := range seen.Missing() {
		show(f.Name+before, f)
	}
	if seen.Refused != nil {
		show("Warning", changes.Fact{Value: "It would be refused now: " + seen.Refused.Message, Warning: true})
	}
	return list
}

// madeOf is a secret of an act that waits for the visitor.
type madeOf struct{ path, button string }

// kept lists the secrets of an act that wait for the visitor.
func (v *visit) kept(a changes.Request) (list []madeOf, err error) {
	show, link := "Show it", a.Kind == changes.KindInvite || a.Kind == changes.KindReset
	if link {
		show = "Show the link"
	}
	for _, m := range []struct {
		part changes.Part
		madeOf
	}{{changes.Secret, madeOf{"/reveal", show}}, {changes.Code, madeOf{"/code", "Show the code"}}} {
		waits, err := v.console.Changes.Store.Kept(v.ctx, a, m.part, v.who.Person.ID)
		if err != nil {
			return nil, err
		}
		if waits {
			list = append(list, m.madeOf)
		}
	}
	return list, nil
}

// shown are the kinds of refusals that the page of an act shows.
var shown = []problem.Kind{problem.Duplicate, problem.InProgress, problem.Gone, problem.Forbidden, problem.Invalid, problem.InsufficientFunds, problem.InsufficientCredits}

// decide does something to the act of the page, and shows the act again where that was refused by a form's field.
func (v *visit) decide(do func(by changes.By, id, digest string) error) (answer, error) {
	v.formPage = v.actPath()
	err := do(v.by(), v.r.PathValue("id"), v.r.PostFormValue("digest"))
	var e *problem.Error
	switch {
	case !errors.As(err, &e) || e.Code == codeStepUp || !slices.Contains(shown, e.Kind):
		return answer{to: v.formPage}, err
	case e.Kind == problem.Invalid:
		return v.act(faulty(v.rejectForm(), err), "")
	}
	return v.act(v.rejectForm(), sentence(e.Message))
}

func approveAct(v *visit) (answer, error) {
	return v.decide(func(by changes.By, id, digest string) error {
		_, err := v.console.Changes.Approve(v.ctx, by, id, digest)
		return err
	})
}

func rejectAct(v *visit) (answer, error) {
	return v.decide(func(by changes.By, id, digest string) error {
		_, err := v.console.Changes.Reject(v.ctx, by, id, digest, v.r.PostFormValue("note"))
		return err
	})
}

func withdrawAct(v *visit) (answer, error) {
	return v.decide(func(by changes.By, id, digest string) error {
		_, err := v.console.Changes.Withdraw(v.ctx, by, id, digest)
		return err
	})
}

// waitingFor are the acts that wait about a tenant.
func (v *visit) waitingFor(t tenant.Tenant) ([]page.Row, error) {
	if !v.can(identity.ReadActs) {
		return nil, nil
	}
	list, err := v.console.Changes.Store.List(v.ctx, changes.Filter{Tenant: t.ID, State: changes.Waiting, Limit: pageRows})
	return v.actRows(list), err
}

// waitingActs are the acts that wait for the visitor, and those of the visitor that wait for somebody else.
func (v *visit) waitingActs() (forYou, byYou []page.Row, err error) {
	if !v.can(identity.ReadActs) {
		return nil, nil, nil
	}
	list, err := v.console.Changes.Store.List(v.ctx, changes.Filter{Place: v.tenant.ID, State: changes.Waiting, Limit: pageRows})
	if err != nil {
		return nil, nil, err
	}
	var check, own []changes.Request
	for _, a := range list {
		m, err := v.may(a)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case m.approve:
			check = append(check, a)
		case m.withdraw:
			own = append(own, a)
		}
	}
	return v.actRows(check), v.actRows(own), nil
}
