package delivery

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

// fixture is one node with all components of delivery, and one account.
type fixture struct {
	*smstest.Node
	*Delivery
	t        *testing.T
	d        *db.DB
	clock    *clock.Clock
	queue    *jobs.Queue
	codes    *otp.Codes
	operator *smstest.Operator
}

// options are the settings of a node that tests change.
type options struct {
	node    string
	resend  bool
	valid   time.Duration
	sleep   bool // do not start the queue
	credits int64
	at      *clock.Clock
	rail    *smstest.Operator
	log     *slog.Logger
}

func node(t *testing.T, d *db.DB, o options) *fixture {
	t.Helper()
	if o.rail == nil {
		o.rail = smstest.NewOperator()
	}
	h := nodeOn(t, d, o, o.rail)
	h.operator = o.rail
	return h
}

// nodeWith starts another node, with its own rail, on the fixture's database.
func nodeWith(t *testing.T, h *fixture, rail provider.SMSSender) *fixture {
	t.Helper()
	other := nodeOn(t, h.d, options{node: "another", at: h.clock}, rail)
	other.Tenant = h.Tenant
	return other
}

func nodeOn(t *testing.T, d *db.DB, o options, rail provider.SMSSender) *fixture {
	t.Helper()
	n := smstest.New(t, d, smstest.Options{Name: o.node, Clock: o.at, Log: o.log})
	h := &fixture{Node: n, t: t, d: d, clock: n.Clock, queue: n.Queue}
	h.codes = otp.New(otp.Deps{DB: d, Ledger: n.Ledger, Tenants: n.Tenants, Answers: idempotency.NewAnswers(d, n.Clock), Clock: n.Clock, Log: n.Log, Secret: n.Secret})
	h.Delivery = New(Deps{DB: d, Ledger: n.Ledger, Jobs: n.Queue, Codes: h.codes, Clock: n.Clock, Log: n.Log,
		SMS: map[tenant.Mode]provider.SMSSender{tenant.Live: rail}, Resend: o.resend, Validity: o.valid, Recovery: n.Recovery})
	if !o.sleep {
		h.Start()
	}
	t.Cleanup(h.Close)
	return h
}

// retention returns the sweep of the node.
func (h *fixture) retention() *retention {
	return &retention{db: h.d, clock: h.clock, receipts: h.receipts, codes: h.codes}
}

// open creates a node and an account with credits.
func open(t *testing.T, d *db.DB, o options) *fixture {
	t.Helper()
	h := node(t, d, o)
	h.customer("shop", o.credits)
	return h
}

// customer creates the account of the test.
func (h *fixture) customer(id string, credits int64) {
	h.t.Helper()
	h.Tenant = h.Customer(id)
	if credits == 0 {
		return
	}
	h.Write(func(tx *db.Tx) error {
		key := h.Tenant.SMSCredits()
		page, err := h.Ledger.Open(tx, key)
		if err != nil {
			return err
		}
		err = page.Add(ledger.Transfer{Asset: key.Asset, From: ledger.Funding, To: key.ID, Amount: credits, Subject: "sale of " + id, Leg: "sale", Kind: "sms_sale", At: h.clock.Now()})
		page.Post()
		return err
	})
}

// order returns a message to numbers.
func (h *fixture) order(text string, to ...string) Order {
	h.t.Helper()
	o := Order{Tenant: h.Tenant}
	for _, number := range to {
		n, err := msisdn.Parse(number)
		if err != nil {
			h.t.Fatal(err)
		}
		o.Numbers = append(o.Numbers, n)
	}
	encoding, segments := smstext.Count(text)
	o.Campaign = Campaign{Tenant: h.Tenant.ID, ID: uuid.Must(uuid.NewV7()).String(), Mode: tenant.Live, Kind: KindCampaign, Sender: "Kejetia",
		Message: text, Encoding: encoding, Segments: int64(segments), Credits: smstext.Credits(text), Recipients: int64(len(to)), Status: CampaignActive, Key: "key", CreatedAt: h.clock.Now()}
	return o
}

// otp returns a one-time password to a number.
func (h *fixture) otp(to string, expiry time.Duration) Order {
	h.t.Helper()
	o := h.order("Code "+otp.Placeholder, to)
	c := &o.Campaign
	c.Kind = KindOTP
	code, err := h.codes.Make(otp.Code{Tenant: c.Tenant, ID: c.ID, Number: o.Numbers[0], Created: c.CreatedAt, Expires: c.CreatedAt.Add(expiry)}, otp.LeastLength)
	if err != nil {
		h.t.Fatal(err)
	}
	o.Code = code
	return o
}

func (h *fixture) send(text string, to ...string) (Campaign, error) {
	c, _, err := h.Accept(h.t.Context(), h.order(text, to...))
	return c, err
}

func (h *fixture) mustAccept(o Order) Campaign {
	h.t.Helper()
	c, _, err := h.Accept(h.t.Context(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// mustSend sends a message and then lets the node work until nothing is due.
func (h *fixture) mustSend(text string, to ...string) Campaign {
	h.t.Helper()
	c := h.mustAccept(h.order(text, to...))
	h.Quiet()
	return c
}

// stop stops a campaign.
func (h *fixture) stop(c Campaign) {
	h.t.Helper()
	h.Write(func(tx *db.Tx) error {
		h.Stop(tx, c.Tenant, c.ID)
		return nil
	})
}

// campaign reads a campaign.
func (h *fixture) campaign(c Campaign) (found Campaign) {
	h.t.Helper()
	err := h.d.Read(h.t.Context(), func(tx *db.Tx) error { return tx.Query(selectCampaign, []any{c.Tenant, c.ID}, found.Scan) })
	if err != nil || found.ID == "" {
		h.t.Fatalf("campaign %s: %v", c.ID, err)
	}
	return found
}

func (h *fixture) status(c Campaign) CampaignStatus {
	h.t.Helper()
	return h.campaign(c).Status
}

// messages returns the messages of a campaign by position. A recipient without a row, or with a claimed message,
// counts as queued.
func (h *fixture) messages(c Campaign) []message {
	h.t.Helper()
	all := make([]message, c.Recipients)
	for i := range all {
		all[i].Status = StatusQueued
	}
	err := h.d.Read(h.t.Context(), func(tx *db.Tx) error {
		return tx.Query("SELECT no, recipient, status, accepted, submitted_at, delivered_at, error FROM messages WHERE campaign = $1", []any{c.ID}, func(r *db.Row) error {
			var m message
			err := r.Scan(&m.No, &m.Recipient, &m.Status, &m.Accepted, &m.SubmittedAt, &m.DeliveredAt, &m.Error)
			if m.Status == StatusSending {
				m.Status = StatusQueued
			}
			all[m.No] = m
			return err
		})
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// wantStatus compares the states of a campaign's messages in their order, written as "2 delivered, 1 failed".
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

func each(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	dbtest.Each(t, fn)
}

const (
	delivered   = provider.Delivered
	undelivered = provider.DeliveryFailed
)

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

// The database refuses a step, as on a busy machine when a writer waits too long. The fixture lets the step run again
// instead of waiting for ever.
func TestQuiet_givesARefusedStepItsNextTry(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := open(t, d, options{credits: 10})
		var refusals atomic.Int64
		h.operator.Script(func(int, provider.Segment) provider.Outcome {
			f.Decide(func(db.Boundary) db.Fault {
				if refusals.Add(1) > 30 {
					return db.FaultNone
				}
				return db.FaultBefore
			})
			return h.operator.Accept()
		})
		c, err := h.send("hello", "0241234567")
		if err != nil {
			t.Fatal(err)
		}
		h.QuietOr(50 * time.Millisecond)
		h.wantStatus(c, "1 submitted")
		h.sound()
	})
}
