package cli

import (
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
)

type payoutsCommands struct {
	List    payoutsList    `cmd:"" help:"List a customer's transfers, newest first."`
	Stuck   payoutsStuck   `cmd:"" help:"List the payments of all customers, of any kind, whose outcome nobody could find out."`
	Turned  payoutsTurned  `cmd:"" help:"List the payments about which a provider contradicted itself."`
	Show    payoutsShow    `cmd:"" help:"Show one payment with its ledger transfers."`
	Resolve payoutsResolve `cmd:"" help:"End a payment by the provider's statement; sends its webhook once."`
	Decide  payoutsDecide  `cmd:"" help:"Take what a contradicted payment left in suspense out of it."`

	References payoutsReferences `cmd:"" help:"Print under which references a request goes to providers, known here or not: to look for it in their statements."`
}

// paymentColumns are what an operator sees of a payment.
func paymentColumns() []column[payments.Payment] {
	return []column[payments.Payment]{
		{"id", func(p payments.Payment) any { return p.ID }},
		{"tenant", func(p payments.Payment) any { return p.Tenant }},
		{"kind", func(p payments.Payment) any { return string(p.Kind) }},
		{"reference", func(p payments.Payment) any { return p.Reference }},
		{"channel", func(p payments.Payment) any { return p.Channel }},
		{"amount", func(p payments.Payment) any { return p.Amount }},
		{"charges", func(p payments.Payment) any { return p.Charges }},
		{"status", func(p payments.Payment) any { return p.Word() }},
		{"reason", func(p payments.Payment) any { return p.Reason }},
		{"provider", func(p payments.Payment) any { return p.Rail }},
		{"provider_reference", func(p payments.Payment) any { return p.ProviderReference }},
		{"attempt", func(p payments.Payment) any { return int64(p.Attempt) }},
		{"attempt_reference", func(p payments.Payment) any { return p.AttemptReference }},
		{"upstream_id", func(p payments.Payment) any { return p.UpstreamID }},
		{"created_at", func(p payments.Payment) any { return p.CreatedAt }},
		{"settled_at", func(p payments.Payment) any { return p.SettledAt }},
		{"escalated_at", func(p payments.Payment) any { return p.EscalatedAt }},
	}
}

type payoutsList struct {
	common
	Tenant string `arg:"" help:"Id of the customer."`
	Status string `name:"status" enum:"success,submitted,pending,failed,invalid,declined," default:"" placeholder:"STATUS" help:"Only those with this status."`
	Kind   string `name:"kind" enum:"payout,collection" default:"payout" help:"payout or collection."`
	Page   int    `name:"page" default:"1" help:"Page, from 1."`
	Size   int    `name:"page-size" default:"50" help:"Rows of a page, 1 to 100."`
}

// Run lists.
func (c *payoutsList) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		if err := o.known(e.ctx, c.Tenant); err != nil {
			return err
		}
		page, err := p.History(e.ctx, c.Tenant, payments.Filter{Kind: payments.Kind(c.Kind), Status: c.Status, Page: c.Page, Size: c.Size})
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, paymentColumns(), page.Rows)
	})
}

type payoutsReferences struct {
	common
	Tenant    string `arg:"" help:"Id of the customer."`
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
		t, err := o.tenants.Get(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		var all []attempt
		for i, reference := range p.References(t, payments.Kind(c.Kind), c.Reference) {
			all = append(all, attempt{i + 1, reference})
		}
		return printAll(e.stdout, c.Output, []column[attempt]{
			{"attempt", func(a attempt) any { return int64(a.number) }},
			{"attempt_reference", func(a attempt) any { return a.reference }},
		}, all)
	})
}

type payoutsStuck struct{ common }

// Run lists what operators were called for.
func (c *payoutsStuck) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		rows, err := p.Stuck(e.ctx)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, paymentColumns(), rows)
	})
}

type payoutsTurned struct{ common }

// Run lists contradictions.
func (c *payoutsTurned) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		rows, err := p.Contradicted(e.ctx)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, paymentColumns(), rows)
	})
}

type payoutsShow struct {
	common
	ID string `arg:"" help:"Our id or provider reference of the payment."`
}

// shown is a payment with what it moved.
type shown struct {
	payments.Payment
	transfers []string
}

// Run shows one payment.
func (c *payoutsShow) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		pay, err := p.Find(e.ctx, c.ID)
		if err != nil {
			return err
		}
		moved, err := o.ledger.OfSubject(e.ctx, pay.ID)
		if err != nil {
			return err
		}
		s := shown{Payment: pay}
		for _, t := range moved {
			s.transfers = append(s.transfers, t.At.Format(time.RFC3339)+" "+t.Leg+": "+string(t.From)+" -> "+string(t.To)+" "+money.Pesewas(t.Amount).String())
		}
		var columns []column[shown]
		for _, column1 := range paymentColumns() {
			columns = append(columns, column[shown]{column1.name, func(s shown) any { return column1.value(s.Payment) }})
		}
		columns = append(columns, column[shown]{"transfers", func(s shown) any { return s.transfers }})
		return printOne(e.stdout, c.Output, columns, s)
	})
}

type payoutsResolve struct {
	common
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
		entry := access.Entry{Action: "payout.resolve", Tenant: pay.Tenant, Subject: pay.ID, Reason: c.Reason}
		if c.Fee.value == nil && c.Commission.value == nil {
			entry.Details = map[string]any{"paid": c.Paid}
			pay, err = p.Resolve(e.ctx, pay.ID, c.Paid, c.Reason, actor(), o.audited(entry))
		} else {
			fee, commission := c.Fee.or(0), c.Commission.or(0)
			entry.Details = map[string]any{"paid": true, "provider_fee": fee.String(), "commission": commission.String()}
			pay, err = p.ResolvePaid(e.ctx, pay.ID, fee, commission, c.Reason, actor(), o.audited(entry))
		}
		if err != nil {
			return err
		}
		return printOne(e.stdout, c.Output, paymentColumns(), pay)
	})
}

type payoutsDecide struct {
	common
	ID     string `arg:"" help:"Our id or provider reference of the payment."`
	For    string `name:"for" enum:"customer,house" required:"" help:"Who gets (reversed) or bears (paid after a refund) the amount: customer or house."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run decides.
func (c *payoutsDecide) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		pay, err := p.Find(e.ctx, c.ID)
		if err != nil {
			return err
		}
		entry := access.Entry{Action: "payout.decide", Tenant: pay.Tenant, Subject: pay.ID, Reason: c.Reason, Details: map[string]any{"for": c.For}}
		if err := p.Decide(e.ctx, pay.ID, c.For == "customer", c.Reason, actor(), o.audited(entry)); err != nil {
			return err
		}
		return printOne(e.stdout, c.Output, paymentColumns(), pay)
	})
}
