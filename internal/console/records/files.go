package records

import (
	"time"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/sheet"
)

// WithBooks adds the file for bookkeeping programs.
func WithBooks(f page.Files) page.Files {
	f.Books = f.XLSX + "&preset=" + presetBooks
	return f
}

// paymentColumns are those of payments, as far as the visitor may see them.
func paymentColumns(v *console.Visit) []sheet.Column[book.Payment] {
	return []sheet.Column[book.Payment]{
		{Head: "accepted_at", Value: func(p book.Payment) sheet.Value { return sheet.Time(p.CreatedAt) }},
		{Head: "settled_at", Value: func(p book.Payment) sheet.Value { return sheet.Time(p.SettledAt) }},
		{Head: "tenant", Value: func(p book.Payment) sheet.Value { return sheet.String(p.Tenant) }},
		{Head: "kind", Value: func(p book.Payment) sheet.Value { return sheet.String(string(p.Kind)) }},
		{Head: "reference", Value: func(p book.Payment) sheet.Value { return sheet.String(ReferenceOf(v, p)) }},
		{Head: "ext_transaction_id", Value: func(p book.Payment) sheet.Value { return sheet.String(p.ProviderReference) }},
		{Head: "channel", Value: func(p book.Payment) sheet.Value { return sheet.String(p.Channel) }},
		{Head: "account", Value: func(p book.Payment) sheet.Value { return sheet.String(Account(v, p.Account)) }},
		{Head: "account_name", Value: func(p book.Payment) sheet.Value { return sheet.String(accountName(v, p)) }},
		{Head: "amount", Value: func(p book.Payment) sheet.Value { return sheet.Amount(int64(p.Amount)) }},
		{Head: "charges", Value: func(p book.Payment) sheet.Value { return sheet.Amount(int64(p.Charges)) }},
		{Head: "currency", Value: func(book.Payment) sheet.Value { return sheet.String("GHS") }},
		{Head: "status", Value: func(p book.Payment) sheet.Value { return sheet.String(statusWord(p)) }},
		{Head: "reason", Value: func(p book.Payment) sheet.Value { return sheet.String(p.Reason) }},
		{Head: "id", Value: func(p book.Payment) sheet.Value { return sheet.String(p.ID) }},
	}
}

func statusWord(p book.Payment) string {
	if words.Unknown(p) {
		return "unknown"
	}
	return p.Word()
}

// RequestsFile is the list of refused requests as a file.
func (ps *Pages) RequestsFile(v *console.Visit) (console.Answer, error) {
	f, err := requestFilter(v)
	if err != nil {
		return console.Answer{}, err
	}
	return console.Exported(v, v.FileName("requests", f.Tenant, time.Time{}, time.Time{}), requestColumns, func(each func(requestlog.Request) error) error {
		for {
			found, err := ps.requests(v, f)
			if err != nil {
				return err
			}
			for _, r := range found.Requests {
				if err := each(r); err != nil {
					return err
				}
			}
			if found.More == "" {
				return nil
			}
			f.Before = found.More
		}
	}), nil
}

var requestColumns = []sheet.Column[requestlog.Request]{
	{Head: "at", Value: func(r requestlog.Request) sheet.Value { return sheet.Time(r.At) }},
	{Head: "request_id", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.RequestID) }},
	{Head: "method", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Method) }},
	{Head: "endpoint", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Endpoint) }},
	{Head: "status", Value: func(r requestlog.Request) sheet.Value { return sheet.Integer(int64(r.Status)) }},
	{Head: "code", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Code) }},
	{Head: "message", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Message) }},
	{Head: "tenant", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Tenant) }},
	{Head: "key", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Key) }},
	{Head: "from", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Origin) }},
}

// CampaignsFile is the list of messages as a File: a tenant's, or all.
func (ps *Pages) CampaignsFile(v *console.Visit) (console.Answer, error) {
	of := v.Tenant.ID
	if v.Route.Site == console.Operators {
		var err error
		if of, err = ps.TenantParam(v); err != nil {
			return console.Answer{}, err
		}
	}
	return console.Exported(v, v.FileName("messages", of, time.Time{}, time.Time{}), messageColumns, func(each func(messaging.Campaign) error) error {
		return console.ByPage(func(c messaging.Campaign) string { return c.ID }, func(before string, limit int) ([]messaging.Campaign, error) {
			return ps.Messaging.Campaigns(v.Ctx, of, before, limit)
		}, each)
	}), nil
}

var messageColumns = []sheet.Column[messaging.Campaign]{
	{Head: "sent_at", Value: func(c messaging.Campaign) sheet.Value { return sheet.Time(c.CreatedAt) }},
	{Head: "tenant", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(c.Tenant) }},
	{Head: "kind", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(string(c.Kind)) }},
	{Head: "sender", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(c.Sender) }},
	{Head: "recipients", Value: func(c messaging.Campaign) sheet.Value { return sheet.Integer(c.Recipients) }},
	{Head: "credits", Value: func(c messaging.Campaign) sheet.Value { return sheet.Integer(c.Cost()) }},
	{Head: "state", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(string(c.Status)) }},
	{Head: "id", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(c.ID) }},
}
