package route_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/hubtel"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// rails returns two rails with real roles. Nothing here calls them.
func rails(c *clock.Clock) []provider.Rail {
	h := hubtel.New(config.Hubtel{ClientID: "x", POSSales: "1", Prepaid: "2"}, provider.ClientOptions{Mode: "test", Clock: c})
	mtn := provider.Rail{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), Collector: h, Disburser: h, WalletNames: h}
	return []provider.Rail{mtn, h.Rail()}
}

// node returns the routes of one node on the database.
func node(t *testing.T, d *db.DB, c *clock.Clock) *route.Table {
	t.Helper()
	table := route.New(d, c, slog.New(slog.DiscardHandler), []string{"mtn", "hubtel", "unused"}, rails(c))
	if err := table.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return table
}

func names(t *testing.T, table *route.Table, op route.Operation, channel, tenant string) string {
	t.Helper()
	chosen, _, err := table.Choose(t.Context(), op, channel, tenant, "test")
	var p *problem.Error
	if errors.As(err, &p) {
		return p.Code
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range chosen {
		list = append(list, r.Name)
	}
	return strings.Join(list, ",")
}

func write(t *testing.T, d *db.DB, fn func(*db.Tx) error) {
	t.Helper()
	if err := d.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func TestRoutes_everyChannelHasADefault(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table := node(t, d, clock.NewManual(start))
		all, err := table.Catalogue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bank := func(code string) string {
			i := slices.IndexFunc(all.Banks, func(b route.Bank) bool { return b.Code == code })
			return all.Banks[i].ID
		}
		for _, c := range []struct {
			op            route.Operation
			channel, want string
		}{
			{route.Collect, "MTN", "mtn,hubtel"},
			{route.Collect, "TELECEL", "hubtel"},
			{route.DisburseWallet, "MTN", "mtn,hubtel"},
			{route.DisburseWallet, "AIRTELTIGO", "hubtel"},
			{route.WalletName, "MTN", "mtn,hubtel"},
			{route.DisburseBank, bank("040100"), "hubtel"},
			{route.BankName, bank("040100"), "hubtel"},
			{route.DisburseBank, bank("090100"), "not_served"}, // no provider has a code for this bank
			{route.DisburseBank, "no such bank", "not_served"},
			{route.TopUp, "MTN", "hubtel"},
			{route.Offers, "TELECEL", "hubtel"},
			{route.Bundle, "MTN", "hubtel"},
		} {
			if got := names(t, table, c.op, c.channel, "t1"); got != c.want {
				t.Errorf("%s %s: %s, want %s", c.op, c.channel, got, c.want)
			}
		}
		if _, _, err := table.Choose(t.Context(), route.Collect, "MTN", "t1", "live"); !problem.Is(err, problem.Unavailable) {
			t.Errorf("a live tenant without live rails: %v", err)
		}
		chosen, _, err := table.Choose(t.Context(), route.DisburseBank, bank("040100"), "t1", "test")
		if err != nil || chosen[0].Banks[bank("040100")] != "300304" {
			t.Errorf("GCB is reached under %v, %v", chosen, err)
		}
		r, ok := table.Rail("hubtel", "test")
		if !ok || r.MayRepeat.Disburse || r.Banks[bank("130100")] != "300312" {
			t.Errorf("rail %+v, %v", r, ok)
		}
		if _, ok := table.Rail("hubtel", "live"); ok {
			t.Error("a rail of the other mode was found")
		}
	})
}

func TestRoutes_changeTakesEffect(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		table := node(t, d, c)
		set := func(tenant, mode, channel string, providers ...string) {
			t.Helper()
			write(t, d, func(tx *db.Tx) error {
				return table.SetRoute(tx, route.Route{Tenant: tenant, Mode: mode, Operation: route.Collect, Channel: channel, Providers: providers, Actor: "ama"})
			})
		}
		set("t1", route.Any, "MTN", "hubtel", "mtn")
		if got := names(t, table, route.Collect, "MTN", "t1"); got != "hubtel,mtn" {
			t.Errorf("the tenant's own route: %s", got)
		}
		if got := names(t, table, route.Collect, "MTN", "t2"); got != "mtn,hubtel" {
			t.Errorf("another tenant's: %s", got)
		}
		set("t1", "test", route.Any, "mtn")
		if got := names(t, table, route.Collect, "MTN", "t1"); got != "mtn" {
			t.Errorf("the mode is more particular than the channel: %s", got)
		}
		set("t2", route.Any, "MTN")
		if got := names(t, table, route.Collect, "MTN", "t2"); got != "not_served" {
			t.Errorf("a route to nobody: %s", got)
		}
		set("t2", route.Any, "MTN", "unused", "hubtel")
		if got := names(t, table, route.Collect, "MTN", "t2"); got != "hubtel" {
			t.Errorf("only rails that exist: %s", got)
		}

		// Another start does not overwrite an operator's change. A tenant's own route can be removed.
		set(route.Any, route.Any, "MTN", "hubtel")
		again := node(t, d, c)
		if got := names(t, again, route.Collect, "MTN", "t3"); got != "hubtel" {
			t.Errorf("after another start: %s", got)
		}
		write(t, d, func(tx *db.Tx) error {
			dropped, err := table.DropRoute(tx, "t2", route.Any, route.Collect, "MTN")
			if !dropped {
				t.Error("nothing was dropped")
			}
			return err
		})
		if got := names(t, table, route.Collect, "MTN", "t2"); got != "hubtel" {
			t.Errorf("after dropping: %s", got)
		}
		routes, err := table.Routes(t.Context())
		if err != nil || len(routes) < 11 {
			t.Errorf("%d routes, %v", len(routes), err)
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			return table.SetRoute(tx, route.Route{Tenant: "", Mode: "x", Operation: "y", Providers: []string{"a,b"}})
		})
		var p *problem.Error
		if !errors.As(err, &p) || len(p.Fields) != 5 {
			t.Errorf("a bad route: %v", err)
		}
	})
}

// fields returns the names of the invalid fields.
func fields(err error) string {
	if err == nil {
		return ""
	}
	return strings.Join(problem.From(err).FieldNames(), ",")
}

func TestRoutes_refuseUnknownProviders(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		table := node(t, d, c)
		banks, err := table.Banks(t.Context(), "t1", "test")
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range []struct{ channel, provider, bad string }{
			{"MTN", "mtn", ""},
			{"MTN", "unused", ""}, // no account is configured yet
			{route.Any, "hubtel", ""},
			{banks[0].ID, "hubtel", ""},
			{"MTN", "MTN", "providers"},
			{"MTN", "hubtle", "providers"},
			{"MTN", "mtn,hubtel", "providers"},
			{"MTN", "", "providers"},
			{"GLO", "mtn", "channel"},
			{"mtn", "mtn", "channel"},
			{"", "hubtle", "channel,providers"},
		} {
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				return table.SetRoute(tx, route.Route{Tenant: "t1", Mode: "test", Operation: route.Collect, Channel: each.channel, Providers: []string{each.provider}, Actor: "ama"})
			})
			if got := fields(err); got != each.bad {
				t.Errorf("a route of %q to %q: bad are %q, expected %q (%v)", each.channel, each.provider, got, each.bad, err)
			}
		}
		for name, bad := range map[string]string{"mtn": "", "unused": "", "MTN": "provider", "hubtle": "provider", "": "provider", route.Any: "provider"} {
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				return table.Pause(tx, route.Pause{Mode: "test", Provider: name, Operation: route.Any, Reason: "outage", Actor: "ama"})
			})
			if got := fields(err); got != bad {
				t.Errorf("a pause of %q: bad are %q, expected %q (%v)", name, got, bad, err)
			}
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error { return table.SetBankCode(tx, banks[0].Code, "hubtle", "1") })
		if got := fields(err); got != "provider" {
			t.Errorf("a bank's code at nobody: %v", err)
		}
	})
}

// If a provider is removed from the program, an operator can remove or correct the routes that name it.
func TestRoutes_removedProviderIsCleanedUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		before := route.New(d, c, slog.New(slog.DiscardHandler), []string{"gone", "hubtel"}, nil)
		table := node(t, d, c)
		write(t, d, func(tx *db.Tx) error {
			err := before.Pause(tx, route.Pause{Mode: "test", Provider: "gone", Operation: route.Collect, Reason: "outage", Actor: "ama"})
			for _, tenant := range []string{"t1", route.Any} {
				err = errors.Join(err, before.SetRoute(tx, route.Route{Tenant: tenant, Mode: "test", Operation: route.Collect, Channel: "MTN", Providers: []string{"gone"}, Actor: "ama"}))
			}
			return errors.Join(err, before.SetRoute(tx, route.Route{Tenant: route.Any, Mode: route.Any, Operation: route.Collect, Channel: "MTN", Providers: []string{"gone"}, Actor: "ama"}))
		})
		c.Advance(time.Second)
		if got := names(t, table, route.Collect, "MTN", "t1"); got != "not_served" {
			t.Fatalf("a route to nobody: %s", got)
		}
		drop := func(tenant, mode string) (dropped bool, err error) {
			err = d.Write(t.Context(), func(tx *db.Tx) error {
				dropped, err = table.DropRoute(tx, tenant, mode, route.Collect, "MTN")
				return err
			})
			return dropped, err
		}
		for _, tenant := range []string{"t1", route.Any} {
			if dropped, err := drop(tenant, "test"); err != nil || !dropped {
				t.Errorf("the route of %s: %v, %v", tenant, dropped, err)
			}
			if dropped, err := drop(tenant, "test"); err != nil || dropped {
				t.Errorf("again the route of %s: %v, %v", tenant, dropped, err)
			}
		}
		// A default route cannot be dropped, because the next start would store it again.
		if _, err := drop(route.Any, route.Any); fields(err) != "tenant" {
			t.Errorf("a default was dropped: %v", err)
		}
		write(t, d, func(tx *db.Tx) error {
			return table.SetRoute(tx, route.Route{Tenant: route.Any, Mode: route.Any, Operation: route.Collect, Channel: "MTN", Providers: []string{"mtn"}, Actor: "ama"})
		})
		if got := names(t, table, route.Collect, "MTN", "t1"); got != "mtn" {
			t.Errorf("corrected: %s", got)
		}

		resume := func(name string, op route.Operation) (was bool, err error) {
			err = d.Write(t.Context(), func(tx *db.Tx) error {
				was, err = table.Resume(tx, "test", name, op)
				return err
			})
			return was, err
		}
		if was, err := resume("gone", route.Collect); err != nil || !was {
			t.Errorf("resume who has gone: %v, %v", was, err)
		}
		for name, bad := range map[string]string{"gone": "provider", "hubtle": "provider", "hubtel": "", "unused": ""} {
			if was, err := resume(name, route.Any); was || fields(err) != bad {
				t.Errorf("resume %s, of which nothing is paused: %v, %v", name, was, err)
			}
		}
	})
}

func TestPause_reachesEveryNode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		a, b := node(t, d, c), node(t, d, c)
		if got := names(t, b, route.Collect, "MTN", "t1"); got != "mtn,hubtel" {
			t.Fatal(got)
		}
		write(t, d, func(tx *db.Tx) error {
			return a.Pause(tx, route.Pause{Mode: "test", Provider: "mtn", Operation: route.Collect, Reason: "maintenance", Actor: "ama"})
		})
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Errorf("the node that paused: %s", got)
		}
		c.Advance(time.Second)
		if got := names(t, b, route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Errorf("the other node a second later: %s", got)
		}
		if got := names(t, b, route.DisburseWallet, "MTN", "t1"); got != "mtn,hubtel" {
			t.Errorf("another operation: %s", got)
		}
		write(t, d, func(tx *db.Tx) error {
			return a.Pause(tx, route.Pause{Mode: "test", Provider: "hubtel", Operation: route.Any, Reason: "audit", Actor: "ama"})
		})
		if _, _, err := a.Choose(t.Context(), route.Collect, "MTN", "t1", "test"); !problem.Is(err, problem.Unavailable) || problem.From(err).RetryAfter < time.Second {
			t.Errorf("everything paused: %v", err)
		}
		list, err := a.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		paused := 0
		for _, s := range list {
			if s.Provider == "mtn" && s.Operation == route.DisburseBank {
				t.Error("the list has payouts to banks of a provider without bank codes")
			}
			if s.Paused != nil {
				paused++
				if s.Paused.Actor != "ama" || s.Paused.Reason == "" {
					t.Errorf("paused by %+v", s.Paused)
				}
			}
		}
		if paused != 1+8+1 { // one operation of mtn, eight of hubtel, and the pause of everything
			t.Errorf("%d paused of %+v", paused, list)
		}
		write(t, d, func(tx *db.Tx) error {
			for _, name := range []string{"mtn", "hubtel"} {
				if was, err := a.Resume(tx, "test", name, route.Any); err != nil || !was {
					return fmt.Errorf("resume %s: %v, %w", name, was, err)
				}
			}
			return nil
		})
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "mtn,hubtel" {
			t.Errorf("resumed: %s", got)
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			return a.Pause(tx, route.Pause{Mode: "test", Provider: "mtn", Operation: "everything"})
		})
		if !problem.Is(err, problem.Invalid) {
			t.Errorf("a pause of nothing: %v", err)
		}
	})
}

func TestExchanges_storedAndPruned(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		table := node(t, d, c)
		const payment, reference = "019a0000-0000-7000-8000-000000000001", "0b9e1c9e-8f1d-4c7b-9d53-0c4f9a8e7d21"
		for i := range 700 {
			e := provider.Exchange{At: start.Add(time.Duration(i) * time.Minute), Took: 1500 * time.Microsecond, Provider: "hubtel", Mode: "test",
				Operation: "collect", Method: "POST", URL: "http://x/", Status: 200, Request: "a\x00b\xff", Answer: `{"x":1}`, Written: true}
			if i%7 == 0 {
				e.Payment, e.Reference = payment, reference
			}
			table.Record(e)
		}
		if err := table.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := table.Exchanges(t.Context(), payment)
		if err != nil || len(list) != 100 {
			t.Fatalf("%d exchanges, %v", len(list), err)
		}
		e := list[0]
		if e.Request != "ab" || e.Took != 1500*time.Microsecond || !e.At.Equal(start) || !e.Written || e.Status != 200 ||
			e.Payment != payment || e.Reference != provider.PlainReference(reference) {
			t.Errorf("kept as %+v", e)
		}
		latest, err := table.LatestExchanges(t.Context(), 3)
		if err != nil || len(latest) != 3 || !latest[0].At.Equal(start.Add(699*time.Minute)) {
			t.Errorf("latest %+v, %v", latest, err)
		}
		n, err := table.Prune(t.Context(), start.Add(600*time.Minute))
		if err != nil || n != 600 {
			t.Errorf("pruned %d, %v", n, err)
		}
		if list, _ := table.LatestExchanges(t.Context(), 1000); len(list) != 100 {
			t.Errorf("%d left", len(list))
		}
	})
}

func TestRecord_neverBlocks(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	table := route.New(d, clock.NewManual(start), slog.New(slog.DiscardHandler), nil, nil) // no loop stores the recorded exchanges
	for range 5000 {
		table.Record(provider.Exchange{})
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(table.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "makola_provider_exchanges_dropped_total" {
			if got := f.Metric[0].Counter.GetValue(); got != 5000-4096 {
				t.Errorf("%v dropped", got)
			}
			return
		}
	}
	t.Error("no metric of what was dropped")
}

func TestCatalogue_changeIsReadBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		table := node(t, d, c)
		networks, err := table.Networks(t.Context())
		if err != nil || len(networks) != 3 || networks[0].Network != msisdn.MTN || networks[0].Status != route.Active {
			t.Fatalf("networks %+v, %v", networks, err)
		}
		services, err := table.Services(t.Context())
		if err != nil || len(services) != 4 || services[0].Name != "MTN Data Bundle" || services[0].Key != "mtn_data" {
			t.Fatalf("services %+v, %v", services, err)
		}
		all, err := table.Catalogue(t.Context())
		banks := all.Banks
		if err != nil || len(banks) != 26 || !slices.IsSortedFunc(banks, func(a, b route.Bank) int { return strings.Compare(a.Name, b.Name) }) {
			t.Fatalf("%d banks, %v", len(banks), err)
		}
		// The ids are the same in every installation, because clients store them.
		if got := networks[0].ID; got != "6b00ad28-c662-51e0-87bc-c3b2f7bc5473" {
			t.Errorf("MTN's id is %s", got)
		}
		reached := 0
		for _, b := range banks {
			if b.Codes["hubtel"] != "" {
				reached++
			}
			if found, ok, err := table.Bank(t.Context(), b.ID); err != nil || !ok || found.Code != b.Code {
				t.Errorf("%s by id: %+v, %v, %v", b.Name, found, ok, err)
			}
		}
		if reached != 24 {
			t.Errorf("Hubtel reaches %d banks", reached)
		}
		// Clients see only the banks that a provider can pay.
		if served, err := table.Banks(t.Context(), "t1", "test"); err != nil || len(served) != 24 || slices.ContainsFunc(served, func(b route.Bank) bool { return b.Codes["hubtel"] == "" }) {
			t.Errorf("%d banks are listed, %v", len(served), err)
		}
		if served, err := table.Banks(t.Context(), "t1", "live"); err != nil || len(served) != 0 {
			t.Errorf("%d banks are listed where there is no rail, %v", len(served), err)
		}

		write(t, d, func(tx *db.Tx) error {
			return errors.Join(
				table.EditNetwork(tx, msisdn.MTN, route.Edit{ID: "network-of-old", Status: route.Inactive}),
				table.EditNetwork(tx, msisdn.Telecel, route.Edit{ID: "0198C0DE-0000-7000-8000-00000000ABCD"}),
				table.EditService(tx, "mtn_broadband", route.Edit{Status: route.Inactive}),
				table.EditBank(tx, "390100", route.Edit{Name: "GHL"}),
				table.SetBankCode(tx, "090100", "hubtel", "300308"),
				table.SetPrefix(tx, "0553", msisdn.Telecel),
				table.SetPrefix(tx, "027", ""),
			)
		})
		again := node(t, d, c)
		n, ok, err := again.Network(t.Context(), "network-of-old")
		if err != nil || !ok || n.Network != msisdn.MTN || n.Name != "MTN" || n.Status != route.Inactive {
			t.Errorf("edited network %+v, %v, %v", n, ok, err)
		}
		if _, ok, err := again.Network(t.Context(), "0198c0de-0000-7000-8000-00000000abcd"); err != nil || !ok {
			t.Errorf("an id that was given in capitals: %v, %v", ok, err)
		}
		if served, err := again.Banks(t.Context(), "t1", "test"); err != nil || len(served) != 25 {
			t.Errorf("%d banks are listed after one was given a code, %v", len(served), err)
		}
		if list, _ := again.Services(t.Context()); len(list) != 3 {
			t.Errorf("services %+v", list)
		}
		if s, ok, _ := again.Service(t.Context(), services[3].ID); !ok || s.Status != route.Inactive {
			t.Errorf("an inactive service is still found: %+v, %v", s, ok)
		}
		for number, want := range map[msisdn.MSISDN]msisdn.Network{
			"233553000000": msisdn.Telecel, "233554000000": msisdn.MTN, "233270000000": "", "233280000000": "", "233200000000": msisdn.Telecel,
		} {
			got, ok, err := again.LikelyNetwork(t.Context(), number)
			if err != nil || got != want || ok != (want != "") {
				t.Errorf("%s is likely %q, %v, %v", number, got, ok, err)
			}
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error { return table.EditBank(tx, "999999", route.Edit{Name: "x"}) })
		if !problem.Is(err, problem.NotFound) {
			t.Errorf("an unknown bank: %v", err)
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			return table.EditNetwork(tx, msisdn.MTN, route.Edit{ID: "a/b", Status: "gone"})
		})
		if !problem.Is(err, problem.Invalid) {
			t.Errorf("a bad edit: %v", err)
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			return table.EditNetwork(tx, msisdn.Telecel, route.Edit{ID: "network-of-old"})
		})
		if !errors.Is(err, db.ErrUnique) {
			t.Errorf("an id that is taken: %v", err)
		}
	})
}
