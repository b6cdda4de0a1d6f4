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
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/webhook"
)

// paymentLinks returns links to the changes that an operator may request about a payment.
func (ps *Pages) paymentLinks(v *console.Visit, p book.Payment) (links []page.Link) {
	if v.Route.Site != console.Operators || !v.Can(roles.ChangeTreasury) {
		return nil
	}
	base := "/ops/payments/" + p.ID
	switch {
	case !p.ContradictedAt.IsZero() && p.Kind == book.KindCollection:
		if p.LastReported == string(book.StatusSuccess) {
			links = append(links, page.Link{Href: base + "/decide", Text: "Credit wallet again"})
		}
	case !p.ContradictedAt.IsZero():
		links = append(links, page.Link{Href: base + "/decide", Text: "Clear suspense"})
	case p.ContradictedAt.IsZero() && p.Note != "" && !p.SettledAt.IsZero():
		links = append(links, page.Link{Href: base + "/contradict", Text: "Reverse resolution"})
	case p.Status.Open() && ps.Payments.Resolvable(p, true) == nil:
		links = append(links, page.Link{Href: base + "/resolve", Text: "Resolve from statement"})
	}
	return links
}

// waitingAbout returns the change requests about a payment that await approval on this site. On an account's site that is the
// payout itself.
func (ps *Pages) waitingAbout(v *console.Visit, p book.Payment) (page.Grid, error) {
	switch {
	case !v.Can(roles.ReadChanges):
		return page.Grid{}, nil
	case v.Route.Site == console.Operators:
		list, err := ps.Approvals.Changes.WaitingAbout(v.Ctx, p)
		return approvals.Grid(v, list), err
	case !p.AwaitsApproval():
		return page.Grid{}, nil
	}
	request, err := ps.Approvals.Changes.Get(v.Ctx, p.Tenant, p.ID)
	return approvals.Grid(v, []changes.Request{request}), err
}

// story is a payment with its exchanges, transfers, webhooks and audit entries, as far as the visitor may see them.
type story struct {
	payment   book.Payment
	parent    book.Payment // the collection that pays for a top-up
	tenant    string       // its name
	base      string       // base path of the site, such as /ops
	exchanges []provider.Exchange
	transfers []ledger.Transfer
	hooks     []delivered
	audit     []audit.Entry
	notified  []notice.Delivered // notices to operators about the unknown outcome
	next      time.Time          // time of the next status query
	waiting   page.Grid          // change requests about the payment
	links     []page.Link        // links to forms about the payment
	notes     []book.Note        // of operators
	owner     book.Owner
	noRefund  string // why the visitor, who refunds collections, cannot refund this one
}

// delivered is a webhook with its failed attempts.
type delivered struct {
	webhook.Delivery
	tries []webhook.Attempt
}

// The maximum numbers of webhook deliveries and audit entries on a payment's page.
const (
	shownDeliveries = 20
	shownEntries    = 50
)

// Find returns the payment of the path. Payments of other accounts are a 404 on an account's site.
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

// Payment shows one payment.
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
	return console.Answer{Title: words.KindWords[p.Kind] + " " + ReferenceOf(v, p), Body: page.Join(live, ps.addNote(v, p))}, err
}

// story reads the parts of a payment's page that the visitor may see.
func (ps *Pages) story(v *console.Visit, p book.Payment) (s story, err error) {
	s = story{payment: p, base: v.Base(), next: ps.Payments.NextQuery(p), links: ps.paymentLinks(v, p)}
	if s.waiting, err = ps.waitingAbout(v, p); err != nil {
		return s, err
	}
	if err := ps.offerRefund(v, &s); err != nil {
		return s, err
	}
	t, err := ps.Tenants.Get(v.Ctx, p.Tenant)
	if err != nil {
		return s, err
	}
	s.tenant = t.Name
	if v.Route.Site == console.Operators { // all operators see the number of queries, some their contents
		if s.exchanges, err = ps.Routes.Exchanges(v.Ctx, p.ID); err != nil {
			return s, err
		}
		if s.notes, s.owner, err = ps.Payments.Notes(v.Ctx, p.ID); err != nil {
			return s, err
		}
		if s.notified, err = ps.Notices.Notified(v.Ctx, notice.PaymentUnknown, p.ID); err != nil {
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
		if s.audit, err = ps.Audit.List(v.Ctx, audit.Filter{Tenant: p.Tenant, Subject: p.ID, Limit: shownEntries}); err != nil {
			return s, err
		}
	}
	if p.Kind == book.KindTopUp && p.Parent != "" {
		if s.parent, err = ps.Payments.Find(v.Ctx, p.Parent); err != nil {
			return s, err
		}
	}
	if v.Route.Site == console.Tenants {
		s.forAccount(t.Wallet().ID)
	}
	return s, nil
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

// Replay delivers a webhook again, after an entry in the audit log.
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

// RevealNumber shows the whole number and the name of a payment, after an entry in the audit log.
func (ps *Pages) RevealNumber(v *console.Visit) (console.Answer, error) {
	p, err := ps.Find(v)
	if err != nil {
		return console.Answer{}, err
	}
	v.FormPage = v.Base() + "/payments/" + p.ID
	if err := v.Use(identity.Reveals, p.ID, v.Entry("number.reveal", p.Tenant, p.ID)); err != nil {
		return console.Answer{}, err
	}
	facts := []page.Fact{{Name: "Channel", Value: page.Text(words.Channel(p.Channel))}, {Name: "Number", Value: page.Copyable(p.Account)}, {Name: "Name", Value: page.Text(cmp.Or(p.AccountName, "unknown"))}, {Name: "Amount", Value: page.Money(p.Amount)}}
	const title = "Phone or account number"
	return console.Answer{Title: title, Body: page.Revealed(title, "The audit log records that you viewed this number.", facts, v.FormPage)}, nil
}

// mayReveal reports whether the visitor sees a masked number and may reveal it.
func (s story) mayReveal(v *console.Visit) bool {
	return s.payment.Account != "" && !v.Can(seeNumbers) && v.Can(roles.RevealNumbers) && !v.Viewing
}

// mayAsk reports whether the visitor may have the provider queried now.
func (s story) mayAsk(v *console.Visit) bool {
	return s.payment.Status == book.StatusPending && !s.payment.AwaitsApproval() && !v.Viewing
}

// Ask queries the provider of an open payment now, and shows the payment.
func (ps *Pages) Ask(v *console.Visit) (console.Answer, error) {
	p, err := ps.Find(v)
	if err != nil {
		return console.Answer{}, err
	}
	if _, err := ps.Payments.Ask(v.Ctx, p); err != nil {
		return console.Answer{}, err
	}
	return console.Answer{To: v.Base() + "/payments/" + p.ID}, nil
}

// asked returns the number of status queries.
func (s story) asked() int {
	n := 0
	for _, x := range s.exchanges {
		if isStatusQuery(x) {
			n++
		}
	}
	return n
}

// facts returns the details of the payment.
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
	add("Refunded", page.Money(p.Refunded), p.Refunded > 0)
	add("Refund of", page.Anchor(s.base+"/payments/"+p.RefundOf, "Collection"), p.RefundOf != "")
	add("Channel", page.Text(words.Channel(p.Channel)), true)
	add("Number", page.Text(Account(v, p.Account)), p.Account != "")
	add("Name", page.Text(p.AccountName), p.AccountName != "" && v.Can(seeNumbers))
	add("Description", page.Text(masks(v, p.Account).Replace(p.Label)), p.Label != "")
	add("Provider", page.Text(words.ProviderName(p.Rail)), ops && p.Rail != "")
	add("Transaction ID", page.Copyable(p.ProviderReference), p.ProviderReference != "")
	add(s.upstream(v), page.ID(p.UpstreamID), s.upstream(v) != "")
	add("Attempts", page.Text(fmt.Sprintf("%d, submitted %s", p.Attempt, page.Times(p.Submissions))), ops && p.Rail != "")
	add("Accepted", page.Time(p.CreatedAt), true)
	add("Settled", page.Time(p.SettledAt), !p.SettledAt.IsZero())
	add("Callback URL", page.ID(masks(v, p.Account).Replace(p.CallbackURL)), p.CallbackURL != "")
	add("Paid by", page.Anchor(s.base+"/payments/"+p.Parent, "Collection"), p.Parent != "" && p.Kind == book.KindTopUp)
	add("Pays for", page.Anchor(s.base+"/payments/"+p.Child, "Airtime"), p.Child != "")
	add("API key ID", page.ID(p.Key), ops && p.Key != "")
	add("ID", page.Copyable(p.ID), true)
	return facts
}

// note returns the current state of the payment in a sentence or two.
func (s story) note() templ.Component {
	p := s.payment
	switch {
	case p.AwaitsApproval():
		return page.Note(page.Open, "Awaiting approval", fmt.Sprintf("Nothing was sent yet. %s is on hold. It returns to the wallet if the payout is rejected, or not approved by %s.", page.Cedis(p.Held()), page.When(p.ApprovalDeadline)))
	case words.Unknown(p):
		return page.Note(page.Unknown, "Outcome unknown", s.unknownText())
	case p.SettledAt.IsZero() && p.Kind == book.KindCollection:
		return page.Note(page.Open, "Waiting for the payer", "The payer received a request to approve this payment."+s.nextText())
	case p.SettledAt.IsZero() && p.Status == book.StatusWaiting:
		return page.Note(page.Open, "Waiting for payment", "The purchase starts after the payer has paid.")
	case p.SettledAt.IsZero():
		return page.Note(page.Open, "Processing", fmt.Sprintf("%s is on hold until the provider confirms the outcome.", page.Cedis(p.Held()))+s.nextText())
	case !p.ContradictedAt.IsZero():
		return page.Note(page.Bad, "Contradicted by the provider", "The provider later reported the opposite outcome. An operator decides where the amount goes.")
	case p.Reason != "":
		text := provider.Sentence(p.Reason)
		if p.Kind == book.KindPayout && p.Status == book.StatusFailed {
			text += " " + page.Cedis(p.Held()) + " went back to the wallet."
		}
		return page.Note(page.Bad, words.StatusBadges[p.PublicStatus()].Word, text)
	}
	return templ.NopComponent
}

// unknownText describes a payment whose outcome is unknown, and the next step.
func (s story) unknownText() string {
	p := s.payment
	text := "The provider has not confirmed whether this payment succeeded. "
	if p.Refusal != book.RefusalNone {
		text = "The provider rejected this payment, but a status query has not confirmed the rejection. "
	}
	if n := s.asked(); n > 0 {
		text += fmt.Sprintf("%s was queried %s. ", words.ProviderName(p.Rail), page.Times(n))
	}
	text = strings.TrimSpace(text) + s.nextText()
	if p.Kind == book.KindCollection {
		return text + " Do not ask the payer again before this payment ends."
	}
	return text + " " + page.Cedis(p.Held()) + " is on hold. Do not pay again."
}

func (s story) nextText() string {
	if s.next.IsZero() {
		return ""
	}
	return " The next status query is at about " + page.When(s.next) + "."
}

// rolesOf lists the roles that received a notice.
func rolesOf(list []notice.Delivered) string {
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = string(d.Role)
	}
	return strings.Join(names, ", ")
}

// steps returns the timeline.
func (s story) steps(v *console.Visit) []page.Step {
	p := s.payment
	steps := []page.Step{{At: p.CreatedAt, Tone: page.Good, What: "Accepted", Text: fmt.Sprintf("%s %s, charges %s", words.KindWords[p.Kind], page.Cedis(p.Amount), page.Cedis(p.Charges))}}
	for _, run := range runs(s.exchanges) {
		steps = append(steps, exchangeStep(run, v.Can(roles.ReadExchanges), masks(v, p.Account)))
	}
	if !p.RefusedAt.IsZero() {
		steps = append(steps, page.Step{At: p.RefusedAt, Tone: page.Unknown, What: "Rejected by the provider, unconfirmed", Text: provider.Sentence(p.RefusalReason)})
	}
	if !p.EscalatedAt.IsZero() {
		steps = append(steps, page.Step{At: p.EscalatedAt, Tone: page.Unknown, What: "Added to the payments that need attention"})
	}
	if len(s.notified) > 0 {
		steps = append(steps, page.Step{At: s.notified[0].At, Tone: page.Plain, What: "Operators were notified", Text: "A notice was delivered to: " + rolesOf(s.notified)})
	}
	if !p.SettledAt.IsZero() {
		b := words.BadgeOf(p)
		steps = append(steps, page.Step{At: p.SettledAt, Tone: b.Tone, What: "Final status: " + strings.ToLower(b.Word), Text: cmp.Or(p.Note, provider.Sentence(p.Reason))})
	}
	if !p.ContradictedAt.IsZero() {
		steps = append(steps, page.Step{At: p.ContradictedAt, Tone: page.Bad, What: "Contradicted by the provider"})
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

// runs divides exchanges into steps: status queries in a row that got the same response are one. Sign-ins that succeeded are left out,
// because they are not about the payment.
func runs(list []provider.Exchange) (all [][]provider.Exchange) {
	for _, x := range list {
		if x.Operation == "token" && x.Err == "" && x.Status < 400 {
			continue
		}
		if last := len(all) - 1; last >= 0 && repeats(all[last][0], x) {
			all[last] = append(all[last], x)
		} else {
			all = append(all, []provider.Exchange{x})
		}
	}
	return all
}

func repeats(a, b provider.Exchange) bool {
	return isStatusQuery(a) && a.Operation == b.Operation && a.Provider == b.Provider && a.Status == b.Status && a.Answer == b.Answer && (a.Err == "") == (b.Err == "")
}

func isStatusQuery(x provider.Exchange) bool { return strings.HasSuffix(x.Operation, "_status") }

// exchangeStep returns requests to a provider with the same response as a step. whole adds the contents of the last one, redacted.
func exchangeStep(run []provider.Exchange, whole bool, masks *strings.Replacer) page.Step {
	x := run[len(run)-1]
	step := page.Step{At: x.At, What: words.ProviderName(x.Provider) + ": " + words.ExchangeWord(x.Operation)}
	after := fmt.Sprintf(" after %d ms", max(x.Took.Milliseconds(), 1))
	if len(run) > 1 {
		step.What += fmt.Sprintf(", %d times", len(run))
		after = fmt.Sprintf(" each time since %s", page.When(run[0].At))
	}
	step.Text = fmt.Sprintf("responded %d%s", x.Status, after)
	switch word := stateIn(x.Answer); {
	case x.Err != "" && x.Status == 0:
		step.Tone, step.Text = page.Unknown, "no response"+after
	case x.Status >= 400 && !isStatusQuery(x):
		step.Tone = page.Bad
	case word != "":
		step.Text = fmt.Sprintf("responded %q (%d)%s", masks.Replace(word), x.Status, after)
	}
	if whole {
		step.Fold = "Request and response (redacted)"
		request := x.Method + " " + x.URL + "\n\n" + page.Indented([]byte(x.Request))
		response := cmp.Or(page.Indented([]byte(x.Answer)), x.Err, "no response")
		step.More = page.Join(page.Pre("Request", masks.Replace(request)), page.Pre("Response", masks.Replace(response)))
	}
	return step
}

// longestState is the maximum length of a state, in bytes.
const longestState = 40

// stateIn returns the state of a payment as a provider's response writes it. It is empty if the response has none.
func stateIn(answer string) string {
	var found struct {
		Status any
		Data   struct{ Status any }
	}
	_ = json.Unmarshal([]byte(answer), &found) // a part of another type stays empty
	for _, s := range []any{found.Data.Status, found.Status} {
		if text, is := s.(string); is && text != "" && len(text) <= longestState {
			return text
		}
	}
	return ""
}

// steps returns the attempts to deliver a webhook.
func (d delivered) steps(whole bool) []page.Step {
	queued := page.Step{At: d.CreatedAt, What: "Webhook queued: " + d.Delivery.URL}
	if whole {
		queued.Fold, queued.More = "Body", page.Pre("Body", page.Indented([]byte(d.Body)))
	}
	steps := []page.Step{queued}
	for _, t := range d.tries {
		text := fmt.Sprintf("Attempt %d: response %d", t.Number, t.Status)
		if t.Status == 0 {
			text = fmt.Sprintf("Attempt %d: no response", t.Number)
		}
		steps = append(steps, page.Step{At: t.At, Tone: page.Bad, What: "Webhook not delivered", Text: strings.TrimSuffix(text+". "+t.Error, ". ")})
	}
	if d.State == webhook.Delivered {
		steps = append(steps, page.Step{At: d.EndedAt, Tone: page.Good, What: "Webhook delivered", Text: fmt.Sprintf("response %d", d.Status)})
	}
	return steps
}

// transferColumns returns the columns of the payment's movements in the ledger.
func (s story) transferColumns(v *console.Visit) []console.Column[ledger.Transfer] {
	place := words.AccountWord
	if v.Route.Site == console.Tenants {
		place = words.PlaceWord
	}
	return []console.Column[ledger.Transfer]{
		console.Text("Movement", "", func(t ledger.Transfer) string { return s.movement(t) }),
		console.Text("From", "", func(t ledger.Transfer) string { return place(t.From) }),
		console.Text("To", "", func(t ledger.Transfer) string { return place(t.To) }),
		console.Money("Amount", "", func(t ledger.Transfer) money.Pesewas { return money.Pesewas(t.Amount) }),
		console.Time("Time", "", func(t ledger.Transfer) time.Time { return t.At }).Laid(console.Under),
	}
}

// movement names a transfer. The last one of a failed payment returns the money.
func (s story) movement(t ledger.Transfer) string {
	if t.Leg == book.LegFinal && s.payment.Status == book.StatusFailed {
		return "Returned to wallet"
	}
	return words.LegWord(t.Leg)
}

// audited returns the details of an entry as text.
func audited(e audit.Entry) string {
	text, err := json.Marshal(e.Details)
	if err != nil {
		return ""
	}
	return page.Indented(text)
}
