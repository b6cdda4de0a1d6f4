package senderid

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

var morning = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// fixture is a store with the tenants "shop" and "neighbour".
type fixture struct {
	*Store
	t     *testing.T
	clock *clock.Clock
}

func open(t *testing.T, d *db.DB, quotas config.Quotas) *fixture {
	t.Helper()
	f := node(t, d, quotas)
	for _, id := range []string{"shop", "neighbour"} {
		f.write(func(tx *db.Tx) error {
			_, err := f.tenants.Create(tx, tenant.Tenant{ID: id, Name: id, Mode: tenant.Live})
			return err
		})
	}
	return f
}

// node returns the store of a separate node.
func node(t *testing.T, d *db.DB, quotas config.Quotas) *fixture {
	c := clock.NewManual(morning)
	return &fixture{New(d, tenant.New(d, ledger.New(d, c, "one"), c), idempotency.NewAnswers(d, c), c, quotas), t, c}
}

func (f *fixture) write(fn func(*db.Tx) error) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) ask(name string) (Sender, error) {
	n, _, err := f.Request(f.t.Context(), idempotency.Caller{Tenant: "shop"}, name, "our shop")
	return n, err
}

func (f *fixture) review(id string, to Status, reason string) error {
	return f.db.Write(f.t.Context(), func(tx *db.Tx) error {
		_, err := f.Review(tx, "shop", id, to, reason, "a tester")
		return err
	})
}

func (f *fixture) usable(id string) bool {
	f.t.Helper()
	_, err := f.Usable(f.t.Context(), "sender_id", "shop", id)
	if err != nil && !problem.Is(err, problem.Invalid) {
		f.t.Fatal(err)
	}
	return err == nil
}

func TestSenderID_usableOnceApproved(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		first, err := f.ask(" Adum & Co ")
		if err != nil || first.Name != "Adum & Co" || first.Status != Pending {
			t.Fatalf("%+v, %v", first, err)
		}
		_, err = f.ask("ADUM & co")
		if p := problem.From(err); !problem.Is(err, problem.Duplicate) || !strings.Contains(p.Message, "already requested this sender id") {
			t.Errorf("asked twice: %v", err)
		}
		if err := f.review(first.ID, Rejected, " "); !problem.Is(err, problem.Invalid) {
			t.Errorf("rejected without a reason: %v", err)
		}
		if err := f.review(first.ID, Rejected, "not your brand"); err != nil {
			t.Fatal(err)
		}
		if err := f.review(first.ID, Approved, ""); !problem.Is(err, problem.Duplicate) {
			t.Errorf("reviewed again: %v", err)
		}
		if err := f.review("nobody's", Approved, ""); !problem.Is(err, problem.NotFound) {
			t.Errorf("an unknown sender ID is reviewed: %v", err)
		}
		again, err := f.ask("Adum & Co") // a rejected name may be requested again
		if err != nil {
			t.Fatal(err)
		}
		kejetia, err := f.ask("Kejetia")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.review(kejetia.ID, Approved, ""); err != nil {
			t.Fatal(err)
		}
		if f.usable(first.ID) || f.usable(again.ID) || !f.usable(kejetia.ID) {
			t.Errorf("usable: rejected %v, pending %v, approved %v", f.usable(first.ID), f.usable(again.ID), f.usable(kejetia.ID))
		}
		if _, err := f.Usable(t.Context(), "sender_id", "neighbour", kejetia.ID); !problem.Is(err, problem.Invalid) {
			t.Errorf("usable for another tenant: %v", err)
		}
		if waiting, err := f.Waiting(t.Context(), 10); err != nil || len(waiting) != 1 || waiting[0].ID != again.ID {
			t.Errorf("waiting are %+v, %v", waiting, err)
		}
		list, err := f.List(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range list {
			got = append(got, n.Name+" "+string(n.Status)+" "+n.Reason)
		}
		if g := strings.Join(got, "; "); g != "Kejetia approved ; Adum & Co pending ; Adum & Co rejected not your brand" {
			t.Errorf("the list is %s", g)
		}
		// The same name at another tenant is another sender ID.
		if _, _, err := f.Request(t.Context(), idempotency.Caller{Tenant: "neighbour"}, "Adum & Co", ""); err != nil {
			t.Error(err)
		}
	})
}

func TestReview_reachesNodesInASecond(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		other := node(t, d, config.Quotas{})
		asked, err := f.ask("Kejetia")
		if err != nil {
			t.Fatal(err)
		}
		if f.usable(asked.ID) || other.usable(asked.ID) {
			t.Error("usable before the review")
		}
		if err := f.review(asked.ID, Approved, ""); err != nil {
			t.Fatal(err)
		}
		if !f.usable(asked.ID) {
			t.Error("the node that reviewed it does not know")
		}
		other.clock.Advance(time.Second)
		if !other.usable(asked.ID) {
			t.Error("another node does not know after a second")
		}
	})
}

func TestRequest_concurrentIsOneSenderID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		var wait sync.WaitGroup
		var made atomic.Int64
		for range 8 {
			wait.Go(func() {
				if _, err := f.ask("Bantama"); err == nil {
					made.Add(1)
				} else if !problem.Is(err, problem.Duplicate) {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if n := made.Load(); n != 1 {
			t.Errorf("%d sender IDs were made", n)
		}
	})
}

func TestRequest_idempotencyKeyReplays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{Senders: 1})
		caller := idempotency.Caller{Tenant: "shop", IdempotencyKey: "key", BodyHash: "body"}
		first, _, err := f.Request(t.Context(), caller, "Adum", "receipts")
		if err != nil {
			t.Fatal(err)
		}
		again, replayed, err := f.Request(t.Context(), caller, "Adum", "receipts")
		if err != nil || !replayed || again != first {
			t.Errorf("%+v, replayed %v, %v, want %+v", again, replayed, err, first)
		}
	})
}

func TestRequest_refusedBeyondTheQuota(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{Senders: 1})
		refused := func(name, want string) {
			t.Helper()
			_, err := f.ask(name)
			if p := problem.From(err); err == nil || p.Kind != problem.Invalid || len(p.Fields["name"]) != 1 || !strings.Contains(p.Fields["name"][0], want) {
				t.Errorf("%s is answered %v, want %q", name, err, want)
			}
		}
		quota := func(q tenant.Quota) {
			f.write(func(tx *db.Tx) error {
				_, _, err := f.tenants.Set(tx, "shop", tenant.Change{Quotas: tenant.QuotaChange{Senders: &q}})
				return err
			})
		}
		made := func(name string) {
			t.Helper()
			if _, err := f.ask(name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		made("Adum")
		refused("Asafo", "at most 1 sender IDs")
		quota(2)
		made("Asafo")
		refused("Asokwa", "at most 2 sender IDs")
		quota(tenant.NoQuota)
		made("Asokwa")
		quota(tenant.InstallationQuota)
		refused("Ahinsan", "at most 1 sender IDs")
		if _, _, err := f.Request(t.Context(), idempotency.Caller{Tenant: "neighbour"}, "Adum", ""); err != nil {
			t.Errorf("a neighbour: %v", err)
		}
	})
}

func TestCreate_operatorSetsTheID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		create := func(tenant, id, name string) (made Sender, err error) {
			err = f.db.Write(t.Context(), func(tx *db.Tx) error {
				made, err = f.Create(tx, Sender{Tenant: tenant, ID: id, Name: name, Description: "our shop"}, "papers seen", "a tester")
				return err
			})
			return made, err
		}
		const id = "019F0000-0000-7000-8000-00000000000A"
		made, err := create("shop", id, " Kejetia ")
		if err != nil || made.ID != strings.ToLower(id) || made.Name != "Kejetia" || made.Status != Approved || made.Reviewer != "a tester" {
			t.Fatalf("%+v, %v", made, err)
		}
		if found, err := f.Find(t.Context(), made.ID); err != nil || found != made {
			t.Errorf("found %+v, %v, want %+v", found, err, made)
		}
		if !f.usable(made.ID) {
			t.Error("it is not usable")
		}
		for name, each := range map[string]struct {
			tenant, id, name string
			want             problem.Kind
		}{
			"an id that is taken":    {"neighbour", id, "Bantama", problem.Duplicate},
			"a name that is taken":   {"shop", "019f0000-0000-7000-8000-00000000000b", "KEJETIA", problem.Duplicate},
			"no UUID":                {"shop", "kejetia", "Bantama", problem.Invalid},
			"a reserved word":        {"shop", "019f0000-0000-7000-8000-00000000000c", "MTN", problem.Invalid},
			"a tenant that is not":   {"nobody", "019f0000-0000-7000-8000-00000000000d", "Bantama", problem.NotFound},
			"an id that was unknown": {"neighbour", "019f0000-0000-7000-8000-00000000000e", "Kejetia", ""},
		} {
			if _, err := create(each.tenant, each.id, each.name); each.want == "" && err != nil || each.want != "" && !problem.Is(err, each.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := f.Find(t.Context(), "nobody's"); !problem.Is(err, problem.NotFound) {
			t.Errorf("an unknown id: %v", err)
		}
	})
}
