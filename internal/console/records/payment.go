package records

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/webhook"
)

// paymentLinks lead to what may be done about a payment, as far as its page can tell.
func (ps *Pages) paymentLinks(v *console.Visit, p book.Payment) (links []page.Link) {
	if v.Route.Site != console.Operators || !v.Can(roles.ChangeTreasury) {
		return nil
	}
	base := "/ops/payments/" + p.ID
	switch {
	case !p.ContradictedAt.IsZero() && p.Kind == book.KindCollection:
		if p.LastWord == string(book.StatusSuccess) {
			links = append(links, page.Link{Href: base + "/decide", Text: "Credit it again"})
		}
	case !p.ContradictedAt.IsZero():
		links = append(links, page.Link{Href: base + "/decide", Text: "Decide about suspense"})
	case p.ContradictedAt.IsZero() && p.Note != "" && !p.SettledAt.IsZero():
		links = append(links, page.Link{Href: base + "/contradict", Text: "Take the word back"})
	case p.Status.Open() && ps.Payments.Resolvable(p, true) == nil:
		links = append(links, page.Link{Href: base + "/resolve", Text: "End it by the statement"})
	}
	return links
}

// waitingAbout are the acts of this site that wait about a payment: what operators want to do about it, or the payout itself,
// which waits for the account's own people.
func (ps *Pages) waitingAbout(v *console.Visit, p book.Payment) ([]page.Row, error) {
	switch {
	case !v.Can(roles.ReadChanges):
		return nil, nil
	case v.Route.Site == console.Operators:
		list, err := ps.Approvals.Changes.WaitingAbout(v.Ctx, p)
		return approvals.Rows(v, list), err
	case !p.Waits():
		return nil, nil
	}
	act, err := ps.Approvals.Changes.Get(v.Ctx, p.Tenant, p.ID)
	return approvals.Rows(v, []changes.Request{act}), err
}

// story is all that is known of a payment, as far as the visitor may see it.
type story struct {
	payment   book.Payment
	tenant    string // its name
	base      string // of the site, such as /ops
	exchanges []provider.Exchange
	transfers []ledger.Transfer
	hooks     []delivered
	audit     []audit.Entry
	next      time.Time   // when the provider is asked next
	waiting   []page.Row  // acts about it
	links     []page.Link // what the visitor may ask for
}

// delivered is a webhook with its failed attempts.
type delivered struct {
	webhook.Delivery
	tries []webhook.Attempt
}

// Bounds of what one page shows.
const (
	shownDeliveries = 20
	shownEntries    = 50
)

// Find finds the payment of the path, which must be the tenant's where the path names one.
func (ps *Pages) Find(v *console.Visit) (book.Payment, error) {
	id := v.R.PathValue("id")
	p, err := ps.Payments.Find(v.Ctx, id)
	if err == nil && (v.Route.Site == console.Tenants && p.Tenant != v.Tenant.ID) {
		err = console.ErrNoPage()
	}
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	return p, err
}

// Payment is the page of one payment. On an account's site another account's payment does not exist.
func (ps *Pages) Payment(v *console.Visit) (console.Answer, error) {
	p, err := ps.Find(v)
	if err != nil {
		return console.Answer{}, err
	}
	s, err := ps.story(v, p)
	if err != nil {
		return console.Answer{}, err
	}
	every := 5
	if p.SettledAt.IsZero() {
		every = 1
	}
	live, err := v.Part("story", every, storyPage(v, s))
	return console.Answer{Title: words.KindWords[p.Kind] + " " + ReferenceOf(v, p), Body: live}, err
}

// story reads what the visitor may see.
func (ps *Pages) story(v *console.Visit, p book.Payment) (s story, err error) {
	s = story{payment: p, base: v.Base(), next: ps.Payments.NextQuestion(p), links: ps.paymentLinks(v, p)}
	if s.waiting, err = ps.waitingAbout(v, p); err != nil {
		return s, err
	}
	t, err := ps.Tenants.Get(v.Ctx, p.Tenant)
	if err != nil {
		return s, err
	}
	s.tenant = t.Name
	if v.Route.Site == console.Operators { // how often it was asked is told; what was said only where that is allowed
		if s.exchanges, err = ps.Routes.Exchanges(v.Ctx, p.ID); err != nil {
			return s, err
		}
	}
	if v.Can(roles.ReadTransfers) {
		if s.transfers, err = ps.Ledger.OfSubject(v.Ctx, p.ID); err != nil {
			return s, err
		}
	}
	if v.Can(roles.ReadWebhooks) {
		if s.hooks, err = ps.deliveries(v, p); err != nil {
			return s, err
		}
	}
	if v.Can(roles.ReadAudit) {
		s.audit, err = ps.Audit.List(v.Ctx, audit.Filter{Tenant: p.Tenant, Subject: p.ID, Limit: shownEntries})
	}
	return s, err
}

func (ps *Pages) deliveries(v *console.Visit, p book.Payment) (all []delivered, err error) {
	list, err := ps.Webhooks.List(v.Ctx, webhook.Filter{Tenant: p.Tenant, Subject: p.ID, Limit: shownDeliveries})
	for _, d := range list {
		tries, err := ps.Webhooks.Attempts(v.Ctx, p.Tenant, d.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, delivered{d, tries})
	}
	return all, err
}

// Replay has a webhook of a payment delivered again, after it is written down who asks.
func (ps *Pages) Replay(v *console.Visit) (console.Answer, error) {
	p, err := ps.Find(v)
	if err != nil {
		return console.Answer{}, err
	}
	event := v.R.PathValue("event")
	list, err := ps.Webhooks.List(v.Ctx, webhook.Filter{Tenant: p.Tenant, Subject: p.ID, Limit: shownDeliveries})
	if err == nil && !slices.ContainsFunc(list, func(d webhook.Delivery) bool { return d.ID == event }) {
		err = console.ErrNoPage()
	}
	if err == nil {
		entry := v.Entry("webhook.replay", p.Tenant, p.ID)
		entry.Details = map[string]any{"events": []string{event}}
		err = ps.Audit.Record(v.Ctx, entry)
	}
	if err == nil {
		_, err = ps.Webhooks.Replay(v.Ctx, p.Tenant, p.ID, event)
	}
	if err != nil {
		return console.Answer{}, err
	}
	return console.Answer{To: strings.TrimSuffix(v.R.URL.Path, "/webhooks/"+event+"/replay")}, nil
}

// RevealNumber shows the whole number and the name of a payment, after it is written down that they are shown.
func (ps *Pages) RevealNumber(v *console.Visit) (console.Answer, error) {
	p, err := ps.Find(v)
	if err != nil {
		return console.Answer{}, err
	}
	v.FormPage = v.Base() + "/payments/" + p.ID
	if err := v.Use(identity.Reveals, p.ID, v.Entry("number.reveal", p.Tenant, p.ID)); err != nil {
		return console.Answer{}, err
	}
	facts := []page.Fact{{Name: "Channel", Value: page.Text(p.Channel)}, {Name: "Number", Value: page.Copyable(p.Account)}, {Name: "Name", Value: page.Text(cmp.Or(p.AccountName, "not known"))}, {Name: "Amount", Value: page.Money(p.Amount)}}
	title := "Number of " + strings.ToLower(words.KindWords[p.Kind]) + " " + ReferenceOf(v, p)
	return console.Answer{Title: title, Body: page.Revealed(title, "That you saw it is in the audit log.", facts, v.FormPage)}, nil
}

// mayReveal says that the visitor sees a masked number, and may see the whole one.
func (s story) mayReveal(v *console.Visit) bool {
	return s.payment.Account != "" && !v.Can(seeNumbers) && v.Can(roles.RevealNumbers) && !v.Viewing
}

// asked says how often the provider was asked for the status.
func (s story) asked() int {
	n := 0
	for _, x := range s.exchanges {
		if strings.HasSuffix(x.Operation, "_status") {
			n++
		}
	}
	return n
}

// facts are what stands on the row.
func (s story) facts(v *console.Visit) []page.Fact {
	p := s.payment
	facts := []page.Fact{{Name: "Reference", Value: page.Copyable(ReferenceOf(v, p))}}
	add := func(name string, value templ.Component, there bool) {
		if there {
			facts = append(facts, page.Fact{Name: name, Value: value})
		}
	}
	ops := v.Route.Site == console.Operators
	add("Account", page.Anchor("/ops/tenants/"+p.Tenant, s.tenant), ops)
	add("Amount", page.Money(p.Amount), true)
	add("Charges", page.Money(p.Charges), true)
	add("Net amount", page.Money(p.Net()), p.Kind == book.KindCollection)
	add("Channel", page.Text(p.Channel), true)
	add("Number", page.Text(Account(v, p.Account)), p.Account != "")
	add("Name", page.Text(p.AccountName), p.AccountName != "" && v.Can(seeNumbers))
	add("Label", page.Text(masks(v, p.Account).Replace(p.Label)), p.Label != "")
	add("Provider", page.Text(words.ProviderName(p.Rail)), ops && p.Rail != "")
	add("Our reference", page.Copyable(p.ProviderReference), p.ProviderReference != "")
	add("Provider's own id", page.ID(p.UpstreamID), ops && p.UpstreamID != "")
	add("Attempt", page.Text(fmt.Sprintf("%d, submitted %s", p.Attempt, page.Times(p.Posts))), ops && p.Rail != "")
	add("Accepted", page.Time(p.CreatedAt), true)
	add("Settled", page.Time(p.SettledAt), !p.SettledAt.IsZero())
	add("Callback address", page.ID(masks(v, p.Account).Replace(p.CallbackURL)), p.CallbackURL != "")
	add("Paid by", page.Anchor(s.base+"/payments/"+p.Parent, "its collection"), p.Parent != "" && p.Kind == book.KindTopUp)
	add("Pays for", page.Anchor(s.base+"/payments/"+p.Child, "its airtime"), p.Child != "")
	add("API key", page.ID(p.Key), ops && p.Key != "")
	add("Id", page.Copyable(p.ID), true)
	return facts
}

// note says what matters most now.
func (s story) note() templ.Component {
	p := s.payment
	switch {
	case p.Waits():
		return page.Note(page.Open, "Waits for the approval of the account's own people", fmt.Sprintf("Nothing was sent. %s is held, and goes back where it is rejected, or where nobody has approved it by %s.", page.Cedis(p.Held()), page.When(p.HeldUntil)))
	case words.Unknown(p):
		return page.Note(page.Unknown, "Outcome unknown, money held", s.unknownText())
	case p.SettledAt.IsZero() && p.Kind == book.KindCollection:
		return page.Note(page.Open, "Waiting for the payer", "The payer was asked to approve. Nothing is held meanwhile."+s.nextText())
	case p.SettledAt.IsZero() && p.Status == book.StatusWaiting:
		return page.Note(page.Open, "Waiting for its payment", "It is bought when the payer has paid. Nothing is held meanwhile.")
	case p.SettledAt.IsZero():
		return page.Note(page.Open, "On its way", fmt.Sprintf("%s is held until the provider says what became of it.", page.Cedis(p.Held()))+s.nextText())
	case !p.ContradictedAt.IsZero():
		return page.Note(page.Bad, "The provider contradicted itself", "It said later that the opposite happened. An operator decides what becomes of the amount.")
	case p.Reason != "":
		return page.Note(page.Bad, words.StatusBadges[p.Word()].Word, provider.Sentence(p.Reason))
	}
	return templ.NopComponent
}

// unknownText says why the money of a payment is held.
func (s story) unknownText() string {
	p := s.payment
	text := "It is not known whether the provider did it. "
	if p.Refusal != book.RefusalNone {
		text = "The provider refused it and has not confirmed that it has nothing of it. "
	}
	if n := s.asked(); n > 0 {
		text += fmt.Sprintf("%s was asked %s. ", words.ProviderName(p.Rail), page.Times(n))
	}
	return strings.TrimSpace(text) + s.nextText() + " Do not pay again."
}

func (s story) nextText() string {
	if s.next.IsZero() {
		return ""
	}
	return " It is asked again at about " + s.next.UTC().Format("15:04:05") + "."
}

// steps is the timeline.
func (s story) steps(v *console.Visit) []page.Step {
	p := s.payment
	steps := []page.Step{{At: p.CreatedAt, Tone: page.Good, What: "Accepted", Text: fmt.Sprintf("%s %s, charges %s", words.KindWords[p.Kind], page.Cedis(p.Amount), page.Cedis(p.Charges))}}
	for _, x := range s.exchanges {
		steps = append(steps, exchangeStep(x, v.Can(roles.ReadExchanges), masks(v, p.Account)))
	}
	if !p.RefusedAt.IsZero() {
		steps = append(steps, page.Step{At: p.RefusedAt, Tone: page.Unknown, What: "The provider refused it, unconfirmed", Text: provider.Sentence(p.RefusalReason)})
	}
	if !p.EscalatedAt.IsZero() {
		steps = append(steps, page.Step{At: p.EscalatedAt, Tone: page.Unknown, What: "Operators were called"})
	}
	if !p.SettledAt.IsZero() {
		b := words.BadgeOf(p)
		steps = append(steps, page.Step{At: p.SettledAt, Tone: b.Tone, What: "Settled: " + strings.ToLower(b.Word), Text: cmp.Or(p.Note, provider.Sentence(p.Reason))})
	}
	if !p.ContradictedAt.IsZero() {
		steps = append(steps, page.Step{At: p.ContradictedAt, Tone: page.Bad, What: "The provider contradicted itself"})
	}
	for _, d := range s.hooks {
		steps = append(steps, d.steps(v.Can(seeNumbers))...)
	}
	for _, e := range s.audit {
		steps = append(steps, page.Step{At: e.At, What: e.Action, Text: e.Actor + ": " + e.Reason})
	}
	slices.SortStableFunc(steps, func(a, b page.Step) int { return a.At.Compare(b.At) })
	return steps
}

// exchangeStep is what was said to a provider, and what it answered.
func exchangeStep(x provider.Exchange, whole bool, masks *strings.Replacer) page.Step {
	step := page.Step{At: x.At, What: words.ProviderName(x.Provider) + ": " + words.ExchangeWord(x.Operation)}
	took := fmt.Sprintf("%d ms", max(x.Took.Milliseconds(), 1))
	switch {
	case x.Err != "" && x.Status == 0:
		step.Tone, step.Text = page.Unknown, "no answer after "+took
	case x.Status >= 400 && !strings.HasSuffix(x.Operation, "_status"):
		step.Tone, step.Text = page.Bad, fmt.Sprintf("answered %d after %s", x.Status, took)
	default:
		step.Text = fmt.Sprintf("answered %d after %s", x.Status, took)
	}
	if whole {
		step.Fold = "Exchange, redacted"
		said := x.Method + " " + x.URL + "\n\n" + page.Indented([]byte(x.Request))
		heard := cmp.Or(page.Indented([]byte(x.Answer)), x.Err, "nothing")
		step.More = page.Join(page.Pre("Request", masks.Replace(said)), page.Pre("Answer", masks.Replace(heard)))
	}
	return step
}

// steps are what became of a webhook.
func (d delivered) steps(whole bool) []page.Step {
	queued := page.Step{At: d.CreatedAt, What: "Webhook: " + d.Delivery.URL}
	if whole {
		queued.Fold, queued.More = "Body", page.Pre("Body", page.Indented([]byte(d.Body)))
	}
	steps := []page.Step{queued}
	for _, t := range d.tries {
		text := fmt.Sprintf("Attempt %d: answered %d", t.Number, t.Status)
		if t.Status == 0 {
			text = fmt.Sprintf("Attempt %d: no answer", t.Number)
		}
		steps = append(steps, page.Step{At: t.At, Tone: page.Bad, What: "Webhook not delivered", Text: strings.TrimSuffix(text+". "+t.Error, ". ")})
	}
	if d.State == webhook.Delivered {
		steps = append(steps, page.Step{At: d.EndedAt, Tone: page.Good, What: "Webhook delivered", Text: fmt.Sprintf("answered %d", d.Status)})
	}
	return steps
}

// transferRows are the movements of a payment in the ledger.
func (s story) transferRows() []page.Row {
	var rows []page.Row
	for _, t := range s.transfers {
		rows = append(rows, page.Row{Cells: []templ.Component{page.Text(words.LegWord(t.Leg)), page.Text(words.AccountWord(t.From)), page.Text(words.AccountWord(t.To)), page.Money(money.Pesewas(t.Amount)), page.Time(t.At)}})
	}
	return rows
}

// audited is the details of an entry as text.
func audited(e audit.Entry) string {
	text, err := json.Marshal(e.Details)
	if err != nil {
		return ""
	}
	return page.Indented(text)
}
