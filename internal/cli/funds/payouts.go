package funds

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/webhook"
)

// Payouts holds the commands of makola payouts.
type Payouts struct {
	Find         payoutsFind         `cmd:"" help:"Find payments of all accounts by id, reference, phone number, amount or part of the payee's name."`
	List         payoutsList         `cmd:"" help:"List an account's payments, newest first."`
	Stuck        payoutsStuck        `cmd:"" help:"List payments of all accounts that need attention, such as an unknown outcome."`
	Contradicted payoutsContradicted `cmd:"" aliases:"turned" help:"List final payments that their provider contradicted later: reversed, found paid, paid late."`
	Show         payoutsShow         `cmd:"" help:"Show a payment with its ledger transfers, its webhooks, and why its money is on hold."`
	Resolve      payoutsResolve      `cmd:"" help:"Set the final status of a payment from the provider's statement, and send its webhook once."`
	Decide       payoutsDecide       `cmd:"" help:"Decide who receives or pays the amount that a contradicted payment left in suspense."`

	Refund     payoutsRefund     `cmd:"" help:"Refund a collection, or a part of it, to its payer. A server applies the refund."`
	References payoutsReferences `cmd:"" help:"Print a request's references at providers, to find the request in their statements."`
}

// paymentView is a payment as it is printed.
type paymentView struct {
	book.Payment
	customer string // the tenant's name
}

// paymentColumns are the columns of a payment.
func paymentColumns() []frame.Column[paymentView] {
	return []frame.Column[paymentView]{
		{Name: "id", Value: func(p paymentView) any { return p.ID }},
		{Name: "tenant", Value: func(p paymentView) any { return p.Tenant }},
		{Name: "customer", Value: func(p paymentView) any { return p.customer }},
		{Name: "kind", Value: func(p paymentView) any { return string(p.Kind) }},
		{Name: "reference", Value: func(p paymentView) any { return p.Reference }},
		{Name: "channel", Value: func(p paymentView) any { return p.Channel }},
		{Name: "account", Value: func(p paymentView) any { return p.Account }},
		{Name: "account_name", Value: func(p paymentView) any { return p.AccountName }},
		{Name: "amount", Value: func(p paymentView) any { return p.Amount }},
		{Name: "charges", Value: func(p paymentView) any { return p.Charges }},
		{Name: "status", Value: func(p paymentView) any { return p.PublicStatus() }},
		{Name: "reason", Value: func(p paymentView) any { return p.Reason }},
		{Name: "provider", Value: func(p paymentView) any { return p.Rail }},
		{Name: "provider_reference", Value: func(p paymentView) any { return p.ProviderReference }},
		{Name: "attempt", Value: func(p paymentView) any { return int64(p.Attempt) }},
		{Name: "attempt_reference", Value: func(p paymentView) any { return p.AttemptReference }},
		{Name: "upstream_id", Value: func(p paymentView) any { return p.UpstreamID }},
		{Name: "created_at", Value: func(p paymentView) any { return p.CreatedAt }},
		{Name: "settled_at", Value: func(p paymentView) any { return p.SettledAt }},
		{Name: "escalated_at", Value: func(p paymentView) any { return p.EscalatedAt }},
		{Name: "resolved", Value: func(p paymentView) any { return p.Note }},
	}
}

// viewsOf reads the names and facts that are printed with payments.
func viewsOf(ctx context.Context, o *frame.Opened, list ...book.Payment) ([]paymentView, error) {
	var ids []string
	for _, p := range list {
		ids = append(ids, p.Tenant)
	}
	names, err := o.Named(ctx, ids)
	views := make([]paymentView, len(list))
	for i, p := range list {
		views[i] = paymentView{p, names[p.Tenant]}
	}
	return views, err
}

// printPayments prints payments, in a table with the columns that distinguish them.
func printPayments(o *frame.Opened, e *frame.Env, format string, list []book.Payment) error {
	views, err := viewsOf(e.Ctx, o, list...)
	if err != nil {
		return err
	}
	columns := frame.Narrow(format, paymentColumns(), "created_at", "customer", "kind", "reference", "account", "amount", "status", "id")
	return frame.PrintAll(e.Stdout, format, columns, views)
}

// printPayment prints one payment.
func printPayment(o *frame.Opened, e *frame.Env, format string, pay book.Payment) error {
	views, err := viewsOf(e.Ctx, o, pay)
	if err != nil {
		return err
	}
	return frame.PrintOne(e.Stdout, format, paymentColumns(), views[0])
}

// showPayment reads and prints one payment.
func showPayment(ctx context.Context, o *frame.Opened, e *frame.Env, format string, p *payments.Payments, id string) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	return printPayment(o, e, format, pay)
}

// findWindows lets a command search 100,000 payments at once. A page searches 5,000.
const findWindows = 20

type payoutsFind struct {
	frame.Common
	Text   string      `arg:"" help:"Id, reference (the account's, ours or the provider's), phone or account number, amount, or part of the payee's name."`
	Tenant string      `name:"account" aliases:"tenant" placeholder:"ID" help:"Account of the payments, by id or unique name."`
	Status string      `name:"status" enum:"success,submitted,pending,failed,invalid,declined," default:"" placeholder:"STATUS" help:"Status of the payments: success, submitted, pending, failed, invalid or declined."`
	From   string      `name:"from" placeholder:"DATE" help:"First day, YYYY-MM-DD in UTC."`
	To     string      `name:"to" placeholder:"DATE" help:"Last day, inclusive."`
	Before string      `name:"before" placeholder:"ID" help:"List payments older than the payment with this id."`
	Limit  frame.Count `name:"limit" default:"50" help:"Maximum number of rows."`
}

// Run finds payments. It prints on stderr how to search further.
func (c *payoutsFind) Run(e *frame.Env) error {
	from, to, err := days(c.From, c.To)
	if err != nil {
		return err
	}
	return c.WithSecret(e, func(o *frame.Opened, secret config.Secret) error {
		p := o.Payments(secret)
		defer p.Close()
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		found, err := searchPayments(e.Ctx, o, p, secret, book.Search{Text: c.Text, Tenant: c.Tenant, Status: c.Status, From: from, To: to, Before: c.Before, Limit: int(c.Limit), Windows: findWindows})
		if err != nil {
			return err
		}
		if err := printPayments(o, e, c.Output, found.Payments); err != nil {
			return err
		}
		if len(found.Payments) == 0 && strings.HasPrefix(c.Text, "req_") {
			fmt.Fprintf(e.Stderr, "No payment has the request id %s. The database has only the ids of refused and failed requests (page Requests of the console); "+
				"look for others in the access log of the servers (MAKOLA_ACCESS_LOG)\n", c.Text)
		}
		if found.More != "" {
			fmt.Fprintf(e.Stderr, "There may be older payments: search further with --before %s, or give --from and --to\n", found.More)
		}
		return nil
	})
}

// searchPayments finds payments. A search for a phone number counts against the limit of this machine's user, and is
// audited with a keyed hash, as in the console.
func searchPayments(ctx context.Context, o *frame.Opened, p *payments.Payments, secret config.Secret, s book.Search) (book.Found, error) {
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
	entry := audit.Entry{Actor: o.Actor, Origin: frame.Origin(), Action: "numbers.search", Tenant: s.Tenant, Subject: hash}
	if err := o.People.Use(ctx, identity.SearchesOfNumbers, o.Actor, hash, entry); err != nil {
		return book.Found{}, err
	}
	s.Anonymous = false
	return p.Search(ctx, s)
}

type payoutsList struct {
	frame.Common
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	Status string `name:"status" enum:"success,submitted,pending,failed,invalid,declined," default:"" placeholder:"STATUS" help:"Status of the payments: success, submitted, pending, failed, invalid or declined."`
	Kind   string `name:"kind" enum:"payout,collection" default:"payout" help:"payout or collection."`
	Page   int    `name:"page" default:"1" help:"Page, from 1."`
	Size   int    `name:"page-size" default:"50" help:"Rows per page, 1 to 100."`
}

// Run lists.
func (c *payoutsList) Run(e *frame.Env) error {
	return c.WithPayments(e, func(o *frame.Opened, p *payments.Payments) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		page, err := p.History(e.Ctx, c.Tenant, book.Filter{Kind: book.Kind(c.Kind), Status: c.Status, Page: c.Page, Size: c.Size})
		if err != nil {
			return err
		}
		if err := printPayments(o, e, c.Output, page.Rows); err != nil {
			return err
		}
		if page.LastPage > 1 {
			fmt.Fprintf(e.Stderr, "Page %d of %d, %d payments\n", c.Page, page.LastPage, page.Total)
		}
		return nil
	})
}

type payoutsReferences struct {
	frame.Common
	Tenant    string `arg:"" name:"account" help:"Id or unique name of the account."`
	Reference string `arg:"" help:"The account's own reference of the request."`
	Kind      string `name:"kind" enum:"payout,collection,topup,bundle" default:"payout" help:"payout, collection, topup or bundle."`
}

// attempt is one possible attempt of a request.
type attempt struct {
	number    int
	reference string
}

// Run prints references.
func (c *payoutsReferences) Run(e *frame.Env) error {
	return c.WithPayments(e, func(o *frame.Opened, p *payments.Payments) error {
		t, err := o.Tenant(e.Ctx, c.Tenant)
		if err != nil {
			return err
		}
		var all []attempt
		for i, reference := range p.References(t, book.Kind(c.Kind), c.Reference) {
			all = append(all, attempt{i + 1, reference})
		}
		return frame.PrintAll(e.Stdout, c.Output, []frame.Column[attempt]{
			{Name: "attempt", Value: func(a attempt) any { return int64(a.number) }},
			{Name: "attempt_reference", Value: func(a attempt) any { return a.reference }},
		}, all)
	})
}

// pageFlags are one page of a list that is read as a whole.
type pageFlags struct {
	Page frame.Count `name:"page" default:"1" help:"Page, from 1."`
	Size frame.Count `name:"page-size" default:"50" help:"Rows per page."`
}

// page returns one page of a list, and prints its number and the number of pages on stderr.
func page[T any](e *frame.Env, f pageFlags, all []T) []T {
	from := min((int(f.Page)-1)*int(f.Size), len(all))
	to := min(from+int(f.Size), len(all))
	if len(all) > int(f.Size) {
		fmt.Fprintf(e.Stderr, "Page %d of %d, %d rows\n", f.Page, (len(all)-1)/int(f.Size)+1, len(all))
	}
	return all[from:to]
}

type payoutsStuck struct {
	frame.Common
	pageFlags
}

// Run lists the payments that need attention.
func (c *payoutsStuck) Run(e *frame.Env) error {
	return c.WithPayments(e, func(o *frame.Opened, p *payments.Payments) error {
		rows, err := p.Stuck(e.Ctx)
		if err != nil {
			return err
		}
		return printPayments(o, e, c.Output, page(e, c.pageFlags, rows))
	})
}

type payoutsContradicted struct {
	frame.Common
	pageFlags
}

// contradictionView is one contradiction as it is printed.
type contradictionView struct {
	book.Contradiction
	customer string
}

func contradictionColumns() []frame.Column[contradictionView] {
	return []frame.Column[contradictionView]{
		{Name: "at", Value: func(v contradictionView) any { return v.At }},
		{Name: "event", Value: func(v contradictionView) any { return string(v.Event) }},
		{Name: "said", Value: func(v contradictionView) any { return v.Reported.String() }},
		{Name: "customer", Value: func(v contradictionView) any { return v.customer }},
		{Name: "kind", Value: func(v contradictionView) any { return string(v.Payment.Kind) }},
		{Name: "reference", Value: func(v contradictionView) any { return v.Payment.Reference }},
		{Name: "amount", Value: func(v contradictionView) any { return v.Payment.Amount }},
		{Name: "status", Value: func(v contradictionView) any { return string(v.Payment.Status) }},
		{Name: "provider", Value: func(v contradictionView) any { return v.Payment.Rail }},
		{Name: "code", Value: func(v contradictionView) any { return v.Code }},
		{Name: "message", Value: func(v contradictionView) any { return v.Message }},
		{Name: "id", Value: func(v contradictionView) any { return v.Payment.ID }},
	}
}

// Run lists contradictions, newest first.
func (c *payoutsContradicted) Run(e *frame.Env) error {
	return c.WithPayments(e, func(o *frame.Opened, p *payments.Payments) error {
		all, err := p.Contradictions(e.Ctx)
		if err != nil {
			return err
		}
		all = page(e, c.pageFlags, all)
		var ids []string
		for _, one := range all {
			ids = append(ids, one.Payment.Tenant)
		}
		names, err := o.Named(e.Ctx, ids)
		if err != nil {
			return err
		}
		views := make([]contradictionView, len(all))
		for i, one := range all {
			views[i] = contradictionView{one, names[one.Payment.Tenant]}
		}
		columns := frame.Narrow(c.Output, contradictionColumns(), "at", "event", "said", "customer", "reference", "amount", "status", "id")
		return frame.PrintAll(e.Stdout, c.Output, columns, views)
	})
}

type payoutsShow struct {
	frame.Common
	ID string `arg:"" help:"A value that makola payouts find accepts, and that matches exactly one payment."`
}

// shown is a payment with its transfers, webhooks and audit entries.
type shown struct {
	paymentView
	held         string
	exchanges    int // requests to providers: submissions and queries
	lastExchange time.Time
	next         time.Time
	transfers    []string
	webhooks     []string
}

// shownColumns are the columns of a payment with its history.
func shownColumns() []frame.Column[shown] {
	var columns []frame.Column[shown]
	for _, c := range paymentColumns() {
		columns = append(columns, frame.Column[shown]{Name: c.Name, Value: func(s shown) any { return c.Value(s.paymentView) }})
	}
	return append(columns,
		frame.Column[shown]{Name: "held", Value: func(s shown) any { return s.held }},
		frame.Column[shown]{Name: "exchanges", Value: func(s shown) any { return int64(s.exchanges) }},
		frame.Column[shown]{Name: "last_exchange_at", Value: func(s shown) any { return s.lastExchange }},
		frame.Column[shown]{Name: "next_question_at", Value: func(s shown) any { return s.next }},
		frame.Column[shown]{Name: "transfers", Value: func(s shown) any { return s.transfers }},
		frame.Column[shown]{Name: "webhooks", Value: func(s shown) any { return s.webhooks }},
	)
}

// thePayment finds the one payment that a text identifies.
func thePayment(o *frame.Opened, e *frame.Env, p *payments.Payments, secret config.Secret, text string) (book.Payment, error) {
	found, err := searchPayments(e.Ctx, o, p, secret, book.Search{Text: text, Limit: named, Windows: findWindows})
	switch {
	case err != nil:
		return book.Payment{}, err
	case len(found.Payments) == 0 && found.More != "":
		return book.Payment{}, problem.New(problem.NotFound, "payment_not_found", "Payment not found among the newest payments. Search further with makola payouts find")
	case len(found.Payments) == 0:
		return book.Payment{}, problem.New(problem.NotFound, "payment_not_found", "Payment not found. Search for it with makola payouts find")
	case len(found.Payments) == 1:
		return found.Payments[0], nil
	}
	var ids []string
	for _, pay := range found.Payments {
		ids = append(ids, pay.ID)
	}
	return book.Payment{}, problem.New(problem.Malformed, "several_payments", "Several payments match. Give the id of one: "+strings.Join(ids, " "))
}

// Run shows one payment.
func (c *payoutsShow) Run(e *frame.Env) error {
	return c.WithSecret(e, func(o *frame.Opened, secret config.Secret) error {
		p := o.Payments(secret)
		defer p.Close()
		pay, err := thePayment(o, e, p, secret, c.ID)
		if err != nil {
			return err
		}
		views, err := viewsOf(e.Ctx, o, pay)
		if err != nil {
			return err
		}
		s := shown{paymentView: views[0], held: whyHeld(pay), next: p.NextQuery(pay)}
		said, err := o.Routes().Exchanges(e.Ctx, pay.ID)
		if err != nil {
			return err
		}
		for _, x := range said {
			if s.exchanges++; x.At.After(s.lastExchange) {
				s.lastExchange = x.At
			}
		}
		moved, err := o.Ledger.OfSubject(e.Ctx, pay.ID)
		if err != nil {
			return err
		}
		for _, t := range moved {
			s.transfers = append(s.transfers, fmt.Sprintf("%s %s: %s -> %s %s", t.At.Format(time.RFC3339), t.Leg, t.From, t.To, money.Pesewas(t.Amount)))
		}
		events, err := o.Webhooks(config.Secret{}).List(e.Ctx, webhook.Filter{Tenant: pay.Tenant, Subject: pay.ID, Limit: named})
		if err != nil {
			return err
		}
		for _, d := range events {
			s.webhooks = append(s.webhooks, fmt.Sprintf("%s %s: %s after %d attempts, last answer %d, to %s", d.CreatedAt.Format(time.RFC3339), d.ID, d.State, d.Attempts, d.Status, d.URL))
		}
		return frame.PrintOne(e.Stdout, c.Output, shownColumns(), s)
	})
}

// whyHeld returns the reason why the money of an open payment is on hold. It is empty for a final payment.
func whyHeld(pay book.Payment) string {
	switch {
	case !pay.Status.Open():
		return ""
	case pay.Kind == book.KindCollection:
		return "no money is on hold: the payer was asked to pay"
	case pay.Status == book.StatusWaiting:
		return "no money is on hold: the payer has not paid yet"
	case pay.Refusal != book.RefusalNone && pay.RefusalReason != "":
		return "the provider refused it (" + pay.RefusalReason + "), but a status query has not confirmed it yet. Do not pay again"
	case pay.Refusal != book.RefusalNone:
		return "the provider refused it, but a status query has not confirmed it yet; Makola queries every minute. Do not pay again"
	case pay.Classed && pay.Class == provider.Unknown:
		return "the outcome is unknown: the provider may have paid. Do not pay again"
	case !pay.EscalatedAt.IsZero():
		return "the provider has not reported an outcome in time, or its answer does not match: operators were alerted"
	}
	return "the provider has not reported the outcome yet"
}

type payoutsResolve struct {
	frame.Common
	frame.Writing
	ID     string `arg:"" help:"Id or provider reference of the payment."`
	Paid   bool   `name:"paid" help:"The provider's statement shows the payment as done."`
	Unpaid bool   `name:"unpaid" help:"The provider's statement does not show the payment: return the amount on hold."`

	Fee        frame.Amount `name:"provider-fee" placeholder:"CEDIS" help:"The provider's fee according to its statement. Without it the float differs until the provider reports the fee."`
	Commission frame.Amount `name:"commission" placeholder:"CEDIS" help:"The provider's commission according to its statement."`

	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Evidence for the decision, for the audit log."`
}

// Check refuses flags that cannot be combined.
func (c *payoutsResolve) Check() error {
	if c.Paid == c.Unpaid {
		return frame.Usage("Give either --paid or --unpaid")
	}
	if c.Unpaid && (c.Fee.Value != nil || c.Commission.Value != nil) {
		return frame.Usage("--provider-fee and --commission need --paid")
	}
	return nil
}

type payoutsDecide struct {
	frame.Common
	frame.Writing
	ID     string `arg:"" help:"Id or provider reference of the payment."`
	For    string `name:"for" enum:"customer,house,provider" required:"" help:"Party that receives a reversed amount, or pays an amount that was sent after a refund: customer, or house (the company). With provider, the payment gets the provider's last status, and its amounts are restored."`
	Paid   bool   `name:"paid" xor:"was" help:"The payment was resolved as unpaid, but it was paid."`
	Unpaid bool   `name:"unpaid" xor:"was" help:"The payment was resolved as paid, but it was not."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Run decides about a payment. With --paid or --unpaid it first reverses the operator's wrong resolution, by a
// separate request. The command ends if that request waits for approval.
func (c *payoutsDecide) Run(e *frame.Env) error {
	line := map[string]string{"payment": c.ID, "for": c.For, "reason": c.Reason}
	decide := frame.Alias{Kind: changes.KindDecide, Sealed: true, Show: showEnded}
	if !c.Paid && !c.Unpaid {
		return decide.Request(e, &c.Common, line)
	}
	line["ending"] = map[bool]string{true: "paid", false: "unpaid"}[c.Paid]
	next := func(q *frame.Ask) error {
		q.Values = changes.Values{"payment": c.ID, "for": c.For}
		return decide.Do(q)
	}
	// If the resolution is reversed already, an interrupted run of this command has reversed it.
	return frame.Alias{Kind: changes.KindContradict, Sealed: true, Same: payments.CodeContradicted, Show: next}.Request(e, &c.Common, line)
}

// showEnded prints the payment of a change.
func showEnded(q *frame.Ask) error {
	return showPayment(q.E.Ctx, q.O, q.E, q.Output, q.Changes.Payments, q.Values["payment"])
}

// named is the maximum number of listed items: accounts with the default plan, payments of a search, events of a
// payment.
const named = 10

type payoutsRefund struct {
	frame.Common
	frame.Writing
	Tenant     string       `arg:"" name:"account" help:"Id or unique name of the account."`
	Collection string       `arg:"" help:"Id or reference of the collection."`
	Amount     frame.Amount `name:"amount" placeholder:"CEDIS" help:"Amount to refund. Default: the whole amount that is not refunded yet."`
	Reference  string       `name:"reference" placeholder:"TEXT" help:"Reference of the refund, 12 to 36 characters, used once. Default: a generated reference."`
	Reason     string       `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the payer and the audit log."`
	Wait       bool         `name:"wait" help:"Wait until a server has applied the refund."`
}

// awaitRefund waits until a server has applied a request that needs no approver.
func awaitRefund(q *frame.Ask) error {
	if _, wait := q.Line["wait"]; !wait {
		return nil
	}
	for q.Request.State == changes.Waiting && q.Request.Needs == 0 {
		select {
		case <-q.E.Ctx.Done():
			return q.E.Ctx.Err()
		case <-time.After(followEvery):
		}
		var err error
		if q.Request, err = q.Changes.Store.Get(q.E.Ctx, q.Request.ID); err != nil {
			return err
		}
	}
	return nil
}

// showRefund prints the payment of an applied refund.
func showRefund(q *frame.Ask) error {
	tenantID, reference, err := changes.RefundIn(q.Request)
	if err != nil {
		return err
	}
	page, err := q.Changes.Payments.History(q.E.Ctx, tenantID, book.Filter{Kind: book.KindPayout, Reference: reference, Page: 1, Size: 1})
	if err != nil {
		return err
	}
	return printPayments(q.O, q.E, q.Output, page.Rows)
}
