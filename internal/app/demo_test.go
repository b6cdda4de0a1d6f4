package app

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/sim/smsc"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/matrix"
)

// A first start may fail at any point. The next start then makes the demo tenant, and its float agrees with the simulator's
// books.
func TestDemo_createdWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const most = 120 // far more commits than one start makes
	breaks := 0
	for nth := 1; ; nth = matrix.Next(nth) {
		if nth > most {
			t.Fatal("a start never ends")
		}
		c := clock.NewManual(scenarioNow)
		s, err := simulate(sim.Options{Clock: c}, mtn.Options{}, smsc.Options{EnquireEvery: quietCentre})
		if err != nil {
			t.Fatal(err)
		}
		serveSMPP(t, s)
		server := httptest.NewServer(s.Handler())
		cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", Sim: server.URL, Connections: 4, DrainFor: time.Minute,
			Storage: freshStorage(t, db.SQLite)}
		begin := func(f *db.Faults) (*App, error) {
			return Start(context.Background(), cfg, Options{Clock: c, Lease: 10 * time.Minute, Faults: f})
		}
		faults, commits := &db.Faults{}, atomic.Int64{}
		faults.Decide(func(b db.Boundary) db.Fault {
			if b == db.BoundaryCommit && commits.Add(1) == int64(nth) {
				return db.FaultBefore
			}
			return db.FaultNone
		})
		a, err := begin(faults)
		faults.Decide(nil) // faults affect only the start, not later work or the stop
		reached := commits.Load() >= int64(nth)
		if err != nil {
			breaks++
			if a, err = begin(nil); err != nil {
				t.Fatalf("after a break at commit %d: %v", nth, err)
			}
		}
		if senders, err := a.senders.List(t.Context(), demoTenant); err != nil || len(senders) != 1 || a.ready.SenderID != senders[0].ID {
			t.Errorf("after a break at commit %d there are the senders %v, of which %q is ready: %v", nth, senders, a.ready.SenderID, err)
		}
		if groups, err := a.contacts.Groups(t.Context(), demoTenant); err != nil || len(groups) != 1 ||
			a.ready.GroupID != groups[0].ID || groups[0].Contacts != int64(len(demoContacts)) {
			t.Errorf("after a break at commit %d there are the groups %v, of which %q is ready: %v", nth, groups, a.ready.GroupID, err)
		}
		for _, rail := range a.rails {
			if rail.Mode != string(tenant.Test) || rail.Floats == nil {
				continue
			}
			accounts, o := rail.Floats.Float(t.Context())
			ours, err := a.payments.Floats(t.Context(), rail.Name, rail.Mode)
			var sum money.Pesewas
			for _, held := range accounts {
				sum += held.Amount
				if ours[held.Account] != held.Amount {
					t.Errorf("after a break at commit %d, %s has %v, the ledger %v (%v, %v)", nth, rail.Name, held, ours, o.Class, err)
				}
			}
			if sum == 0 || ours[""] != 0 {
				t.Errorf("after a break at commit %d, %s has %v, the ledger %v (%v, %v)", nth, rail.Name, accounts, ours, o.Class, err)
			}
		}
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		server.Close()
		_ = s.Close()
		if !reached {
			break
		}
	}
	if breaks == 0 {
		t.Error("no start broke off")
	}
}

// The key of the demo tenant is printed once, by the start that makes it. A start whose address is in use makes no key.
func TestDemo_busyAddressCreatesNoKey(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(scenarioNow)
	s, err := simulate(sim.Options{Clock: c}, mtn.Options{}, smsc.Options{EnquireEvery: quietCentre})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	serveSMPP(t, s)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := config.Server{Environment: "development", Listen: taken.Addr().String(), Sim: server.URL, Connections: 4, DrainFor: time.Minute,
		Storage: config.Storage{Data: t.TempDir()}}
	if _, err := Start(context.Background(), cfg, Options{Clock: c}); !errors.Is(err, ErrAddressInUse) {
		t.Fatalf("on an address that is taken: %v", err)
	}
	cfg.Listen = "127.0.0.1:0"
	a, err := Start(context.Background(), cfg, Options{Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	if a.ready.APIKey == "" || a.ready.WebhookSecret == "" {
		t.Errorf("the next start tells %+v", a.ready)
	}
	if err := a.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
