package batch

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// Names with the same words in any order are the same. They are near if they differ by an initial, a letter or a missing word, and
// otherwise different.
func TestNames_compare(t *testing.T) {
	for _, each := range []struct {
		given, registered string
		want              NameState
	}{
		{"Ama Mensah", "MENSAH AMA", NameSame}, {"Mr. Kofi Boateng", "KOFI BOATENG", NameSame}, {"Ama Serwaa-Mensah", "AMA SERWAA MENSAH", NameSame},
		{"Ama Mensah", "AMA SERWAA MENSAH", NameNear}, {"A. Mensah", "AMA MENSAH", NameNear}, {"Ama Mensa", "AMA MENSAH", NameNear}, {"Ama", "AMA MENSAH", NameNear}, {"Kwame Boatang", "KWAME BOATENG", NameNear},
		{"Ama Mensah", "KOFI MENSAH", NameDifferent}, {"Ama Mensah", "ESI BOATENG", NameDifferent}, {"A M", "AMA MENSAH", NameDifferent}, {"Ama", "AMMA", NameDifferent},
		{"", "AMA MENSAH", NameFound}, {"Ama Mensah", "", NameUnknown}, {"Nana", "NANA", NameSame},
	} {
		if is := compareNames(each.given, each.registered); is != each.want {
			t.Errorf("%q and %q are %s, want %s", each.given, each.registered, is, each.want)
		}
	}
}

// names answers lookups according to the last digit of the account.
func names(party string) (string, provider.Outcome) {
	accepted := provider.Outcome{Class: provider.Accepted}
	switch party[len(party)-1] {
	case '1':
		return "PERSON 1", accepted
	case '2':
		return "ESI BOATENG", accepted
	case '3':
		return "", provider.Outcome{Class: provider.Rejected, Clear: true, Reason: provider.ReasonPayeeNotFound}
	}
	return "PERSON OTHER", accepted
}

// named uploads three rows to wallets.
func (n *node) named(name string) Batch {
	n.f.t.Helper()
	b, err := n.upload(name, "Name,Number,Network,Amount\nPerson,0240000001,MTN,10\nPerson,0240000002,MTN,20\nPerson,0240000003,MTN,30\nPerson,0240000004,MTN,40\n")
	if err != nil {
		n.f.t.Fatal(err)
	}
	return b
}

// Registered names are looked up at a limited rate and compared, and the payouts get them. If a node dies, another node continues.
func TestNames_lookedUpAndPaid(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.banks, f.bank.name = true, names
		first := f.stopped("a")
		b := first.named("Salaries")
		if err := first.AskNames(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		_, err := first.Freeze(t.Context(), b.Tenant, b.ID, "")
		wantCode(t, err, "names_pending")
		wantCode(t, first.AskNames(t.Context(), b.Tenant, b.ID, nil), "names_pending")
		n := f.node("b") // the first node never ran its job
		n.pass(10 * time.Second)
		c, err := n.Count(t.Context(), n.is(b.ID))
		if err != nil || c.Names[NameSame]+c.Names[NameNear] != 2 || c.Names[NameDifferent] != 1 || c.Names[NameUnknown] != 1 || n.is(b.ID).LooksUp() || f.bank.asked != 4 {
			t.Fatalf("%+v after %d lookups (%v)", c, f.bank.asked, err)
		}
		rows, err := n.Differing(t.Context(), b, 10)
		if err != nil || len(rows) != 3 || rows[0].Registered != "ESI BOATENG" || rows[0].Named != NameDifferent || rows[1].Named != NameUnknown {
			t.Fatalf("%+v (%v)", rows, err)
		}
		n.tallied(b.ID)
		if row, err := n.Mend(t.Context(), b.Tenant, b.ID, 2, Given{Number: "0240000005", Network: "MTN", Amount: "20", Name: "Person"}); err != nil || row.Named != NameUnasked || row.Registered != "" {
			t.Errorf("%+v (%v)", row, err)
		}
		if b, err = n.Request(t.Context(), b.Tenant, b.ID, ""); err != nil {
			t.Fatal(err)
		}
		n.tallied(b.ID)
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		results, err := n.Results(t.Context(), b.Tenant, b.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		paid, err := n.payments.ByIDs(t.Context(), []string{results[0].Payment, results[2].Payment})
		if err != nil || paid[results[0].Payment].AccountName != "PERSON 1" || paid[results[2].Payment].AccountName != "Person" {
			t.Errorf("%+v (%v)", paid, err)
		}
		n.sound()
	})
}

// tallied compares the stored counts of a batch with its rows.
func (n *node) tallied(id string) {
	n.f.t.Helper()
	b := n.is(id)
	var real Counts
	if err := n.db.Read(n.f.t.Context(), func(tx *db.Tx) (err error) {
		real, err = countIn(tx, id)
		return err
	}); err != nil {
		n.f.t.Fatal(err)
	}
	kept := *b.tally
	for _, state := range []RowState{RowBad, RowReady, RowDropped} {
		if kept.Rows[state] != real.Rows[state] {
			n.f.t.Errorf("%d rows are %s, kept are %d", real.Rows[state], state, kept.Rows[state])
		}
	}
	for _, name := range []NameState{NameUnasked, NameSame, NameNear, NameDifferent, NameFound, NameUnknown, NameChanged} {
		if kept.Names[name] != real.Names[name] {
			n.f.t.Errorf("%d names are %q, kept are %d", real.Names[name], name, kept.Names[name])
		}
	}
	if kept.Amount != real.Amount || kept.Charges != real.Charges || kept.Unnamed != real.Unnamed {
		n.f.t.Errorf("kept are %+v, counted %+v", kept, real)
	}
}

// If a name changes at the provider between the request and its approval, the batch is refused. The next draft has the new name.
func TestNames_changedBeforeApproval(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.banks, f.bank.name = true, names
		n := f.node("a")
		b := n.named("Salaries")
		if err := n.AskNames(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		b, err := n.Request(t.Context(), b.Tenant, b.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		n.pass(nameFresh + time.Minute)
		wantCode(t, n.start(b), "names_pending") // the names are too old, so they are looked up again
		n.pass(10 * time.Second)
		f.bank.set(func(party string) (string, provider.Outcome) {
			if strings.HasSuffix(party, "1") {
				return "KOFI BADU", provider.Outcome{Class: provider.Accepted}
			}
			return names(party)
		})
		n.pass(nameFresh + time.Minute)
		wantCode(t, n.start(b), "names_pending")
		n.pass(10 * time.Second)
		wantCode(t, n.start(b), "changed_since")
		n.tallied(b.ID)
		if rows, err := n.Differing(t.Context(), b, 1); err != nil || rows[0].Named != NameChanged || rows[0].Registered != "PERSON 1" {
			t.Errorf("%+v (%v)", rows, err)
		}
		if err := n.db.Write(t.Context(), func(tx *db.Tx) error { return n.Withdraw(tx, b.Tenant, b.ID) }); err != nil {
			t.Fatal(err)
		}
		if err := n.AskNames(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		if rows, err := n.Rows(t.Context(), b.Tenant, b.ID, 1); err != nil || rows[0].Registered != "KOFI BADU" || rows[0].Named != NameDifferent {
			t.Errorf("%+v (%v)", rows[0], err)
		}
		n.tallied(b.ID)
		n.sound()
	})
}

// An account may look up a limited number of names a day. The other names are looked up the next day.
func TestNames_dailyCap(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.banks = true
		n := f.node("a")
		n.maxLookups = 30
		b, err := n.upload("Salaries", file(50))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.AskNames(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Hour)
		if f.bank.asked != 30 || !n.is(b.ID).LooksUp() {
			t.Errorf("%d names were looked up", f.bank.asked)
		}
		n.pass(24 * time.Hour)
		if f.bank.asked != 50 || n.is(b.ID).LooksUp() {
			t.Errorf("%d names were looked up the next day", f.bank.asked)
		}
		n.tallied(b.ID)
	})
}

// A row to a bank account is never requested without its registered name. The lookup starts automatically.
func TestNames_bankNeedsName(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.banks, f.bank.name = true, names
		n := f.node("a")
		banks, err := n.Banks(t.Context(), f.tenant.ID)
		if err != nil {
			t.Fatal(err)
		}
		b, err := n.upload("Suppliers", "number,bank,amount,name\n0011220031,"+banks[0].Name+",10,Person\n0011220033,"+banks[0].Name+",20,Person\n0241234567,MTN,30,Esi\n")
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.Request(t.Context(), b.Tenant, b.ID, "")
		wantCode(t, err, "names_pending")
		n.pass(10 * time.Second)
		_, err = n.Request(t.Context(), b.Tenant, b.ID, "")
		wantCode(t, err, "names_unknown")
		if err := n.Drop(t.Context(), b.Tenant, b.ID, 2); err != nil {
			t.Fatal(err)
		}
		n.tallied(b.ID)
		if b, err = n.Request(t.Context(), b.Tenant, b.ID, ""); err != nil || f.bank.asked != 2 {
			t.Errorf("%d lookups (%v)", f.bank.asked, err)
		}
	})
}

// A provider that does not answer is queried again, and the lookup continues with the row without an answer.
func TestNames_providerSilent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.banks = true
		n := f.node("a")
		f.bank.set(func(string) (string, provider.Outcome) { return "", provider.Outcome{} })
		b := n.named("Salaries")
		if err := n.AskNames(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		n.pass(namesRetry)
		f.bank.set(names)
		n.pass(10 * time.Minute)
		if c, err := n.Count(t.Context(), n.is(b.ID)); err != nil || c.Names[NameDifferent] != 1 || n.is(b.ID).LooksUp() {
			t.Errorf("%+v (%v)", c, err)
		}
		if err := n.Discard(t.Context(), b.Tenant, b.ID); err != nil && !problem.Is(err, problem.Invalid) {
			t.Error(err)
		}
	})
}

// After every change of a draft its counts are correct.
func TestCounts_followEveryChange(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).node("a")
		paid := n.requested("Paid", file(5))
		if err := n.start(paid); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		b, err := n.upload("Salaries", file(8)+"Yaw,0241234569,,10\nEsi,,MTN,\nAdwoa,0201234569,,10\n")
		if err != nil {
			t.Fatal(err)
		}
		n.tallied(b.ID)
		for name, change := range map[string]func() error{
			"mend": func() error {
				_, err := n.Mend(t.Context(), b.Tenant, b.ID, 10, Given{Number: "0241234570", Network: "MTN", Amount: "3"})
				return err
			},
			"drop":   func() error { return n.Drop(t.Context(), b.Tenant, b.ID, 8) },
			"settle": func() error { _, err := n.Settle(t.Context(), b.Tenant, b.ID, "?024", "MTN"); return err },
			"keep":   func() error { _, err := n.KeepNew(t.Context(), b.Tenant, b.ID); return err },
			"erase": func() error {
				_, err := Erase(t.Context(), d, Named{Tenant: b.Tenant, Batch: b.ID, Line: 7})
				if err != nil {
					return err
				}
				return n.Drop(t.Context(), b.Tenant, b.ID, 11) // Drop counts the rows again
			},
		} {
			if err := change(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n.is(b.ID).tally != nil {
				n.tallied(b.ID)
			}
		}
		b, err = n.Request(t.Context(), b.Tenant, b.ID, "again")
		if err != nil {
			t.Fatal(err)
		}
		n.tallied(b.ID)
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if is := n.is(b.ID); is.Status != Finished || is.Accepted == 0 {
			t.Errorf("%s, %d accepted", is.Status, is.Accepted)
		}
		n.tallied(b.ID)
	})
}
