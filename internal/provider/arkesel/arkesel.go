// Package arkesel implements version 2 of Arkesel's SMS interface: one text to one number for each request, and
// Arkesel's reports on delivery.
//
// Arkesel has no idempotency key and no search by our reference. A text without a readable response is Unknown and
// must not be sent again. Only the refusals that Arkesel documents, in its own envelope, prove that nothing was sent.
// Its reports are not signed. They are sent to an address that cannot be guessed, and a report with an unknown id
// changes nothing.
//
// testdata has the samples, each with its source and grade.
package arkesel

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// Name is the provider's name in routes, message ids and logs.
const Name = "arkesel"

// Adapter is one account with Arkesel.
type Adapter struct {
	account config.Arkesel
	mode    string
	client  *provider.Client
}

// New returns an adapter. It sets the Provider of the options.
func New(account config.Arkesel, o provider.ClientOptions) *Adapter {
	o.Provider, o.Timeout = Name, provider.TextTimeout
	account.URL = strings.TrimSuffix(account.URL, "/")
	return &Adapter{account: account, mode: o.Mode, client: provider.NewClient(o)}
}

// Close closes the idle connections.
func (a *Adapter) Close() { a.client.Close() }

// Rail returns the account as a provider of texts.
func (a *Adapter) Rail() provider.TextRail {
	return provider.TextRail{Name: Name, Mode: a.mode, Window: a.account.Window, Senders: a.account.Senders, Texts: a, Account: a, Reports: a}
}

// request is the body of a text.
type request struct {
	Sender     string   `json:"sender"`
	Message    string   `json:"message"`
	Recipients []string `json:"recipients"`
	Callback   string   `json:"callback_url,omitempty"`
}

// SendText implements provider.TextSender.
func (a *Adapter) SendText(ctx context.Context, t provider.Text) provider.Outcome {
	body, err := json.Marshal(request{Sender: t.From, Message: t.Body, Recipients: []string{t.To.International()}, Callback: t.Callback})
	if err != nil {
		return provider.Outcome{Class: provider.NotSent, Message: err.Error()}
	}
	return sent(a.do(ctx, provider.Request{Method: http.MethodPost, URL: a.account.URL + "/api/v2/sms/send", Body: body, Operation: "sms", HideBody: true, Text: t.Body}), t.To)
}

func (a *Adapter) do(ctx context.Context, r provider.Request) provider.Answer {
	r.Header = http.Header{"Api-Key": {a.account.APIKey.Reveal()}, "Accept": {"application/json"}}
	if r.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return a.client.Do(ctx, r)
}

// AskAccount implements provider.AccountAsker by a query of the balance.
func (a *Adapter) AskAccount(ctx context.Context) provider.Outcome {
	return balance(a.do(ctx, provider.Request{Method: http.MethodGet, URL: a.account.URL + "/api/v2/clients/balance-details", Operation: "balance"}))
}

// balance reads the response to a query of the balance.
func balance(a provider.Answer) provider.Outcome {
	if o, ok := provider.Undelivered(a); ok {
		return o
	}
	var r response
	var data struct {
		SMS  string `json:"sms_balance"`
		Main string `json:"main_balance"`
	}
	if a.Status != http.StatusOK || json.Unmarshal(a.Body, &r) != nil || r.Status != "success" || json.Unmarshal(r.Data, &data) != nil {
		return provider.Unreadable(a, "no balance")
	}
	return provider.Outcome{Class: provider.Accepted, Message: provider.Clip(data.SMS + " SMS and " + data.Main + " left")}
}

// response is Arkesel's envelope.
type response struct {
	Status  string          `json:"status"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// refusals are the documented HTTP statuses of a refusal.
var refusals = map[int]string{
	http.StatusUnauthorized:        provider.ReasonSetup,
	http.StatusPaymentRequired:     provider.ReasonFloat,
	http.StatusForbidden:           provider.ReasonUnavailable, // "gateway inactive"
	http.StatusUnprocessableEntity: provider.ReasonInvalidRequest,
}

// sent reads the response to a text.
func sent(a provider.Answer, to msisdn.MSISDN) provider.Outcome {
	var r response
	readable := a.Err == nil && json.Unmarshal(a.Body, &r) == nil
	reason, documented := refusals[a.Status]
	switch {
	case readable && documented && r.Status == "error":
		return provider.Outcome{Class: provider.Rejected, Clear: true, Reason: reason, Code: strconv.Itoa(a.Status), Message: provider.Clip(r.Message)}
	case readable && a.Status == http.StatusOK && r.Status == "success":
		return taken(a, r.Data, to)
	}
	o := provider.TextUnread(a)
	if readable && o.Message == "" {
		o.Message = provider.Clip(r.Message)
	}
	return o
}

// taken finds the recipient in the response to an accepted request. Arkesel lists refused numbers under a key that
// contains a space.
func taken(a provider.Answer, data json.RawMessage, to msisdn.MSISDN) provider.Outcome {
	var rows []struct {
		Recipient string   `json:"recipient"`
		ID        string   `json:"id"`
		Invalid   []string `json:"invalid numbers"`
	}
	if json.Unmarshal(data, &rows) != nil {
		return provider.Unreadable(a, "success without a list of recipients")
	}
	for _, row := range rows {
		if same(row.Recipient, to) && row.ID != "" {
			return provider.Outcome{Class: provider.Accepted, UpstreamID: row.ID}
		}
	}
	for _, row := range rows {
		for _, number := range row.Invalid {
			if same(number, to) {
				return provider.Outcome{Class: provider.Rejected, Clear: true, Reason: provider.ReasonInvalidRequest, Code: "200", Message: "invalid number"}
			}
		}
	}
	return provider.Unreadable(a, "success without the recipient")
}

func same(text string, to msisdn.MSISDN) bool {
	n, err := msisdn.Parse(text)
	return err == nil && n == to
}

// states are the documented states of a report.
var states = map[string]provider.Delivery{
	"DELIVERED": provider.Delivered, "SUBMITTED": provider.DeliveryPending, "QUEUED": provider.DeliveryPending,
	"NOT_DELIVERED": provider.DeliveryFailed, "EXPIRED": provider.DeliveryExpired, "PROHIBITED": provider.DeliveryRejected,
}

// longestID is the maximum length of a message id, in octets.
const longestID = 64

// errReport is returned for a report without an id or with an undocumented state.
var errReport = errors.New("report has no id or no known state")

// ReadReport implements provider.ReportReader.
func (a *Adapter) ReadReport(query url.Values) (provider.Receipt, error) {
	id, status := query.Get("sms_id"), strings.ToUpper(query.Get("status"))
	state, known := states[status]
	if !known || id == "" || len(id) > longestID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return provider.Receipt{}, errReport
	}
	return provider.Receipt{UpstreamID: id, State: state, Code: status}, nil
}
