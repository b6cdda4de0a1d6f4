package messaging

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

// fixture is one node with all components of messaging.
type fixture struct {
	*smstest.Node
	*Messaging
	t        *testing.T
	d        *db.DB
	clock    *clock.Clock
	queue    *jobs.Queue
	operator *smstest.Operator
	sender   senderid.Sender
}

// options are the settings of a node that tests change.
type options struct {
	node    string
	resend  bool
	sleep   bool // do not start the queue
	credits int64
	at      *clock.Clock
	rail    *smstest.Operator
	tap     config.OTPTap
	log     *slog.Logger
	hours   config.Hours
}

func node(t *testing.T, d *db.DB, o options) *fixture {
	t.Helper()
	if o.rail == nil {
		o.rail = smstest.NewOperator()
	}
	n := smstest.New(t, d, smstest.Options{Name: o.node, Clock: o.at, Log: o.log})
	h := &fixture{Node: n, t: t, d: d, clock: n.Clock, queue: n.Queue, operator: o.rail}
	answers := idempotency.NewAnswers(d, n.Clock)
	h.Messaging = New(Deps{Recovery: n.Recovery, DB: d, Ledger: n.Ledger, Tenants: n.Tenants, Jobs: n.Queue, Answers: answers,
		Senders:  senderid.New(d, n.Tenants, answers, n.Clock, config.Quotas{}),
		Contacts: contacts.New(d, n.Tenants, answers, n.Clock, config.Quotas{}), Clock: n.Clock, Log: n.Log, Secret: n.Secret,
		SMS: map[tenant.Mode]provider.SMSSender{tenant.Live: o.rail}, Hours: o.hours, Resend: o.resend, OTPTap: o.tap})
	if !o.sleep {
		h.Start()
	}
	t.Cleanup(h.Close)
	return h
}

// open creates a node and a tenant with credits and an approved sender ID.
func open(t *testing.T, d *db.DB, o options) *fixture {
	t.Helper()
	h := node(t, d, o)
	h.Tenant, h.sender = h.customer("shop", o.credits, "Kejetia")
	return h
}

func (h *fixture) customer(id string, credits int64, sender string) (tenant.Tenant, senderid.Sender) {
	h.t.Helper()
	made := h.Customer(id)
	if credits > 0 {
		h.Write(func(tx *db.Tx) error {
			_, err := h.SellCredits(tx, id, "sale of "+id, credits)
			return err
		})
	}
	s, _, err := h.senders.Request(h.t.Context(), idempotency.Caller{Tenant: id}, sender, "a shop")
	if err != nil {
		h.t.Fatal(err)
	}
	h.Write(func(tx *db.Tx) error {
		s, err = h.senders.Review(tx, id, s.ID, senderid.Approved, "", "a tester")
		return err
	})
	return made, s
}

func (h *fixture) caller() idempotency.Caller {
	return idempotency.Caller{Tenant: h.Tenant.ID, Key: "key"}
}

func (h *fixture) send(text string, to ...string) (Campaign, error) {
	c, _, err := h.Send(h.t.Context(), h.caller(), Send{SenderID: h.sender.ID, Message: text, Recipients: to})
	return c, err
}

// mustSend sends a message and then lets the node work until nothing is due.
func (h *fixture) mustSend(text string, to ...string) Campaign {
	h.t.Helper()
	c, err := h.send(text, to...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Quiet()
	return c
}

// messages returns all messages of a campaign that the tenant sees.
func (h *fixture) messages(c Campaign) []Message {
	h.t.Helper()
	var all []Message
	for page := int64(1); ; page++ {
		p, err := h.CampaignMessages(h.t.Context(), c.Tenant, c.ID, page, 100)
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, p.Messages...)
		if len(p.Messages) == 0 {
			if int64(len(all)) != p.Total {
				h.t.Errorf("the pages hold %d messages, the total says %d", len(all), p.Total)
			}
			return all
		}
	}
}

// wantStatus compares the states of a campaign's messages in their order, written as "2 delivered, 1 invalid".
func (h *fixture) wantStatus(c Campaign, want string) {
	h.t.Helper()
	var states []Status
	for _, m := range h.messages(c) {
		states = append(states, m.Status)
	}
	if got := smstest.Runs(states); got != want {
		h.t.Errorf("the messages are %s, expected %s", got, want)
	}
}

func (h *fixture) status(c Campaign) delivery.CampaignStatus {
	h.t.Helper()
	found, err := h.Campaign(h.t.Context(), c.Tenant, c.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return found.Status
}

// sound checks the books of messages and the ledger.
func (h *fixture) sound() {
	h.t.Helper()
	r, err := h.Check(h.t.Context())
	h.WantSound(r.Problems, err)
}

// receipt delivers a receipt for a message id.
func (h *fixture) receipt(id, to string, state provider.Delivery) {
	h.t.Helper()
	if err := h.Receive(h.t.Context(), h.Receipt(id, to, state))(); err != nil {
		h.t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, k problem.Kind) *problem.Error {
	t.Helper()
	if !problem.Is(err, k) {
		t.Fatalf("got %v, expected %s", err, k)
	}
	var p *problem.Error
	errors.As(err, &p)
	return p
}

func each(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	dbtest.Each(t, fn)
}

const delivered = provider.Delivered

func (h *fixture) group(tenant string, phones ...string) contacts.Group {
	h.t.Helper()
	g, _, err := h.contacts.AddGroup(h.t.Context(), idempotency.Caller{Tenant: tenant}, "customers", "")
	if err != nil {
		h.t.Fatal(err)
	}
	list := make([]contacts.NewContact, len(phones))
	for i, p := range phones {
		list[i].Phone = p
	}
	if added, _, err := h.contacts.AddContacts(h.t.Context(), idempotency.Caller{Tenant: tenant}, g.ID, list); err != nil || added.New != len(phones) {
		h.t.Fatalf("%d of %d contacts were added: %v", added.New, len(phones), err)
	}
	return g
}

// kill ends the lease of a node, as happens some seconds after the node dies.
func kill(t *testing.T, d *db.DB, name string) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		n, err := tx.Exec("UPDATE job_leases SET expires_at = 1 WHERE node = $1 AND expires_at > 0", name)
		if n != 1 {
			t.Errorf("%d leases of %s", n, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
