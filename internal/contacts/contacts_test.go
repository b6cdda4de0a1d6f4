package contacts

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
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

var shop = idempotency.Caller{Tenant: "shop"}

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

func (f *fixture) count(sql string, args ...any) (n int64) {
	f.t.Helper()
	if _, err := f.db.ReadOne(f.t.Context(), sql, args, &n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// group creates a group of the shop with contacts.
func (f *fixture) group(phones ...string) Group {
	f.t.Helper()
	g, _, err := f.AddGroup(f.t.Context(), shop, "customers", "")
	if err != nil {
		f.t.Fatal(err)
	}
	if added, _, err := f.AddContacts(f.t.Context(), shop, g.ID, people(phones...)); err != nil || added.New != len(phones) {
		f.t.Fatalf("%d of %d contacts were added: %v", added.New, len(phones), err)
	}
	return g
}

// people returns contacts without names.
func people(phones ...string) []NewContact {
	list := make([]NewContact, len(phones))
	for i, p := range phones {
		list[i].Phone = p
	}
	return list
}

func numbers(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("23324%07d", i)
	}
	return list
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

func TestContacts_otherTenantsAreHidden(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		ctx := t.Context()
		g := f.group("0241000001", "0241000002")
		added, _, err := f.AddContacts(ctx, idempotency.Caller{Tenant: "shop"}, g.ID, []NewContact{
			{Phone: "+233 24 100 0003", FirstName: " Ama ", LastName: "Mensah", Email: "ama@example.com"},
			{Phone: "0241000001"}, {Phone: "241000003"}, {Phone: "0302000000"}, {Phone: ""}, {Phone: "0241000004", FirstName: "a\x00b"},
		})
		if err != nil || added.New != 1 || added.Duplicates != 2 || len(added.Bad) != 3 || added.Bad[0].Row != 4 {
			t.Fatalf("%+v, %v", added, err)
		}
		groups, err := f.Groups(ctx, "shop")
		if err != nil || len(groups) != 1 || groups[0].Contacts != 3 || groups[0].Icon != DefaultIcon {
			t.Errorf("%+v, %v", groups, err)
		}
		page, total, err := f.Contacts(ctx, "shop", g.ID, 2, 2)
		if err != nil || total != 3 || len(page) != 1 || page[0].MSISDN != "233241000003" || page[0].FirstName != "Ama" {
			t.Fatalf("the second page is %+v of %d, %v", page, total, err)
		}
		ama := page[0]
		if page, _, err := f.Contacts(ctx, "shop", g.ID, 9, 2); err != nil || len(page) != 0 {
			t.Errorf("a page past the end: %+v, %v", page, err)
		}
		_, _, err = f.AddContact(ctx, idempotency.Caller{Tenant: "shop"}, g.ID, NewContact{Phone: "0241000003"})
		wantKind(t, err, problem.Duplicate)
		_, _, err = f.AddContact(ctx, idempotency.Caller{Tenant: "shop"}, g.ID, NewContact{Phone: "nobody"})
		wantKind(t, err, problem.Invalid)
		changed, err := f.UpdateContact(ctx, "shop", ama.ID, NewContact{LastName: "Owusu", Phone: "0241000009"})
		if err != nil || changed.FirstName != "Ama" || changed.LastName != "Owusu" || changed.MSISDN != "233241000009" {
			t.Errorf("%+v, %v", changed, err)
		}
		_, err = f.UpdateContact(ctx, "shop", ama.ID, NewContact{Phone: "0241000001"})
		wantKind(t, err, problem.Duplicate)
		renamed, err := f.UpdateGroup(ctx, "shop", g.ID, "buyers", "")
		if err != nil || renamed.Name != "buyers" || renamed.Icon != DefaultIcon {
			t.Errorf("%+v, %v", renamed, err)
		}

		for name, call := range map[string]func(tenant, id string) error{
			"update group": func(tenant, id string) error { _, err := f.UpdateGroup(ctx, tenant, id, "x", ""); return err },
			"delete group": func(tenant, id string) error { return f.DeleteGroup(ctx, tenant, id) },
			"contacts":     func(tenant, id string) error { _, _, err := f.Contacts(ctx, tenant, id, 1, 10); return err },
			"add contact": func(tenant, id string) error {
				_, _, err := f.AddContact(ctx, idempotency.Caller{Tenant: tenant}, id, NewContact{Phone: "0241000001"})
				return err
			},
			"update contact": func(tenant, id string) error {
				_, err := f.UpdateContact(ctx, tenant, contactOr(id, g.ID, ama.ID), NewContact{})
				return err
			},
			"delete contact": func(tenant, id string) error { return f.DeleteContact(ctx, tenant, contactOr(id, g.ID, ama.ID)) },
		} {
			if err := call("neighbour", g.ID); !problem.Is(err, problem.Forbidden) {
				t.Errorf("%s of somebody else: %v", name, err)
			}
			if err := call("shop", "019f0000-0000-7000-8000-000000000000"); !problem.Is(err, problem.NotFound) {
				t.Errorf("%s that is unknown: %v", name, err)
			}
		}
		if err := f.DeleteContact(ctx, "shop", ama.ID); err != nil {
			t.Fatal(err)
		}
		if _, total, _ := f.Contacts(ctx, "shop", g.ID, 1, 10); total != 2 {
			t.Errorf("the group has %d contacts, expected 2", total)
		}
		if err := f.DeleteGroup(ctx, "shop", g.ID); err != nil {
			t.Fatal(err)
		}
		if n := f.count("SELECT count(*) FROM contacts"); n != 0 {
			t.Errorf("%d contacts are left of a group that is gone", n)
		}
	})
}

func contactOr(id, group, contact string) string {
	if id == group {
		return contact
	}
	return id
}

func TestAdd_concurrentCountIsRight(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		g := f.group()
		var wait sync.WaitGroup
		for i := range 10 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				var list []NewContact
				for j := range 30 { // each list overlaps the next
					list = append(list, NewContact{Phone: fmt.Sprintf("024%07d", i*20+j)})
				}
				if _, _, err := f.AddContacts(t.Context(), idempotency.Caller{Tenant: "shop"}, g.ID, list); err != nil {
					t.Error(err)
				}
			}()
		}
		wait.Wait()
		_, total, err := f.Contacts(t.Context(), "shop", g.ID, 1, 1)
		if n := f.count("SELECT count(*) FROM contacts"); err != nil || n != 210 || total != 210 {
			t.Errorf("%d rows, %d counted, expected 210; %v", n, total, err)
		}
	})
}

// One key covers all sets of the request.
func TestAdd_longListInBatches(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		g := f.group()
		list := make([]NewContact, 2*atOnce+2)
		for i, phone := range numbers(len(list)) {
			list[i].Phone = phone
		}
		list[atOnce].Phone, list[atOnce+1].Phone = "nobody", list[0].Phone
		caller := idempotency.Caller{Tenant: "shop", IdempotencyKey: "key", BodyHash: "hash"}
		for _, replay := range []bool{false, true} {
			added, replayed, err := f.AddContacts(t.Context(), caller, g.ID, list)
			if err != nil || replayed != replay || added.New != len(list)-2 || added.Duplicates != 1 || len(added.Bad) != 1 || added.Bad[0].Row != atOnce+1 {
				t.Errorf("replay %v: %d new, %d there, bad %+v, replayed %v, %v", replay, added.New, added.Duplicates, added.Bad, replayed, err)
			}
		}
		if n := f.count(`SELECT count(*) FROM contacts`); n != int64(len(list)-2) {
			t.Errorf("%d rows", n)
		}
	})
}

func TestAdd_refusedBeyondTheQuota(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{Contacts: 3, Groups: 2})
		refused := func(err error, field, want string) {
			t.Helper()
			p := problem.From(err)
			if err == nil || p.Kind != problem.Invalid || len(p.Fields[field]) != 1 || !strings.Contains(p.Fields[field][0], want) {
				t.Errorf("answered %v, want %s: %q", err, field, want)
			}
		}
		group := func(caller idempotency.Caller) error {
			_, _, err := f.AddGroup(t.Context(), caller, "a group", "")
			return err
		}
		add := func(g Group, phones ...string) error {
			_, _, err := f.AddContacts(t.Context(), shop, g.ID, people(phones...))
			return err
		}
		fits := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		first, second := f.group("0240000001", "0240000002"), f.group()
		refused(group(shop), "name", "at most 2 contact groups")
		refused(add(second, "0240000001", "0240000002"), "contacts", "at most 3 contacts")
		fits("contacts that are there already", add(first, "0240000001", "0240000002"))
		fits("the last contact", add(second, "0240000003"))
		_, _, err := f.AddContact(t.Context(), shop, second.ID, NewContact{Phone: "0240000004"})
		refused(err, "contacts", "at most 3 contacts")

		// The tenant's own quotas replace these.
		quotas := func(contacts, groups tenant.Quota) {
			f.write(func(tx *db.Tx) error {
				_, _, err := f.tenants.Set(tx, "shop", tenant.Change{Quotas: tenant.QuotaChange{Contacts: &contacts, Groups: &groups}})
				return err
			})
		}
		quotas(4, 3)
		fits("a third group", group(shop))
		refused(group(shop), "name", "at most 3 contact groups")
		fits("a fourth contact", add(second, "0240000004"))
		refused(add(second, "0240000005"), "contacts", "at most 4 contacts")
		_, err = f.file(second.ID, "0240000005\n", nil)
		refused(err, "contacts", "at most 4 contacts")
		quotas(tenant.NoQuota, tenant.InstallationQuota)
		fits("contacts without a quota", add(second, "0240000005", "0240000006"))
		refused(group(shop), "name", "at most 2 contact groups")
		fits("a neighbour's group", group(idempotency.Caller{Tenant: "neighbour"}))
	})
}

// answer is the answer to a request.
type answer struct {
	made     any
	replayed bool
	err      error
}

func answered[T any](made T, replayed bool, err error) answer { return answer{made, replayed, err} }

func TestAdd_idempotencyKeyReplays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		g := f.group()
		for name, ask := range map[string]func(idempotency.Caller) answer{
			"group": func(c idempotency.Caller) answer { return answered(f.AddGroup(t.Context(), c, "Customers", "")) },
			"contact": func(c idempotency.Caller) answer {
				return answered(f.AddContact(t.Context(), c, g.ID, NewContact{Phone: "0241000001", FirstName: "Ama"}))
			},
			"contacts": func(c idempotency.Caller) answer {
				return answered(f.AddContacts(t.Context(), c, g.ID, people("0241000002", "0241000002", "nobody")))
			},
		} {
			caller := idempotency.Caller{Tenant: "shop", IdempotencyKey: "key of " + name, BodyHash: "body"}
			answers := make([]answer, 4) // at once
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = ask(caller) })
			}
			all.Wait()
			firsts := 0
			for _, a := range append(answers, ask(caller)) {
				if !a.replayed {
					firsts++
				}
				if a.err != nil || !reflect.DeepEqual(a.made, answers[0].made) {
					t.Errorf("%s: %+v, another has %+v", name, a, answers[0])
				}
			}
			if firsts != 1 {
				t.Errorf("%s was done %d times", name, firsts)
			}
		}
		if n := f.count(`SELECT count(*) FROM contact_groups`); n != 2 {
			t.Errorf("%d groups", n)
		}
	})
}

func TestAdd_keyReplaysAfterDeletion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		caller := idempotency.Caller{Tenant: "shop", IdempotencyKey: "key", BodyHash: "body"}
		made, _, err := f.AddGroup(t.Context(), caller, "Customers", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.DeleteGroup(t.Context(), "shop", made.ID); err != nil {
			t.Fatal(err)
		}
		if again, replayed, err := f.AddGroup(t.Context(), caller, "Customers", ""); err != nil || !replayed || again != made {
			t.Errorf("%+v, replayed %v, %v, want %+v", again, replayed, err, made)
		}
	})
}

func TestCreateGroup_operatorSetsTheID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		create := func(tenant, id, name string) (made Group, err error) {
			err = f.db.Write(t.Context(), func(tx *db.Tx) error {
				made, err = f.CreateGroup(tx, tenant, id, name)
				return err
			})
			return made, err
		}
		const id = "019F0000-0000-7000-8000-00000000000A"
		made, err := create("shop", id, " Customers ")
		if err != nil || made.ID != strings.ToLower(id) || made.Name != "Customers" || made.Icon != DefaultIcon {
			t.Fatalf("%+v, %v", made, err)
		}
		if groups, err := f.Groups(t.Context(), "shop"); err != nil || len(groups) != 1 || groups[0] != made {
			t.Errorf("the groups are %+v, %v", groups, err)
		}
		for name, each := range map[string]struct {
			tenant, id, name string
			want             problem.Kind
		}{
			"an id that is taken": {"neighbour", id, "Customers", problem.Duplicate},
			"no UUID":             {"shop", "customers", "Customers", problem.Invalid},
			"no name":             {"shop", "019f0000-0000-7000-8000-00000000000b", " ", problem.Invalid},
			"an unknown tenant":   {"nobody", "019f0000-0000-7000-8000-00000000000c", "Customers", problem.NotFound},
		} {
			if _, err := create(each.tenant, each.id, each.name); !problem.Is(err, each.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
