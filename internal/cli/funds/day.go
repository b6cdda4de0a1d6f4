package funds

import (
	"bufio"
	"cmp"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/tenant"
)

// Day holds the commands of makola day.
type Day struct {
	Show      dayShow      `cmd:"" help:"Show the figures of a day for each float and bank account."`
	Statement dayStatement `cmd:"" help:"Store closing balances of statements for a day."`
	Exception dayException `cmd:"" help:"Explain a part of the difference between a statement and our books."`
	Close     dayClose     `cmd:"" help:"Close a day. In production a second person approves it."`
	Reopen    dayReopen    `cmd:"" help:"Open the last closed day again."`
	Month     dayMonth     `cmd:"" help:"Show the totals of the closed days of a month. Fails if an account does not tie."`
}

// dayFlags select a day, and live or test money.
type dayFlags struct {
	frame.Common
	Day  string `arg:"" help:"Day in Accra, such as 2026-11-27."`
	Mode string `name:"mode" enum:"live,test" default:"live" help:"live or test money."`
}

func (f dayFlags) asset() ledger.Asset { return tenant.Tenant{Mode: tenant.Mode(f.Mode)}.Money() }

// books returns the days of the books.
func books(o *frame.Opened) *closing.Books { return closing.New(o.DB, o.Ledger, o.Clock) }

type dayShow struct{ dayFlags }

// Run shows a day.
func (c *dayShow) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error { return c.print(e, o) })
}

func (f dayFlags) print(e *frame.Env, o *frame.Opened) error {
	day, err := closing.ParseDay("day", f.Day)
	if err != nil {
		return err
	}
	figures, err := books(o).Figures(e.Ctx, f.asset(), day)
	if err != nil {
		return err
	}
	state := "open"
	if figures.Closed.Revision > 0 {
		state = "closed"
	}
	columns := []frame.Column[closing.Account]{
		{Name: "day", Value: func(closing.Account) any { return day.String() }},
		{Name: "state", Value: func(closing.Account) any { return state }},
		{Name: "account", Value: func(a closing.Account) any { return string(a.ID) }},
		{Name: "opening", Value: func(a closing.Account) any { return a.Opening }},
		{Name: "in", Value: func(a closing.Account) any { return a.In }},
		{Name: "out", Value: func(a closing.Account) any { return a.Out }},
		{Name: "from_closed_days", Value: func(a closing.Account) any { return a.Late }},
		{Name: "closing", Value: func(a closing.Account) any { return a.Closing }},
		{Name: "statement", Value: func(a closing.Account) any {
			if a.Theirs == nil {
				return nil
			}
			return *a.Theirs
		}},
		{Name: "explained", Value: func(a closing.Account) any { return a.Explained }},
		{Name: "unexplained", Value: func(a closing.Account) any { return a.Unexplained() }},
	}
	return frame.PrintAll(e.Stdout, f.Output, columns, figures.Accounts)
}

type dayStatement struct {
	dayFlags
	frame.Writing
	Balances []string `arg:"" help:"Balances, such as bank/gcb-main=12500.00."`
	Reason   string   `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type dayException struct {
	dayFlags
	frame.Writing
	Account string       `arg:"" help:"Account, such as bank/gcb-main."`
	Amount  frame.Amount `arg:"" help:"Amount in GHS by which the statement is above our books."`
	Less    bool         `name:"less" help:"The statement is below our books by this amount."`
	Text    string       `name:"text" required:"" placeholder:"TEXT" help:"Explanation, such as a cheque that the bank has not paid yet."`
	Reason  string       `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type dayClose struct {
	dayFlags
	frame.Writing
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type dayReopen struct {
	dayFlags
	frame.Writing
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log and the page of the day."`
}

type dayMonth struct {
	frame.Common
	Month string `arg:"" help:"Month, such as 2026-11."`
	Mode  string `name:"mode" enum:"live,test" default:"live" help:"live or test money."`
}

// Run shows a month. The command fails if an account does not tie.
func (c *dayMonth) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		day, err := closing.ParseDay("month", c.Month+"-01")
		if err != nil {
			return problem.Field("month", "must be a month such as 2026-11")
		}
		m, err := books(o).MonthOf(e.Ctx, dayFlags{Mode: c.Mode}.asset(), day)
		if err != nil {
			return err
		}
		if err := frame.PrintAll(e.Stdout, c.Output, []frame.Column[closing.MonthAccount]{
			{Name: "account", Value: func(a closing.MonthAccount) any { return string(a.ID) }},
			{Name: "days", Value: func(a closing.MonthAccount) any { return int64(a.Days) }},
			{Name: "opening", Value: func(a closing.MonthAccount) any { return a.Opening }},
			{Name: "in", Value: func(a closing.MonthAccount) any { return a.In }},
			{Name: "out", Value: func(a closing.MonthAccount) any { return a.Out }},
			{Name: "from_closed_days", Value: func(a closing.MonthAccount) any { return a.Late }},
			{Name: "closing", Value: func(a closing.MonthAccount) any { return a.Closing }},
			{Name: "off", Value: func(a closing.MonthAccount) any { return a.Off() }},
			{Name: "changed_since", Value: func(a closing.MonthAccount) any { return a.Since() }},
			{Name: "unexplained", Value: func(a closing.MonthAccount) any { return a.Unexplained() }},
			{Name: "ties", Value: func(a closing.MonthAccount) any { return a.Ties() }},
		}, m.Accounts); err != nil {
			return err
		}
		if !m.Ties() {
			return problem.New(problem.Refused, "month_not_tied", "The month does not tie: a day is open, or an account has a difference, a later change or no statement")
		}
		return nil
	})
}

type ledgerFunds struct {
	frame.Common
	Day  string `name:"day" placeholder:"DATE" help:"Day in Accra, such as 2026-11-30. Default: today, up to now."`
	Mode string `name:"mode" enum:"live,test" default:"live" help:"live or test money."`
}

// Run prints the comparison of customer funds.
func (c *ledgerFunds) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		b := books(o)
		day, err := closing.ParseDay("day", cmp.Or(c.Day, b.Today().String()))
		if err != nil {
			return err
		}
		f, err := b.Funds(e.Ctx, dayFlags{Mode: c.Mode}.asset(), day)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, []frame.Column[closing.FundsLine]{
			{Name: "side", Value: func(l closing.FundsLine) any { return string(l.Side) }},
			{Name: "account", Value: func(l closing.FundsLine) any { return string(l.Account) }},
			{Name: "amount", Value: func(l closing.FundsLine) any { return l.Amount }},
		}, f.Rows())
	})
}

// periodFlags select a period of days, and live or test money.
type periodFlags struct {
	From string `name:"from" required:"" placeholder:"DATE" help:"First day, YYYY-MM-DD in Accra."`
	To   string `name:"to" required:"" placeholder:"DATE" help:"Last day, inclusive."`
	Mode string `name:"mode" enum:"live,test" default:"live" help:"live or test money."`
}

func (f periodFlags) period() (closing.Period, error) {
	first, err := closing.ParseDay("from", f.From)
	if err != nil {
		return closing.Period{}, err
	}
	last, err := closing.ParseDay("to", f.To)
	p := closing.Period{Asset: dayFlags{Mode: f.Mode}.asset(), First: first, Last: last}
	if err == nil {
		err = p.Check()
	}
	return p, err
}

type ledgerJournal struct {
	frame.Common
	periodFlags
	Format string `name:"format" enum:"csv,xlsx" default:"csv" help:"Format of the file: csv or xlsx."`
}

// Run writes the journal to standard output. It keeps only a limited part in memory.
func (c *ledgerJournal) Run(e *frame.Env) error {
	p, err := c.period()
	if err != nil {
		return err
	}
	return c.With(e, func(o *frame.Opened) error {
		b, out := books(o), bufio.NewWriter(e.Stdout)
		if c.Format == string(sheet.XLSX) {
			n, err := b.Size(e.Ctx, p)
			if err != nil {
				return err
			}
			if n > closing.MostInWorkbook {
				return problem.Field("format", "must be csv: a workbook does not hold so many lines")
			}
		}
		w, err := sheet.NewWriter(out, sheet.Format(c.Format), closing.LineColumns)
		if err != nil {
			return err
		}
		if err := b.Each(e.Ctx, p, w.Write); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		return out.Flush()
	})
}

type ledgerTotals struct {
	frame.Common
	periodFlags
}

// Run prints the totals of a period by account. The command fails if the totals do not tie.
func (c *ledgerTotals) Run(e *frame.Env) error {
	p, err := c.period()
	if err != nil {
		return err
	}
	return c.With(e, func(o *frame.Opened) error {
		list, err := books(o).Totals(e.Ctx, p)
		if err != nil {
			return err
		}
		if err := frame.PrintAll(e.Stdout, c.Output, []frame.Column[closing.Total]{
			{Name: "account", Value: func(t closing.Total) any { return string(t.Account) }},
			{Name: "code", Value: func(t closing.Total) any { return t.Code }},
			{Name: "opening", Value: func(t closing.Total) any { return t.Opening }},
			{Name: "debit", Value: func(t closing.Total) any { return t.Debit }},
			{Name: "credit", Value: func(t closing.Total) any { return t.Credit }},
			{Name: "closing", Value: func(t closing.Total) any { return t.Closing }},
			{Name: "off", Value: func(t closing.Total) any { return t.Off() }},
		}, list); err != nil {
			return err
		}
		var debit, credit, off money.Pesewas
		for _, t := range list {
			debit, credit, off = debit+t.Debit, credit+t.Credit, off+max(t.Off(), -t.Off())
		}
		if debit != credit || off != 0 {
			return problem.New(problem.Internal, "ledger_wrong", "The totals do not tie. See docs/runbooks/ledger-fault.md")
		}
		return nil
	})
}
