package sample

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/senderid"
)

// step is something that happens at a time.
type step struct {
	at time.Time
	do func(ctx context.Context) error
}

// ending is how a payment ends. Only a collection can be declined or get a wrong PIN; any other kind fails instead.
type ending int

const (
	succeeds ending = iota
	declined
	wrongPIN
	fails
	stuckForNow
)

// order is one payment that a shop will ask for.
type order struct {
	shop       *shop
	kind       kind
	reference  string
	who        person
	amount     money.Pesewas
	account    string // of a bank
	bank, pack int    // index of the bank, and of the offered package
	end        ending
	wait       time.Duration // time until the customer answers the prompt
	old        bool          // its webhooks go to an address that no longer exists
}

// steps returns the events of an order: its request and, for a collection, the customer's answer to the
// prompt.
func (m *maker) steps(o order, at time.Time) []step {
	steps := []step{{at, func(ctx context.Context) error { return m.pay(ctx, o) }}}
	if o.kind == collection && o.end != fails {
		steps = append(steps, step{at.Add(o.wait), func(ctx context.Context) error { return m.answer(ctx, o) }})
	}
	return steps
}

// operations maps kinds to the names of operations in the simulator's faults.
var operations = [kinds]string{"collect", "disburse", "disburse", "topup", "bundle"}

// pay requests a payment.
func (m *maker) pay(ctx context.Context, o order) error {
	fault := ""
	switch {
	case o.end == stuckForNow, o.kind == collection && o.end != fails:
		fault = "stuck" // decided on the handset, or by a person
	case o.end != succeeds:
		fault = "fail"
	}
	if fault != "" {
		if err := m.fault(ctx, operations[o.kind], fault); err != nil {
			return err
		}
	}
	hook := m.receiver.url + "/" + o.shop.prefix
	if o.old {
		hook = m.receiver.url + leftBehind + o.shop.prefix
	}
	name := o.who.first + " " + o.who.last
	body := map[string]any{"amount": o.amount.String(), "callback_url": hook}
	path := ""
	switch o.kind {
	case collection:
		path = "/payment-api/momopay"
		body["phone_number"], body["network"], body["transaction_id"] = o.who.phone, o.who.network, o.reference
	case walletPayout:
		path = "/payment-api/send/mobilemoney"
		body["account_number"], body["channel"], body["client_reference"], body["account_name"] = o.who.phone, o.who.network, o.reference, name
	case bankPayout:
		path = "/payment-api/send/bank"
		body["account_number"], body["bank_id"], body["client_reference"], body["account_name"] = o.account, m.banks[o.bank%len(m.banks)], o.reference, name
	case airtime:
		path = "/airtime-api/sendAirtime"
		body["phone_number"], body["network_id"], body["transaction_id"] = o.who.phone, m.networks[o.who.network], o.reference
	case data:
		return m.buyData(ctx, o)
	}
	return m.ask(ctx, o.shop, http.MethodPost, path, body, nil)
}

// buyData buys one of the packages that the number is offered.
func (m *maker) buyData(ctx context.Context, o order) error {
	service := m.services[o.who.network]
	var offers struct{ Data struct{ Packages namedList } }
	if err := m.ask(ctx, o.shop, http.MethodGet, "/databundle-api-v2/offers/"+service+"/"+o.who.phone, nil, &offers); err != nil {
		return err
	}
	packages := offers.Data.Packages.Data
	if len(packages) == 0 {
		return fmt.Errorf("no data package is offered to %s", o.who.network)
	}
	return m.ask(ctx, o.shop, http.MethodPost, "/databundle-api-v2/buy", map[string]any{"type": "e_wallet", "phone_number": o.who.phone, "service_id": service,
		"package_id": packages[o.pack%len(packages)].ID, "network": o.who.network, "client_reference": o.reference}, nil)
}

// answers maps endings to the customer's action on the prompt.
var answers = map[ending]string{succeeds: "approve", declined: "decline", wrongPIN: "wrong_pin"}

// answer lets the customer of a collection respond on the handset.
func (m *maker) answer(ctx context.Context, o order) error {
	var prompts struct {
		Data []struct{ ID, Status string }
	}
	handset := "/handsets/" + o.who.phone + "/prompts"
	if err := m.sim(ctx, http.MethodGet, handset, nil, &prompts); err != nil {
		return err
	}
	for i := len(prompts.Data) - 1; i >= 0; i-- {
		if p := prompts.Data[i]; p.Status == "pending" {
			return m.sim(ctx, http.MethodPost, handset+"/"+p.ID, map[string]any{"action": answers[o.end]}, nil)
		}
	}
	return fmt.Errorf("%s has no prompt for %s", o.who.phone, o.reference)
}

// password is a one-time password that was sent.
type password struct {
	shop    *shop
	who     person
	request string
}

func (m *maker) sendPassword(ctx context.Context, p *password) error {
	var sent struct {
		Data struct {
			OTP struct {
				RequestID string `json:"requestId"`
			} `json:"otp"`
		}
	}
	err := m.ask(ctx, p.shop, http.MethodPost, "/sms-api/otp/send",
		map[string]any{"phoneNumber": p.who.phone, "senderId": p.shop.sender, "message": p.shop.code, "length": 6}, &sent)
	p.request = sent.Data.OTP.RequestID
	return err
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// enterPassword reads the code on the handset and types it in.
func (m *maker) enterPassword(ctx context.Context, p *password) error {
	var messages struct{ Data []struct{ Text string } }
	if err := m.sim(ctx, http.MethodGet, "/handsets/"+p.who.phone+"/messages", nil, &messages); err != nil {
		return err
	}
	for i := len(messages.Data) - 1; i >= 0; i-- {
		if code := sixDigits.FindString(messages.Data[i].Text); code != "" {
			return m.ask(ctx, p.shop, http.MethodPost, "/sms-api/otp/verify", map[string]any{"requestId": p.request, "phoneNumber": p.who.phone, "code": code}, nil)
		}
	}
	return errors.New("the one-time password did not arrive")
}

func (m *maker) sendCampaign(ctx context.Context, s *shop, text string) error {
	return m.ask(ctx, s, http.MethodPost, "/sms-api/send", map[string]any{"sender_id": s.sender, "message": text, "group_id_list": []string{s.group}}, nil)
}

func (m *maker) requestSender(ctx context.Context, s *shop, name, purpose string) error {
	var asked struct{ Data named }
	err := m.ask(ctx, s, http.MethodPost, "/sms-api/requestSenderId", map[string]any{"name": name, "desc": purpose}, &asked)
	if s.sender == "" {
		s.sender = asked.Data.ID
	}
	return err
}

func (m *maker) approveSender(ctx context.Context, s *shop, name string) error {
	return m.operator.review(ctx, s, name, senderid.Approved, "The papers of the shop were seen")
}
