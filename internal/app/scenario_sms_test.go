package app

import (
	"context"
	"encoding/json"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/test/apitest"
	"github.com/makola/makola/internal/test/clocktest"
)

// The steps of scenarios about messages:
//
//	sender AdomStores                   requests and approves a sender ID: $sender
//	review $id approved                 an operator reviews a sender ID: approved, or rejected with the reason
//	credits 98                          balance of credits that the endpoint returns
//	sell 50                             an operator sells credits
//	optout 0240000001                   an operator adds a number to the opt-outs
//	incoming 1400                       an operator gives the account a number for texts from handsets
//	text 0240000001 1400 STOP           a handset sends a text to a number
//	stop $campaign                      an operator stops a campaign
//	handset 0240000001 {...}            the newest text on a handset
//	silent 0240000001                   no text has arrived on this handset since the scenario began
//	code 0240000001                     stores the digits of the newest text on a handset: $code, and with a space: $spaced

// usualCredits is the number of credits of a scenario's tenant without credits=.
const usualCredits = 100

// serveSMPP makes a simulator serve SMPP until it is closed.
func serveSMPP(t testing.TB, s *simulated) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Centre.Serve(l) }() // an error shows in the messages
	clocktest.Await(t, "the message centre to listen", func() bool { return s.Centre.Account().Address != "" })
}

// connected waits until a server is bound to its simulator's message centre.
func connected(t testing.TB, a *App) {
	t.Helper()
	for _, r := range a.sms {
		clocktest.Await(t, "a message centre to be connected", func() bool { return r.Ready("") == nil })
	}
}

// smsStep returns the steps of one line that are about messages, nil for any other.
func smsStep(word, rest string) (func(*actor), error) {
	fields := strings.Fields(rest)
	switch {
	case word == "sender" && rest != "":
		return func(a *actor) { a.sender(rest) }, nil
	case word == "review" && len(fields) > 1:
		return func(a *actor) {
			a.review(a.fill(fields[0]), senderid.Status(fields[1]), strings.Join(fields[2:], " "))
		}, nil
	case word == "credits" && len(fields) == 1:
		return func(a *actor) {
			a.ask("GET", "/account-api/balance", "", nil)
			a.answered(200, nil, `{"message":"*","data":{"sms_balance":`+rest+`,"...":0}}`)
		}, nil
	case word == "sell" && len(fields) == 1:
		n, err := strconv.ParseInt(rest, 10, 64)
		return func(a *actor) { a.sell(n) }, err
	case word == "optout" && len(fields) == 1:
		number, err := msisdn.Parse(rest)
		return func(a *actor) {
			a.write(func(tx *db.Tx) error {
				a.stage.app.contacts.OptOut(tx, a.tenant.ID, "asked for it", number)
				return nil
			})
		}, err
	case word == "incoming" && len(fields) == 1:
		return func(a *actor) {
			a.write(func(tx *db.Tx) error {
				_, err := a.stage.app.inbox.Assign(tx, inbox.Number{Tenant: a.tenant.ID, Number: rest, Answers: true})
				return err
			})
		}, nil
	case word == "text" && len(fields) > 2:
		return func(a *actor) {
			a.stage.sim.Centre.SendText(fields[0], fields[1], strings.Join(fields[2:], " "))
			a.stage.settle(a.t)
		}, nil
	case word == "stop" && len(fields) == 1:
		return func(a *actor) {
			a.write(func(tx *db.Tx) error {
				_, err := a.stage.app.messaging.StopCampaign(tx, a.fill(rest))
				return err
			})
			a.stage.settle(a.t)
		}, nil
	case word == "handset" && len(fields) > 1:
		return func(a *actor) { a.same(strings.TrimSpace(strings.TrimPrefix(rest, fields[0])), a.newest(fields[0])) }, nil
	case word == "silent" && len(fields) == 1:
		return func(a *actor) {
			a.stage.settle(a.t)
			for _, m := range a.stage.sim.Messages(rest) {
				if !m.ReceivedAt.Before(a.begun) {
					a.t.Errorf("line %d: %s got %q", a.line, rest, m.Text)
				}
			}
		}, nil
	case word == "code" && len(fields) == 1:
		return func(a *actor) {
			digits := regexp.MustCompile(`\b[0-9]{4,10}\b`).FindString(string(a.newest(rest)))
			if digits == "" {
				a.t.Fatalf("line %d: no code is on %s", a.line, rest)
			}
			a.vars["spaced"] = digits[:len(digits)/2] + "\u00a0" + digits[len(digits)/2:]
			a.vars["code"], a.vars["wrong"] = digits, strings.Repeat(string('0'+(digits[0]-'0'+1)%10), len(digits))
		}, nil
	}
	return nil, nil
}

func (a *actor) write(fn func(*db.Tx) error) {
	a.t.Helper()
	a.must(a.stage.app.db.Write(context.Background(), fn))
}

// sender creates an approved sender ID.
func (a *actor) sender(name string) {
	a.t.Helper()
	s, _, err := a.stage.app.senders.Request(context.Background(), idempotency.Caller{Tenant: a.tenant.ID}, name, "scenario")
	a.must(err)
	a.review(s.ID, senderid.Approved, "")
	a.vars["sender"] = s.ID
}

func (a *actor) review(id string, to senderid.Status, reason string) {
	a.t.Helper()
	a.write(func(tx *db.Tx) error {
		_, err := a.stage.app.senders.Review(tx, a.tenant.ID, id, to, reason, "test")
		return err
	})
}

func (a *actor) sell(credits int64) {
	a.t.Helper()
	if credits == 0 {
		return
	}
	sale := uuid.NewString()
	a.write(func(tx *db.Tx) error {
		_, err := a.stage.app.messaging.SellCredits(tx, a.tenant.ID, sale, credits)
		return err
	})
}

// newest returns the newest text on a handset that arrived during this scenario.
func (a *actor) newest(number string) []byte {
	a.t.Helper()
	a.stage.settle(a.t)
	all := a.stage.sim.Messages(number)
	if len(all) == 0 || all[len(all)-1].ReceivedAt.Before(a.begun) {
		a.t.Fatalf("line %d: nothing came on %s", a.line, number)
	}
	text, err := json.Marshal(map[string]string{"from": all[len(all)-1].From, "text": all[len(all)-1].Text})
	a.must(err)
	return text
}

// textsAddUp compares the campaigns with the ledger and checks their totals.
func (a *actor) textsAddUp() {
	a.t.Helper()
	if report, err := a.stage.app.messaging.Check(context.Background()); err != nil || !report.OK() {
		a.t.Errorf("the messages do not agree with the ledger: %v %+v", err, report.Problems)
	}
}

// group creates a contact group with one contact, and sets $group and $contact.
func (a *actor) group() {
	a.t.Helper()
	ctx, store := context.Background(), a.stage.app.contacts
	g, _, err := store.AddGroup(ctx, idempotency.Caller{Tenant: a.tenant.ID}, "Customers", "")
	a.must(err)
	c, _, err := store.AddContact(ctx, idempotency.Caller{Tenant: a.tenant.ID}, g.ID, contacts.NewContact{Phone: "0270000009", FirstName: "Ama"})
	a.must(err)
	a.vars["group"], a.vars["contact"] = g.ID, c.ID
}

// textExamples are valid requests about messages, from which the bad input is made.
func (a *actor) textExamples() map[string]apitest.Example {
	q := strconv.Quote
	sender, group, contact := a.vars["sender"], a.vars["group"], a.vars["contact"]
	body := func(pairs ...string) apitest.Example {
		e := apitest.Example{Body: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			e.Body[pairs[i]] = pairs[i+1]
		}
		return e
	}
	in := func(e apitest.Example, name, value string) apitest.Example {
		e.Path = map[string]string{name: value}
		return e
	}
	return map[string]apitest.Example{
		"requestSender": body("name", `"Kofi Shop"`, "desc", `"Receipts"`),
		"senderIDs":     {}, "contactGroups": {},
		"sendSMS":          body("sender_id", q(sender), "message", `"Hello"`, "recipients", `["0240000001"]`),
		"sendSMSByQuery":   {Query: map[string]string{"sender_id": sender, "message": "Hello", "recipients": "0240000001"}},
		"campaignMessages": in(apitest.Example{}, "campaignId", "00000000-0000-4000-8000-000000000001"),
		"sendOTP":          body("phoneNumber", `"0240000001"`, "senderId", q(sender), "message", `"Your code is <%otp_code%>"`, "length", "6", "expiry", "10"),
		"verifyOTP":        body("requestId", `"00000000-0000-4000-8000-000000000001"`, "phoneNumber", `"0240000001"`, "code", `"1234"`),
		"addGroup":         body("name", `"More"`, "group_icon", `"group_icon_2"`),
		"updateGroup":      in(body("name", `"Other"`, "group_icon", `"group_icon_2"`), "id", group),
		"deleteGroup":      in(apitest.Example{}, "groupId", group),
		"contacts":         in(apitest.Example{}, "groupId", group),
		"addContact":       body("contact_group_id", q(group), "first_name", `"Esi"`, "last_name", `"B"`, "phone_number", `"0240000001"`, "email", `"esi@shop.example"`),
		"addContacts":      body("contact_group_id", q(group), "contacts", `[{"first_name":"Esi","phone_number":"0240000001"}]`),
		"updateContact":    in(body("first_name", `"Esi"`, "last_name", `"B"`, "phone_number", `"0240000001"`, "email", `"esi@shop.example"`), "id", contact),
		"deleteContact":    in(apitest.Example{}, "id", contact),
	}
}
