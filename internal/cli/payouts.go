package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/webhook"
)

type payoutsCommands struct {
	Find         payoutsFind         `cmd:"" help:"Find payments of all customers by an id, any reference, a number, an amount or a part of the payee's name."`
	List         payoutsList         `cmd:"" help:"List a customer's transfers, newest first."`
	Stuck        payoutsStuck        `cmd:"" help:"List the payments of all customers, of any kind, whose outcome is still unknown."`
	Contradicted payoutsContradicted `cmd:"" aliases:"turned" help:"List final payments that their provider contradicted later: reversed, found paid, paid late."`
	Show         payoutsShow         `cmd:"" help:"Show one payment with its ledger transfers, its webhooks, and why its money is held."`
	Resolve      payoutsResolve      `cmd:"" help:"End a payment by the provider's statement; sends its webhook once."`
	Decide       payoutsDecide       `cmd:"" help:"Take what a contradicted payment left in suspense out of it."`

	References payoutsReferences `cmd:"" help:"Print under which references a request goes to providers, known here or not: to look for it in their statements."`
}

// paymentView is a payment as it is printed.
type paymentView struct {
	book.Payment
	customer string // the tenant's name
}

// paymentColumns are what an operator sees of a payment.
func paymentColumns() []column[paymentView] {
	return []column[paymentView]{
		{"id", func(p paymentView) any { return p.ID }},
		{"tenant", func(p paymentView) any { return p.Tenant }},
		{"customer", func(p paymentView) any { return p.customer }},
		{"kind", func(p paymentView) any { return string(p.Kind) }},
		{"reference", func(p paymentView) any { return p.Reference }},
		{"channel", func(p paymentView) any { return p.Channel }},
		{"account", func(p paymentView) any { return p.Account }},
		{"account_name", func(p paymentView) any { return p.AccountName }},
		{"amount", func(p paymentView) any { return p.Amount }},
		{"charges", func(p paymentView) any { return p.Charges }},
		{"status", func(p paymentView) any { return p.Word() }},
		{"reason", func(p paymentView) any { return p.Reason }},
		{"provider", func(p paymentView) any { return p.Rail }},
		{"provider_reference", func(p paymentView) any { return p.ProviderReference }},
		{"attempt", func(p paymentView) any { return int64(p.Attempt) }},
		{"attempt_reference", func(p paymentView) any { return p.AttemptReference }},
		{"upstream_id", func(p paymentView) any { return p.UpstreamID }},
		{"created_at", func(p paymentView) any { return p.CreatedAt }},
		{"settled_at", func(p paymentView) any { return p.SettledAt }},
		{"escalated_at", func(p paymentView) any { return p.EscalatedAt }},
		{"resolved", func(p paymentView) any { return p.Note }},
	}
}

// views reads what is printed of payments beside their own rows.
func (o *opened) views(ctx context.Context, list ...book.Payment) ([]paymentView, error) {
	var ids []string
	for _, p := range list {
		ids = append(ids, p.Tenant)
	}
	names, err := o.named(ctx, ids)
	views := make([]paymentView, len(list))
	for i, p := range list {
		views[i] = paymentView{p, names[p.Tenant]}
	}
	return views, err
}

// printPayments prints a list of payments, in a table what tells one from another.
func (o *opened) printPayments(e *env, format string, list []book.Payment) error {
	views, err := o.views(e.ctx, list...)
	if err != nil {
		return err
	}
	columns := narrow(format, paymentColumns(), "created_at", "customer", "kind", "reference", "account", "amount", "status", "id")
	return printAll(e.stdout, format, columns, views)
}

// printPayment prints one payment.
func (o *opened) printPayment(e *env, format string, pay book.Payment) error {
	views, err := o.views(e.ctx, pay)
	if err != nil {
		return err
	}
	return printOne(e.stdout, format, paymentColumns(), views[0])
}

// showPayment reads and prints one payment.
func (o *opened) showPayment(ctx context.Context, e *env, format string, p *payments.Payments, id string) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	return o.printPayment(e, format, pay)
}

// findWindows has a command look at 100,000 payments at once: it may take longer than a page.
const findWindows = 20

type payoutsFind struct {
	common
	Text   string `arg:"" help:"Our id, a reference (the customer's, ours or the provider's), a number or account in any spelling, an amount, or a part of the payee's name."`
	Tenant string `name:"tenant" placeholder:"ID" help:"Only of this customer, by id or unique name."`
	Status string `name:"status" enum:"success,submitted,pending,failed,invalid,declined," default:"" placeholder:"STATUS" help:"Only those with this status: success, submitted, pending, failed, invalid or declined."`
	From   string `name:"from" placeholder:"DATE" help:"First day, YYYY-MM-DD in UTC."`
	To     string `name:"to" placeholder:"DATE" help:"Last day, inclusive."`
	Before string `name:"before" placeholder:"ID" help:"Search further: only payments before this one."`
	Limit  count  `name:"limit" default:"50" help:"List at most so many."`
}

// Run finds. Where to search further goes to stderr.
func (c *payoutsFind) Run(e *env) error {
	from, to, err := days(c.From, c.To)
	if err != nil {
		return err
	}
	return c.withSecret(e, func(o *opened, secret config.Secret) error {
		p := o.payments(secret)
		defer p.Close()
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		found, err := o.search(e.ctx, p, secret, book.Search{Text: c.Text, Tenant: c.Tenant, Status: c.Status, From: from, To: to, Before: c.Before, Limit: int(c.Limit), Windows: findWindows})
		if err != nil {
			return err
		}
		if err := o.printPayments(e, c.Output, found.Payments); err != nil {
			return err
		}
		if len(found.Payments) == 0 && strings.HasPrefix(c.Text, "req_") {
			fmt.Fprintf(e.stderr, "No payment is known by the request id %s. The database has the ids of refused and failed requests alone (the page Requests of the console); "+
				"look for others in the access log of the servers (MAKOLA_ACCESS_LOG)\n", c.Text)
		}
		if found.More != "" {
			fmt.Fprintf(e.stderr, "There may be older ones: search further with --before %s, or say --from and --to\n", found.More)
		}
		return nil
	})
}

// search finds payments. A search for a person is limited for each user of the machine, and is in the audit log with a keyed
// hash, as it is in the console.
func (o *opened) search(ctx context.Context, p *payments.Payments, secret config.Secret, s book.Search) (book.Found, error) {
	s.Anonymous = true
	if !s.Person() && !s.Number() {
		return p.Search(ctx, s)
	}
	if !s.Number() {
		if found, err := p.Search(ctx, s); err != nil || len(found.Payments) > 0 {
			return found, err
		}
	}
	hash := identity.NumberHash(secret.Derive(identity.NumberKey), s.Text)
	entry := audit.Entry{Actor: o.actor, Origin: origin(), Action: "numbers.search", Tenant: s.Tenant, Subject: hash}
	if err := o.people.Use(ctx, identity.SearchesOfNumbers, o.actor, hash, entry); err != nil {
		return book.Found{}, err
	}
	s.Anonymous = false
	return p.Search(ctx, s)
}

type payoutsList struct {
	common
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	Status string `name:"status" enum:"success,submitted,pending,failed,invalid,declined," default:"" placeholder:"STATUS" help:"Only those with this status: success, submitted, pending, failed, invalid or declined."`
	Kind   string `name:"kind" enum:"payout,collection" default:"payout" help:"payout or collection."`
	Page   int    `name:"page" default:"1" help:"Page, from 1."`
	Size   int    `name:"page-size" default:"50" help:"Rows of a page, 1 to 100."`
}

// Run lists.
func (c *payoutsList) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		page, err := p.History(e.ctx, c.Tenant, book.Filter{Kind: book.Kind(c.Kind), Status: c.Status, Page: c.Page, Size: c.Size})
		if err != nil {
			return err
		}
		if err := o.printPayments(e, c.Output, page.Rows); err != nil {
			return err
		}
		if page.LastPage > 1 {
			fmt.Fprintf(e.stderr, "Page %d of %d, %d payments\n", c.Page, page.LastPage, page.Total)
		}
		return nil
	})
}

type payoutsReferences struct {
	common
	Tenant    string `arg:"" help:"Id or unique name of the customer."`
	Reference string `arg:"" help:"The customer's own reference of the request."`
	Kind      string `name:"kind" enum:"payout,collection,topup,bundle" default:"payout" help:"payout, collection, topup or bundle."`
}

// attempt is one attempt of a request, as it would be made.
type attempt struct {
	number    int
	reference string
}

// Run prints references.
func (c *payoutsReferences) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		t, err := o.tenant(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		var all []attempt
		for i, reference := range p.References(t, book.Kind(c.Kind), c.Reference) {
			all = append(all, attempt{i + 1, reference})
		}
		return printAll(e.stdout, c.Output, []column[attempt]{
			{"attempt", func(a attempt) any { return int64(a.number) }},
			{"attempt_reference", func(a attempt) any { return a.reference }},
		}, all)
	})
}

// pageFlags are one page of a list that is read as a whole.
type pageFlags struct {
	Page count `name:"page" default:"1" help:"Page, from 1."`
	Size count `name:"page-size" default:"50" help:"Rows of a page."`
}

// page cuts a page out of a list, and says on stderr which it is of how many.
func page[T any](e *env, f pageFlags, all []T) []T {
	from := min((int(f.Page)-1)*int(f.Size), len(all))
	to := min(from+int(f.Size), len(all))
	if len(all) > int(f.Size) {
		fmt.Fprintf(e.stderr, "Page %d of %d, %d rows\n", f.Page, (len(all)-1)/int(f.Size)+1, len(all))
	}
	return all[from:to]
}

type payoutsStuck struct {
	common
	pageFlags
}

// Run lists what operators were called for.
func (c *payoutsStuck) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		rows, err := p.Stuck(e.ctx)
		if err != nil {
			return err
		}
		return o.printPayments(e, c.Output, page(e, c.pageFlags, rows))
	})
}

type payoutsContradicted struct {
	common
	pageFlags
}

// contradictionView is one contradiction as it is printed.
type contradictionView struct {
	book.Contradiction
	customer string
}

func contradictionColumns() []column[contradictionView] {
	return []column[contradictionView]{
		{"at", func(v contradictionView) any { return v.At }},
		{"event", func(v contradictionView) any { return string(v.Event) }},
		{"said", func(v contradictionView) any { return v.Said.String() }},
		{"customer", func(v contradictionView) any { return v.customer }},
		{"kind", func(v contradictionView) any { return string(v.Payment.Kind) }},
		{"reference", func(v contradictionView) any { return v.Payment.Reference }},
		{"amount", func(v contradictionView) any { return v.Payment.Amount }},
		{"status", func(v contradictionView) any { return string(v.Payment.Status) }},
		{"provider", func(v contradictionView) any { return v.Payment.Rail }},
		{"code", func(v contradictionView) any { return v.Code }},
		{"message", func(v contradictionView) any { return v.Message }},
		{"id", func(v contradictionView) any { return v.Payment.ID }},
	}
}

// Run lists contradictions, newest first.
func (c *payoutsContradicted) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		all, err := p.Contradictions(e.ctx)
		if err != nil {
			return err
		}
		all = page(e, c.pageFlags, all)
		var ids []string
		for _, one := range all {
			ids = append(ids, one.Payment.Tenant)
		}
		names, err := o.named(e.ctx, ids)
		if err != nil {
			return err
		}
		views := make([]contradictionView, len(all))
		for i, one := range all {
			views[i] = contradictionView{one, names[one.Payment.Tenant]}
		}
		columns := narrow(c.Output, contradictionColumns(), "at", "event", "said", "customer", "reference", "amount", "status", "id")
		return printAll(e.stdout, c.Output, columns, views)
	})
}

type payoutsShow struct {
	common
	ID string `arg:"" help:"Whatever makola payouts find finds one payment by."`
}

// shown is a payment with its whole story.
type shown struct {
	paymentView
	held         string
	exchanges    int // with providers: POSTs and questions
	lastExchange time.Time
	next         time.Time
	transfers    []string
	webhooks     []string
}

// shownColumns are a payment's with what became of it.
func shownColumns() []column[shown] {
	var columns []column[shown]
	for _, c := range paymentColumns() {
		columns = append(columns, column[shown]{c.name, func(s shown) any { return c.value(s.paymentView) }})
	}
	return append(columns,
		column[shown]{"held", func(s shown) any { return s.held }},
		column[shown]{"exchanges", func(s shown) any { return int64(s.exchanges) }},
		column[shown]{"last_exchange_at", func(s shown) any { return s.lastExchange }},
		column[shown]{"next_question_at", func(s shown) any { return s.next }},
		column[shown]{"transfers", func(s shown) any { return s.transfers }},
		column[shown]{"webhooks", func(s shown) any { return s.webhooks }},
	)
}

// the finds the one payment that a text names.
func (o *opened) the(e *env, p *payments.Payments, secret config.Secret, text string) (book.Payment, error) {
	found, err := o.search(e.ctx, p, secret, book.Search{Text: text, Limit: named, Windows: findWindows})
	switch {
	case err != nil:
		return book.Payment{}, err
	case len(found.Payments) == 0 && found.More != "":
		return book.Payment{}, problem.New(problem.NotFound, "payment_not_found", "Not among the newest payments: makola payouts find searches further")
	case len(found.Payments) == 0:
		return book.Payment{}, problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	case len(found.Payments) == 1:
		return found.Payments[0], nil
	}
	var ids []string
	for _, pay := range found.Payments {
		ids = append(ids, pay.ID)
	}
	return book.Payment{}, problem.New(problem.Malformed, "several_payments", "Several payments match; name one by its id: "+strings.Join(ids, " "))
}

// Run shows one payment.
func (c *payoutsShow) Run(e *env) error {
	return c.withSecret(e, func(o *opened, secret config.Secret) error {
		p := o.payments(secret)
		defer p.Close()
		pay, err := o.the(e, p, secret, c.ID)
		if err != nil {
			return err
		}
		views, err := o.views(e.ctx, pay)
		if err != nil {
			return err
		}
		s := shown{paymentView: views[0], held: whyHeld(pay), next: p.NextQuestion(pay)}
		said, err := o.routes().Exchanges(e.ctx, pay.ID)
		if err != nil {
			return err
		}
		for _, x := range said {
			if s.exchanges++; x.At.After(s.lastExchange) {
				s.lastExchange = x.At
			}
		}
		moved, err := o.ledger.OfSubject(e.ctx, pay.ID)
		if err != nil {
			return err
		}
		for _, t := range moved {
			s.transfers = append(s.transfers, fmt.Sprintf("%s %s: %s -> %s %s", t.At.Format(time.RFC3339), t.Leg, t.From, t.To, money.Pesewas(t.Amount)))
		}
		events, err := o.webhooks(config.Secret{}).List(e.ctx, webhook.Filter{Tenant: pay.Tenant, Subject: pay.ID, Limit: named})
		if err != nil {
			return err
		}
		for _, d := range events {
			s.webhooks = append(s.webhooks, fmt.Sprintf("%s %s: %s after %d attempts, last answer %d, to %s", d.CreatedAt.Format(time.RFC3339), d.ID, d.State, d.Attempts, d.Status, d.URL))
		}
		return printOne(e.stdout, c.Output, shownColumns(), s)
	})
}

// whyHeld says why the money of an open payment is held; nothing for a final one.
func whyHeld(pay book.Payment) string {
	switch {
	case !pay.Status.Open():
		return ""
	case pay.Kind == book.KindCollection:
		return "nothing is held: the payer was asked"
	case pay.Status == book.StatusWaiting:
		return "nothing is held: the payer has not paid yet"
	case pay.Refusal != book.RefusalNone:
		return "the provider refused it and has not confirmed that when asked; it is asked each minute. Do not pay again"
	case pay.Refusal != book.RefusalNone:
		return "the provider refused it (" + pay.RefusalReason + ") and has not confirmed that it has nothing of it. Do not pay again"
	case pay.Classed && pay.Class == provider.Unknown:
		return "the outcome is unknown: the provider may have paid. Do not pay again"
	case !pay.EscalatedAt.IsZero():
		return "the provider has not ended it, or its answer does not match: an operator was called"
	}
	return "the provider has not said yet whether it was done"
}

type payoutsResolve struct {
	common
	writing
	ID     string `arg:"" help:"Our id or provider reference of the payment."`
	Paid   bool   `name:"paid" help:"The provider's statement has it as done."`
	Unpaid bool   `name:"unpaid" help:"The provider's statement does not have it: what was held goes back."`

	Fee        amount `name:"provider-fee" placeholder:"CEDIS" help:"What the provider took for itself, as the statement has it. Without it the float disagrees until the provider can be asked."`
	Commission amount `name:"commission" placeholder:"CEDIS" help:"What the provider gave us, as the statement has it."`

	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"By what evidence, for the audit log."`
}

// Run resolves.
func (c *payoutsResolve) Run(e *env) error {
	if c.Paid == c.Unpaid {
		return usage("Say either --paid or --unpaid")
	}
	if c.Unpaid && (c.Fee.value != nil || c.Commission.value != nil) {
		return usage("--provider-fee and --commission belong to --paid")
	}
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		pay, err := p.Find(e.ctx, c.ID)
		if err != nil {
			return err
		}
		a := o.changes(config.Secret{})
		a.Payments = p
		r, err := a.Resolve(e.ctx, o.by, newID(), pay.ID, changes.Statement{Paid: c.Paid, Fee: c.Fee.value, Commission: c.Commission.value}, c.Reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error { return o.showPayment(ctx, e, c.Output, p, pay.ID) })
	})
}

type payoutsDecide struct {
	common
	writing
	ID     string `arg:"" help:"Our id or provider reference of the payment."`
	For    string `name:"for" enum:"customer,house,provider" required:"" help:"Who gets (reversed) or bears (paid after a refund) the amount: customer or house. provider: its last word is the payment's status again, and the amount goes back as it was."`
	Paid   bool   `name:"paid" xor:"was" help:"You resolved it as unpaid, and it was paid after all."`
	Unpaid bool   `name:"unpaid" xor:"was" help:"You resolved it as paid, and it was not."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run decides. An operator's own resolution that was wrong is taken back first: each is a change of its own, and one that waits for a
// second person ends the command.
func (c *payoutsDecide) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		pay, err := p.Find(e.ctx, c.ID)
		if err != nil {
			return err
		}
		a := o.changes(config.Secret{})
		a.Payments = p
		decide := func(ctx context.Context) error {
			r, err := a.Decide(ctx, o.by, newID(), pay.ID, changes.Side(c.For), c.Reason)
			return o.asked(e, c.Output, r, err, func(ctx context.Context) error { return o.showPayment(ctx, e, c.Output, p, pay.ID) })
		}
		if !c.Paid && !c.Unpaid {
			return decide(e.ctx)
		}
		r, err := a.Contradict(e.ctx, o.by, newID(), pay.ID, c.Paid, c.Reason)
		if err != nil && problem.From(err).Code == changes.CodeContradicted { // by this command, which broke off before it decided
			return decide(e.ctx)
		}
		return o.asked(e, c.Output, r, err, decide)
	})
}
