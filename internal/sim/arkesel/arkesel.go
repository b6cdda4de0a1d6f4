// Package arkesel is the simulated Arkesel: version 2 of its SMS interface, with one API key, reports to the address of
// each request, and the balance. docs/providers.md lists its documented answers and our inventions.
package arkesel

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/smstext"
)

// Name is the provider's name in paths and faults.
const Name = "arkesel"

const (
	apiKey  = "cE5OS0sxbGFTaW11bGF0b3I="
	maxBody = 1 << 20
	// opening is the balance of SMS at the start. One is a segment.
	opening = 1_000_000
	// mostRecipients is the most numbers of one request. Arkesel documents no limit.
	mostRecipients = 1_000
)

// Config is the configuration of an adapter for the Arkesel of a simulator reached at base.
func Config(base string) config.Arkesel {
	return config.Arkesel{APIKey: apiKey, URL: strings.TrimSuffix(base, "/") + "/" + Name, Window: 32}
}

// arkesel is one account.
type arkesel struct {
	s     *sim.Sim
	mux   *http.ServeMux
	texts *sim.Texts

	mu      sync.Mutex
	balance int64
}

// Arkesel is a simulated Arkesel whose texts tests can read.
type Arkesel struct{ a *arkesel }

// New returns an Arkesel. It works only in a simulator that was opened with its Join as a part.
func New() *Arkesel { return &Arkesel{} }

// Texts returns every text that was taken, in order.
func (k *Arkesel) Texts() []sim.Text { return k.a.texts.All() }

// SetBalance sets the balance of SMS.
func (k *Arkesel) SetBalance(n int64) {
	k.a.mu.Lock()
	defer k.a.mu.Unlock()
	k.a.balance = n
}

// Join is the part of a simulator that is Arkesel.
func (k *Arkesel) Join(s *sim.Sim) sim.Provider {
	a := &arkesel{s: s, mux: http.NewServeMux(), texts: s.NewTexts(), balance: opening}
	k.a = a
	for pattern, serve := range map[string]struct {
		op    string
		serve func(*call)
	}{
		"POST /api/v2/sms/send":               {sim.OpText, a.send},
		"GET /api/v2/clients/balance-details": {sim.OpBalance, a.details},
	} {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { a.guarded(w, r, serve.op, serve.serve) })
	}
	return sim.Provider{Name: Name, Serve: a.mux, Messages: true, Control: map[string]func(*http.Request) (any, error){
		"GET /sim/v1/arkesel/texts": func(*http.Request) (any, error) { return a.texts.All(), nil },
	}}
}

// call is one request.
type call struct{ *sim.Call }

func (a *arkesel) guarded(w http.ResponseWriter, r *http.Request, op string, serve func(*call)) {
	began, ok := a.s.Begin(w, r, Name, op)
	if !ok {
		return
	}
	c := &call{began}
	if r.Header.Get("api-key") != apiKey {
		c.refuse(http.StatusUnauthorized, "Authentication Failed!")
		return
	}
	serve(c)
}

// refuse answers in Arkesel's envelope of errors.
func (c *call) refuse(status int, message string) {
	c.Write(status, "application/json", sim.Encode(map[string]any{"status": "error", "message": message}))
}

// request is the body of a text.
type request struct {
	Sender     string   `json:"sender"`
	Message    string   `json:"message"`
	Recipients []string `json:"recipients"`
	Callback   string   `json:"callback_url"`
	Scheduled  string   `json:"scheduled_date"`
	Sandbox    bool     `json:"sandbox"`
	UseCase    string   `json:"use_case"`
}

// read reads the body of a text: JSON, or a form as PHP clients send it, with recipients[0] and so on.
func (c *call) read() (r request, err error) {
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	if err != nil {
		return r, err
	}
	if kind, _, _ := mime.ParseMediaType(c.Request.Header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" {
		return r, json.Unmarshal(raw, &r)
	}
	form, err := url.ParseQuery(string(raw))
	r = request{Sender: form.Get("sender"), Message: form.Get("message"), Callback: form.Get("callback_url"), Scheduled: form.Get("scheduled_date"),
		UseCase: form.Get("use_case"), Sandbox: form.Get("sandbox") == "true" || form.Get("sandbox") == "1", Recipients: form["recipients[]"]}
	for i := range mostRecipients + 1 {
		one, given := form[fmt.Sprintf("recipients[%d]", i)]
		if !given {
			break
		}
		r.Recipients = append(r.Recipients, one...)
	}
	return r, err
}

func (a *arkesel) send(c *call) {
	r, err := c.read()
	switch {
	case err != nil:
		c.refuse(http.StatusUnprocessableEntity, "The given data was invalid.")
		return
	case r.Sender == "" || len(r.Sender) > 11:
		c.refuse(http.StatusUnprocessableEntity, "The sender must be 1 to 11 characters.")
		return
	case r.Message == "" || len(r.Recipients) == 0 || len(r.Recipients) > mostRecipients:
		c.refuse(http.StatusUnprocessableEntity, "The message and the recipients are required.")
		return
	case c.Hit.Has(sim.RefuseOutright):
		status, _, _ := strings.Cut(c.Hit.Of(sim.RefuseOutright).Answer, ":")
		code, err := strconv.Atoi(status)
		if err != nil {
			code = http.StatusForbidden
		}
		c.refuse(code, "Gateway inactive")
		return
	}
	a.take(c, r)
}

// take sends the texts of a request and lists the recipients.
func (a *arkesel) take(c *call, r request) {
	var data []any
	var bad []string
	var plans []func()
	_, segments := smstext.Count(r.Message)
	cost := int64(0)
	for _, number := range r.Recipients {
		to, err := msisdn.Parse(number)
		if err != nil {
			bad = append(bad, number)
			continue
		}
		plan, ok := c.Text(string(to))
		if !ok {
			return
		}
		if plan.Refuse != "" {
			bad = append(bad, number)
			continue
		}
		id := uuid.NewString()
		data = append(data, map[string]string{"recipient": to.International(), "id": id})
		cost += int64(segments)
		plans = append(plans, func() {
			a.texts.Take(sim.Text{ID: id, From: r.Sender, To: string(to), Text: r.Message}, plan, a.reporter(r.Callback))
		})
	}
	if !r.Sandbox {
		if !a.pay(cost) {
			c.refuse(http.StatusPaymentRequired, "Insufficient balance!")
			return
		}
		for _, take := range plans {
			take()
		}
	}
	if len(bad) > 0 {
		data = append(data, map[string][]string{"invalid numbers": bad})
	}
	c.Answer(http.StatusOK, "application/json", sim.Encode(map[string]any{"status": "success", "data": data}))
}

// pay subtracts a cost from the balance. It reports whether the balance was large enough.
func (a *arkesel) pay(cost int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cost > a.balance {
		return false
	}
	a.balance -= cost
	return true
}

// reported are Arkesel's words for states.
var reported = map[sim.TextState]string{sim.TextDelivered: "DELIVERED", sim.TextFailed: "NOT_DELIVERED", sim.TextExpired: "EXPIRED", sim.TextBarred: "PROHIBITED"}

// reporter returns what sends the reports of a request; nil: it wants none.
func (a *arkesel) reporter(callback string) func(sim.Text) {
	u, err := url.Parse(callback)
	if err != nil || u.Host == "" {
		return nil
	}
	return func(x sim.Text) {
		to := *u
		q := to.Query()
		q.Set("sms_id", x.ID)
		q.Set("status", reported[x.State])
		to.RawQuery = q.Encode()
		a.s.Notify(sim.Callback{Method: http.MethodGet, URL: to.String()})
	}
}

// details answers the balance, whose figures are texts.
func (a *arkesel) details(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.Answer(http.StatusOK, "application/json", sim.Encode(map[string]any{"status": "success",
		"data": map[string]string{"sms_balance": strconv.FormatInt(a.balance, 10), "main_balance": "GHS 20.99"}}))
}
