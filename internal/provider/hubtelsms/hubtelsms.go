// Package hubtelsms implements Hubtel's SMS interface: one text to one number for each request, and queries of a
// message's state.
//
// Hubtel has no idempotency key, no search by our reference and no documented reports. A text without a readable
// response is Unknown and must not be sent again. Hubtel answers some refusals with HTTP 201, so the status in the
// body decides. The keys belong to Hubtel's SMS product. The keys for payments are different.
//
// testdata has the samples, each with its source and grade.
package hubtelsms

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// Name is the provider's name in routes, message ids and logs.
const Name = "hubtelsms"

// Adapter is one account with Hubtel's SMS product.
type Adapter struct {
	account config.HubtelSMS
	mode    string
	client  *provider.Client
}

// New returns an adapter. It sets the Provider of the options.
func New(account config.HubtelSMS, o provider.ClientOptions) *Adapter {
	o.Provider, o.Timeout = Name, provider.TextTimeout
	account.URL = strings.TrimSuffix(account.URL, "/")
	return &Adapter{account: account, mode: o.Mode, client: provider.NewClient(o)}
}

// Close closes the idle connections.
func (a *Adapter) Close() { a.client.Close() }

// Rail returns the account as a provider of texts.
func (a *Adapter) Rail() provider.TextRail {
	return provider.TextRail{Name: Name, Mode: a.mode, Window: a.account.Window, Senders: a.account.Senders, Texts: a, Account: a, Poller: a}
}

// request is the body of a text.
type request struct {
	From    string `json:"From"`
	To      string `json:"To"`
	Content string `json:"Content"`
}

// SendText implements provider.TextSender.
func (a *Adapter) SendText(ctx context.Context, t provider.Text) provider.Outcome {
	body, err := json.Marshal(request{From: t.From, To: t.To.International(), Content: t.Body})
	if err != nil {
		return provider.Outcome{Class: provider.NotSent, Message: err.Error()}
	}
	return sent(a.do(ctx, provider.Request{Method: http.MethodPost, URL: a.account.URL + "/v1/messages/send", Body: body, Operation: "sms", HideBody: true, Text: t.Body}))
}

func (a *Adapter) do(ctx context.Context, r provider.Request) provider.Answer {
	keys := a.account.ClientID + ":" + a.account.ClientSecret.Reveal()
	r.Header = http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(keys))}, "Accept": {"application/json"}}
	if r.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return a.client.Do(ctx, r)
}

// response is Hubtel's answer to a text.
type response struct {
	MessageID   string `json:"messageId"`
	Status      *int   `json:"status"`
	Description string `json:"statusDescription"`
	Message     string `json:"message"`
}

// codes are the documented refusals in a response with the HTTP status 200 or 201. A refusal of a sender ID or a number
// is about the message. It must not pause the whole provider.
var codes = map[int]string{
	1: provider.ReasonInvalidRequest, 2: provider.ReasonInvalidRequest, 3: provider.ReasonInvalidRequest, 4: provider.ReasonInvalidRequest,
	5: provider.ReasonInvalidRequest, 6: provider.ReasonInvalidRequest, 7: provider.ReasonInvalidRequest, 8: provider.ReasonInvalidRequest,
	12: provider.ReasonFloat, 100: provider.ReasonInvalidRequest,
}

// statuses are the documented HTTP statuses of a refusal.
var statuses = map[int]string{
	http.StatusUnauthorized: provider.ReasonSetup, http.StatusPaymentRequired: provider.ReasonFloat, http.StatusForbidden: provider.ReasonInvalidRequest,
}

// sent reads the response to a text. A refusal has Hubtel's own words and no message id. A response with both says nothing.
func sent(a provider.Answer) provider.Outcome {
	var r response
	readable := a.Err == nil && json.Unmarshal(a.Body, &r) == nil
	refused := func(reason, code string) provider.Outcome {
		text := r.Description
		if text == "" {
			text = r.Message
		}
		return provider.Outcome{Class: provider.Rejected, Clear: true, Reason: reason, Code: code, Message: provider.Clip(text)}
	}
	switch {
	case readable && (a.Status == http.StatusOK || a.Status == http.StatusCreated) && r.Status != nil:
		reason, documented := codes[*r.Status]
		switch {
		case *r.Status == 0 && r.MessageID != "":
			return provider.Outcome{Class: provider.Accepted, UpstreamID: r.MessageID}
		case documented && r.MessageID == "":
			return refused(reason, strconv.Itoa(*r.Status))
		}
		return provider.Unreadable(a, "status "+strconv.Itoa(*r.Status)+" without a meaning: "+r.Description)
	case readable && statuses[a.Status] != "" && r.MessageID == "" && r.Description+r.Message != "":
		return refused(statuses[a.Status], strconv.Itoa(a.Status))
	}
	return provider.TextUnread(a)
}

// AskAccount implements provider.AccountAsker by a query of a message that does not exist. Hubtel documents no query of
// the balance.
func (a *Adapter) AskAccount(ctx context.Context) provider.Outcome {
	return account(a.do(ctx, provider.Request{Method: http.MethodGet, URL: a.account.URL + "/v1/messages/" + uuid.NewString(), Operation: "account"}))
}

// account reads the response to a query of an unknown message.
func account(a provider.Answer) provider.Outcome {
	if o, ok := provider.Undelivered(a); ok {
		return o
	}
	var r response
	if a.Status != http.StatusNotFound || json.Unmarshal(a.Body, &r) != nil || r.Message == "" {
		return provider.Unreadable(a, "not the answer to an unknown message")
	}
	return provider.Outcome{Class: provider.Accepted}
}

// states are the documented states of a message.
var states = map[string]provider.Delivery{
	"DELIVERED": provider.Delivered, "SENT": provider.DeliveryPending, "PENDING": provider.DeliveryPending, "BLACKLISTED": provider.DeliveryRejected,
	"UNDELIVERABLE": provider.DeliveryFailed, "FAILED": provider.DeliveryFailed, "UNROUTEABLE": provider.DeliveryFailed, "REJECTED": provider.DeliveryRejected,
	"NACK/INVALID DESTINATION ADDRESS": provider.DeliveryRejected, "NACK/INVALID SOURCE ADDRESS": provider.DeliveryRejected,
}

// TextState implements provider.TextPoller.
func (a *Adapter) TextState(ctx context.Context, id string) (provider.Receipt, bool) {
	answer := a.do(ctx, provider.Request{Method: http.MethodGet, URL: a.account.URL + "/v1/messages/" + url.PathEscape(id), Operation: "sms_state", HideAnswer: true})
	return stateOf(answer, id)
}

// stateOf reads the response to a query. For a response about another message it returns no state.
func stateOf(a provider.Answer, id string) (provider.Receipt, bool) {
	var r struct {
		MessageID string `json:"messageId"`
		Status    string `json:"status"`
		To        string `json:"to"`
	}
	if a.Err != nil || a.Status != http.StatusOK || json.Unmarshal(a.Body, &r) != nil || r.MessageID != id {
		return provider.Receipt{}, false
	}
	state, known := states[strings.ToUpper(strings.TrimSpace(r.Status))]
	if !known {
		return provider.Receipt{}, false
	}
	out := provider.Receipt{UpstreamID: id, State: state, Code: provider.Clip(r.Status)}
	if to, err := msisdn.Parse(r.To); err == nil {
		out.To = to
	}
	return out, true
}
