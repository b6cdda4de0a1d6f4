package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/smpp"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/sim/smsc"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// smsSite is a simulator that can be replaced, and the messages that are sent over it.
type smsSite struct {
	t       *testing.T
	current atomic.Pointer[simulated]
	url     string
	sender  string
}

func newSMSSite(t *testing.T) *smsSite {
	s := &smsSite{t: t}
	s.replace()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.current.Load().Handler().ServeHTTP(w, r) }))
	t.Cleanup(func() { server.Close(); _ = s.current.Load().Close() })
	s.url = server.URL
	return s
}

// replace starts another simulator in place of the earlier one, and stops that one.
func (s *smsSite) replace() {
	s.t.Helper()
	fresh, err := simulate(sim.Options{}, mtn.Options{}, smsc.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	serveSMPP(s.t, fresh)
	if old := s.current.Swap(fresh); old != nil {
		if err := old.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *smsSite) node(name string, storage config.Storage) *App {
	s.t.Helper()
	cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", Sim: s.url, Connections: 4, DrainFor: time.Minute, Node: name,
		Storage: storage}
	// A lease uses the machine's clock, because a slow machine must not make a node look dead.
	a, err := Start(context.Background(), cfg, Options{Version: name, Log: slog.New(slog.DiscardHandler), Lease: 10 * time.Minute})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			s.t.Errorf("stop %s: %v", name, err)
		}
	})
	return a
}

// send sends a text from the demo tenant through a node, and waits until its handset has the text once.
func (s *smsSite) send(through *App, to msisdn.MSISDN, text string) {
	s.t.Helper()
	_, _, err := through.messaging.Send(context.Background(), idempotency.Caller{Tenant: demoTenant},
		messaging.Send{SenderID: s.sender, Message: text, Recipients: []string{string(to)}})
	if err != nil {
		s.t.Fatal(err)
	}
	texts := func() (n int) {
		for _, m := range s.current.Load().Messages(string(to)) {
			if m.Text == text {
				n++
			}
		}
		return n
	}
	clocktest.Await(s.t, text, func() bool { return texts() > 0 })
	if n := texts(); n != 1 {
		s.t.Errorf("%q came %d times", text, n)
	}
}

// One of two nodes has the connections and sends the messages of both. When that node stops, the other node connects. Nodes
// find a simulator that starts again at another address.
func TestSMPP_oneNodeSendsForAll(t *testing.T) {
	t.Parallel()
	site, storage := newSMSSite(t), freshStorage(t, db.Postgres)
	first := site.node("first", storage)
	connected(t, first)
	second := site.node("second", storage)
	site.sender = second.ready.SenderID
	if err := second.sms[0].Ready(""); err != provider.ErrElsewhere { // exactly this error
		t.Fatalf("the second node says %v", err)
	}
	site.send(first, "233240000001", "from the node that is connected")
	site.send(second, "233240000001", "from the other")
	if bound := site.current.Load().Centre.Totals().PeakBound; bound != 1 {
		t.Errorf("%d connections were bound at once", bound)
	}
	if err := first.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	connected(t, second)
	site.send(second, "233240000001", "from the one that is left")
	site.replace()
	clocktest.Await(t, "a bind with the new simulator", func() bool { return site.current.Load().Centre.Totals().Bound == 1 })
	site.send(second, "233240000001", "to another simulator")
	if n := site.current.Load().Centre.Totals().Binds; n != 1 {
		t.Errorf("the new simulator was bound %d times", n)
	}
	if report, err := second.messaging.Check(context.Background()); err != nil || !report.OK() {
		t.Errorf("the messages do not agree with the ledger: %v %v", err, report.Problems)
	}
}

// If a message centre does not answer one submit of a campaign, the other submits are not delayed.
func TestSMPP_silentSubmitDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			site := newSMSSite(t)
			a := site.node("one", freshStorage(t, engine))
			connected(t, a)
			if err := site.current.Load().Inject(sim.Fault{Provider: smsc.Name, Operation: "*", Kind: sim.Silent, Count: 1}); err != nil {
				t.Fatal(err)
			}
			recipients := make([]string, 151)
			for i := range recipients {
				recipients[i] = fmt.Sprintf("02400%05d", 10_000+i)
			}
			c, _, err := a.messaging.Send(context.Background(), idempotency.Caller{Tenant: demoTenant},
				messaging.Send{SenderID: a.ready.SenderID, Message: "to all", Recipients: recipients})
			if err != nil {
				t.Fatal(err)
			}
			queued := func() (n int) {
				for page := int64(1); page <= 2; page++ {
					p, err := a.messaging.CampaignMessages(context.Background(), c.Tenant, c.ID, page, 100)
					if err != nil {
						t.Fatal(err)
					}
					for _, m := range p.Messages {
						if m.Status == messaging.StatusQueued || m.Status == messaging.StatusSending {
							n++
						}
					}
				}
				return n
			}
			clocktest.Await(t, "all but one to be recorded", func() bool { return queued() == 1 })
			site.replace() // ends the connection, and the wait for the answer
			clocktest.Await(t, "the last one", func() bool { return queued() == 0 })
		})
	}
}

// Live messages go only through the configured binds. Without binds they are refused.
func TestSMPP_liveUsesConfiguredBinds(t *testing.T) {
	t.Parallel()
	operator, err := simulate(sim.Options{}, mtn.Options{}, smsc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operator.Close() })
	serveSMPP(t, operator)
	account := operator.Centre.Account()
	site := newSMSSite(t)
	for _, configured := range []bool{true, false} {
		cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", Sim: site.url, DrainFor: time.Minute, Storage: freshStorage(t, db.SQLite)}
		if configured {
			if cfg, err = asProduction(cfg); err != nil {
				t.Fatal(err)
			}
			cfg.SMPP = config.SMPP{SMPPBind: config.SMPPBind{Name: "mtn", Address: account.Address, SystemID: account.SystemID,
				Password: config.Credential(account.Password), Mode: "transmitter", Networks: []string{"mtn", "vodafone", "tigo"}}}
		}
		a, err := Start(context.Background(), cfg, Options{Lease: 10 * time.Minute}) // as in node
		if err != nil {
			t.Fatal(err)
		}
		connected(t, a)
		id := uuid.NewString()
		live := &actor{stage: &stage{app: a}, t: t, vars: map[string]string{}}
		live.write(func(tx *db.Tx) error {
			var err error
			live.tenant, err = a.tenants.Create(tx, tenant.Tenant{ID: id, Name: "Live", Mode: tenant.Live})
			return err
		})
		live.sell(5)
		live.sender("Kofi Shop")
		c, _, err := a.messaging.Send(context.Background(), idempotency.Caller{Tenant: id},
			messaging.Send{SenderID: live.vars["sender"], Message: "real", Recipients: []string{"0240000001"}})
		if !configured {
			if err == nil || !strings.Contains(err.Error(), "no operator is connected") {
				t.Errorf("without a bind a live message is answered %v", err)
			}
		} else {
			if err != nil {
				t.Fatal(err)
			}
			clocktest.Await(t, "the receipt", func() bool {
				p, err := a.messaging.CampaignMessages(context.Background(), id, c.ID, 1, 1)
				return err == nil && p.Messages[0].Status == messaging.StatusDelivered
			})
			clocktest.Await(t, "both connections of the bind to be listed", func() bool {
				binds, err := a.messaging.Binds(context.Background())
				return err == nil && len(binds) > 0 && binds[0].Name == "mtn" && binds[0].Bound == 2 && binds[0].State(a.clock.Now()) == messaging.BindUp
			})
		}
		if err := a.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(operator.Messages("0240000001")); n != 1 {
		t.Errorf("the operator has %d messages", n)
	}
	if n := len(site.current.Load().Messages("0240000001")); n != 0 {
		t.Errorf("the simulator for test money has %d live messages", n)
	}
}

func TestSMPP_bindsFromTheirFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "binds.json")
	write := func(text string) config.SMPP {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.SMPP{File: path}
	}
	binds, err := liveBinds(write(`[{"address":"smsc.example:2776","tls":true,"system_id":"shop","password":"x","networks":["vdf","ATL"],"submit_ids":"hex","rate":50}]`))
	if err != nil || len(binds) != 1 {
		t.Fatal(binds, err)
	}
	b := binds[0]
	if b.TLS == nil || b.TLS.ServerName != "smsc.example" || b.Password != "x" || len(b.Networks) != 2 || b.Networks[0] != msisdn.Telecel ||
		b.SubmitIDs != smpp.IDHex || b.ReceiptIDs != smpp.IDText || b.Rate != 50 || b.Concatenation != smpp.UDH {
		t.Errorf("the bind is %+v", b)
	}
	authority, _ := WriteCertificate(t, t.TempDir(), 1)
	binds, err = liveBinds(write(fmt.Sprintf(`[{"address":"10.1.1.1:2776","tls":true,"tls_ca":%q,"tls_server_name":"smsc.example","system_id":"shop"}]`, authority)))
	if err != nil || binds[0].TLS.ServerName != "smsc.example" || binds[0].TLS.RootCAs == nil {
		t.Errorf("a bind with a CA of its own is %+v, %v", binds, err)
	}
	if _, err := liveBinds(write(`[{"address":"smsc.example:2776","system_id":"shop","networks":["GLO"]}]`)); err == nil || !strings.Contains(err.Error(), "GLO") {
		t.Errorf("an unknown network is answered %v", err)
	}
}
