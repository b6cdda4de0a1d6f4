// Package hubtelsms is the simulated SMS product of Hubtel, with its own Basic credential. docs/providers.md lists its
// documented answers and our inventions.
package hubtelsms

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
)

// Name is the provider's name in paths and faults.
const Name = "hubtelsms"

const (
	clientID     = "smscl01"
	clientSecret = "smss3cr3t"
	maxBody      = 1 << 20
	// rate is the price of a text in the documented sample, in cedis.
	rate = 0.0246
	// mostRecipients is the most texts of one batch. Hubtel documents no limit.
	mostRecipients = 1_000
	// longest is the longest text in characters. Hubtel documents "body too long" and no limit.
	longest = 1_600
)

// Config is the configuration of an adapter for the Hubtel SMS of a simulator reached at base.
func Config(base string) config.HubtelSMS {
	return config.HubtelSMS{ClientID: clientID, ClientSecret: clientSecret, URL: strings.TrimSuffix(base, "/") + "/" + Name, Window: 32}
}

// The documented codes of answers.
const (
	accepted           = 0
	invalidDestination = 1
	invalidSource      = 2
	bodyTooLong        = 3
	general            = 100
)

var descriptions = map[int]string{accepted: "request submitted successfully", invalidDestination: "invalid destination address", invalidSource: "invalid source address",
	bodyTooLong: "message body too long", general: "invalid request"}

type hubtel struct {
	s     *sim.Sim
	mux   *http.ServeMux
	texts *sim.Texts
}

// Hubtel is a simulated Hubtel SMS whose texts tests can read.
type Hubtel struct{ h *hubtel }

// New returns a Hubtel SMS. It works only in a simulator that was opened with its Join as a part.
func New() *Hubtel { return &Hubtel{} }

// Texts returns every text that was taken, in order.
func (k *Hubtel) Texts() []sim.Text { return k.h.texts.All() }

// Join is the part of a simulator that is Hubtel's SMS product.
func (k *Hubtel) Join(s *sim.Sim) sim.Provider {
	h := &hubtel{s: s, mux: http.NewServeMux(), texts: s.NewTexts()}
	k.h = h
	for pattern, serve := range map[string]struct {
		op    string
		serve func(*call)
	}{
		"POST /v1/messages/send":                    {sim.OpText, h.send},
		"GET /v1/messages/send":                     {sim.OpText, h.sendByAddress},
		"POST /v1/messages/batch/simple/send":       {sim.OpText, h.simple},
		"POST /v1/messages/batch/personalized/send": {sim.OpText, h.personalized},
		"GET /v1/messages/{id}":                     {sim.OpTextState, h.state},
	} {
		h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { h.guarded(w, r, serve.op, serve.serve) })
	}
	return sim.Provider{Name: Name, Serve: h.mux, Messages: true, Control: map[string]func(*http.Request) (any, error){
		"GET /sim/v1/hubtelsms/texts": func(*http.Request) (any, error) { return h.texts.All(), nil },
	}}
}

// call is one request.
type call struct{ *sim.Call }

func (h *hubtel) guarded(w http.ResponseWriter, r *http.Request, op string, serve func(*call)) {
	began, ok := h.s.Begin(w, r, Name, op)
	if !ok {
		return
	}
	c := &call{began}
	user, secret, basic := r.BasicAuth()
	if !basic && r.Method == http.MethodGet { // the form of addresses, whose parameters have any case
		user, secret = parameter(r, "clientid"), parameter(r, "clientsecret")
	}
	if user != clientID || secret != clientSecret {
		c.Write(http.StatusUnauthorized, "application/json", []byte(`{"message":"Client credentials are invalid"}`))
		return
	}
	if c.Hit.Has(sim.RefuseOutright) {
		c.Write(http.StatusPaymentRequired, "application/json", []byte(`{"message":"Insufficient credit"}`))
		return
	}
	serve(c)
}

// answer is the response to one text.
type answer struct {
	Rate            float64 `json:"rate"`
	MessageID       string  `json:"messageId"`
	Status          int     `json:"status"`
	NetworkID       string  `json:"networkId"`
	ClientReference *string `json:"clientReference"`
	Description     string  `json:"statusDescription"`
}

// networks are the codes of mobile networks.
var networks = map[msisdn.Network]string{msisdn.MTN: "62001", msisdn.Telecel: "62002", msisdn.AirtelTigo: "62003"}

func (c *call) body(into any) bool {
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		c.give(http.StatusBadRequest, answer{Status: general, Description: descriptions[general]})
	}
	return err == nil
}

func (c *call) give(status int, v any) { c.Answer(status, "application/json", sim.Encode(v)) }

// send takes one text. Refusals of the destination and the source come with HTTP 201, as documented.
func (h *hubtel) send(c *call) {
	var r struct{ From, To, Content string }
	if !c.body(&r) {
		return
	}
	h.one(c, http.StatusCreated, r.From, r.To, r.Content)
}

// one accepts a text and returns its status.
func (h *hubtel) one(c *call, status int, from, number, content string) {
	id, code, ok := h.take(c, from, number, content)
	if !ok {
		return
	}
	out := answer{MessageID: id, Status: code, Description: descriptions[code]}
	if to, err := msisdn.Parse(number); err == nil && code == accepted {
		network, _ := to.LikelyNetwork()
		out.Rate, out.NetworkID = rate, networks[network]
	}
	c.give(status, out)
}

// sendByAddress accepts a text whose parts and credentials are in the query. Our adapter never sends in this way, because addresses
// are logged.
func (h *hubtel) sendByAddress(c *call) {
	h.one(c, http.StatusOK, parameter(c.Request, "from"), parameter(c.Request, "to"), parameter(c.Request, "content"))
}

// parameter returns a parameter of the query, whose name may have any case.
func parameter(r *http.Request, name string) string {
	for key, values := range r.URL.Query() {
		if strings.EqualFold(key, name) {
			return values[0]
		}
	}
	return ""
}

// take enters one text, or returns the code of its refusal. ok is false when the call has been answered.
func (h *hubtel) take(c *call, from, number, text string) (id string, code int, ok bool) {
	to, err := msisdn.Parse(number)
	switch {
	case from == "" || len(from) > 11:
		return "", invalidSource, true
	case err != nil:
		return "", invalidDestination, true
	case text == "":
		return "", general, true
	case len([]rune(text)) > longest:
		return "", bodyTooLong, true
	}
	plan, ok := c.Text(string(to))
	if !ok {
		return "", 0, false
	}
	if plan.Refuse != "" {
		return "", invalidDestination, true
	}
	id = uuid.NewString()
	h.texts.Take(sim.Text{ID: id, From: from, To: string(to), Text: text}, plan, nil)
	return id, accepted, true
}

// batched is one text of a batch in its response.
type batched struct {
	Recipient string `json:"recipient"`
	Content   string `json:"content"`
	MessageID string `json:"messageId"`
}

func (h *hubtel) simple(c *call) {
	var r struct {
		From, Content string
		Recipients    []string
	}
	if !c.body(&r) {
		return
	}
	list := make([]batched, len(r.Recipients))
	for i, to := range r.Recipients {
		list[i] = batched{Recipient: to, Content: r.Content}
	}
	h.batch(c, r.From, list)
}

func (h *hubtel) personalized(c *call) {
	var r struct {
		From                   string
		PersonalizedRecipients []struct{ To, Content string }
	}
	if !c.body(&r) {
		return
	}
	list := make([]batched, len(r.PersonalizedRecipients))
	for i, one := range r.PersonalizedRecipients {
		list[i] = batched{Recipient: one.To, Content: one.Content}
	}
	h.batch(c, r.From, list)
}

func (h *hubtel) batch(c *call, from string, list []batched) {
	if len(list) == 0 || len(list) > mostRecipients {
		c.give(http.StatusBadRequest, answer{Status: general, Description: descriptions[general]})
		return
	}
	for i := range list {
		id, _, ok := h.take(c, from, list[i].Recipient, list[i].Content)
		if !ok {
			return
		}
		list[i].MessageID = id
	}
	c.give(http.StatusCreated, map[string]any{"batchId": uuid.NewString(), "status": accepted, "data": list})
}

// shown are Hubtel's words for states.
var shown = map[sim.TextState]string{sim.TextPending: "Sent", sim.TextDelivered: "Delivered", sim.TextFailed: "Undeliverable", sim.TextExpired: "Failed",
	sim.TextBarred: "Blacklisted"}

// state answers a query of a text.
func (h *hubtel) state(c *call) {
	x, known := h.texts.Find(c.Request.PathValue("id"))
	if !known {
		c.Write(http.StatusNotFound, "application/json", []byte(`{"message":"Message not found"}`))
		return
	}
	c.give(http.StatusOK, map[string]any{"rate": rate, "batchId": nil, "messageId": x.ID, "content": x.Text, "status": shown[x.State],
		"updateTime": x.UpdatedAt.UTC().Format("2006-01-02T15:04:05"), "time": x.At.UTC().Format("2006-01-02T15:04:05Z"), "to": x.To, "from": x.From})
}
