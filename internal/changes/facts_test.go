package changes

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// without are the kinds that have no facts in addition to the account.
var without = []string{KindRotateSecret, KindReopen}

// A request of every kind has facts in addition to its sentence, and its approver sees each of them. Its sentence contains no id of
// an account or payment.
func TestFacts_ofEveryKind(t *testing.T) {
	for name, e := range allExamples() {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				x := &examples{fixture: install(t, d, nil, true), n: 1}
				x.boss = x.join("boss@example.com", roles.Owner)
				x.owner, x.admin = x.member("owner@adom.example", x.tenant.ID, roles.Owner), x.member("admin@adom.example", x.tenant.ID, roles.Admin)
				line, approver := Line{Kind: name, Approvers: 1}, x.first
				if e.own {
					line.Tenant, line.Own, approver = x.tenant.ID, true, x.admin
				}
				x.line(line)
				if slices.Contains(ofUnknown, name) {
					x.rail.pending = true
					x.payouts = x.unknown(1)
				} else if name == KindRefund || name == KindOperatorRefund {
					x.payouts = x.collected(1)
				} else if name == KindSendPayout {
					x.paying(1)
				} else {
					x.done(x.Treasury.Fund(t.Context(), x.tenant.ID, 100*money.Cedi, "before the test", "ama"))
				}
				x.clock.Advance(tenant.Freshness)
				request, err := e.ask(x, newID())
				x.done(err)
				if strings.Contains(request.Sentence, x.tenant.ID) {
					t.Errorf("the sentence has an id: %s", request.Sentence)
				}
				own := slices.DeleteFunc(slices.Clone(request.Facts.List), func(f Fact) bool { return strings.HasPrefix(f.Of, "account:") })
				if len(own) == 0 && !slices.Contains(without, name) {
					t.Error("the request has no facts")
				}
				seen, err := x.Review(t.Context(), approver.Place, request.ID)
				x.done(err)
				if seen.Refused != nil {
					t.Error(seen.Refused)
				}
				for _, f := range request.Facts.List {
					if !seen.Now.has(f) {
						t.Errorf("the approver does not see %+v", f)
					}
				}
			})
		})
	}
}

// Sentences about accounts with similar names contain the end of the id and have a warning. Sentences about other accounts have
// neither.
func TestNearNames_areWarnedOf(t *testing.T) {
	each(t, func(f *fixture) {
		twin := f.shop("ADOM Store")
		f.shop("Kejetia Traders")
		f.clock.Advance(tenant.Freshness)
		request, err := f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, 700*money.Cedi, "paid by bank")
		if err != nil || !strings.Contains(request.Sentence, "Adom Stores (live, id …"+shortID(f.tenant.ID)+")") || !warned(request.Facts, "ADOM Store (id …"+shortID(twin.ID)+")") {
			t.Fatalf("%s: %+v, %v", request.Sentence, request.Facts, err)
		}
		if warned(request.Facts, "Kejetia") {
			t.Error("another name is warned of")
		}
	})
}

// The audit log has the facts that an approver saw as keyed hashes. A person with only the log cannot guess the texts by
// trying.
func TestShown_isKeyed(t *testing.T) {
	each(t, func(f *fixture) {
		f.shop("ADOM Store")
		f.clock.Advance(tenant.Freshness)
		request, err := f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, 700*money.Cedi, "paid by bank")
		if err != nil {
			t.Fatal(err)
		}
		seen, err := f.Review(t.Context(), roles.Installation, request.ID)
		if err != nil || len(seen.Now.Warnings()) == 0 {
			t.Fatalf("%+v, %v", seen.Now, err)
		}
		f.ShownKey = []byte("another key")
		other, err := f.Review(t.Context(), roles.Installation, request.ID)
		if err != nil {
			t.Fatal(err)
		}
		one, two := strings.Split(seen.Shown, "."), strings.Split(other.Shown, ".")
		if len(one) != 3 || len(two) != 3 || one[0] != two[0] || one[1] == two[1] || one[2] == two[2] {
			t.Errorf("%s and %s", seen.Shown, other.Shown)
		}
		if _, err := f.Changes.Approve(t.Context(), f.first, request.ID, other.Shown); err != nil {
			t.Fatal(err)
		}
		log, err := f.log.List(t.Context(), audit.Filter{Action: KindFund, Subject: request.ID})
		details, marshalErr := json.Marshal(log)
		if err != nil || marshalErr != nil || len(log) != 1 || !strings.Contains(string(details), other.Shown) {
			t.Errorf("%s, %v", details, err)
		}
	})
}

// Two names can be mistaken for each other if they differ in one letter, or in two letters of a long name.
func TestMistakable_countsLetters(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Adom Stores", "ADOM-STORES", true}, {"Adom Stores", "Adom Store", true}, {"Adom Stores", "Adam Store", true}, {"Kofi", "Kofo", true}, {"ABC", "ABD", false},
		{"Adom Stores", "Kejetia Traders", false}, {"Shop 1", "Shop 22", false}, {"", "", true},
	} {
		if mistakable(letters(c.a), letters(c.b)) != c.want {
			t.Errorf("%q and %q", c.a, c.b)
		}
	}
}

// The text of a campaign is shown to its approver, and is stored only with the campaign or its draft, so that its retention
// reaches all of it.
func TestSendTexts_factsKeepNoText(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x := &examples{fixture: install(t, d, nil, true), n: 1}
		x.boss = x.join("boss@example.com", roles.Owner)
		x.owner, x.admin = x.member("owner@adom.example", x.tenant.ID, roles.Owner), x.member("admin@adom.example", x.tenant.ID, roles.Admin)
		x.line(Line{Kind: KindSendTexts, Approvers: 1, Tenant: x.tenant.ID, Own: true})
		x.done(x.Treasury.Fund(t.Context(), x.tenant.ID, 100*money.Cedi, "before the test", "ama"))
		x.clock.Advance(tenant.Freshness)
		ask := allExamples()[KindSendTexts].ask
		const text = "Hello"
		isIn := func(when string, want ...string) {
			t.Helper()
			if got := dbtest.Holding(t, d, text); !slices.Equal(got, want) {
				t.Errorf("%s: the text is in %v, not in %v", when, got, want)
			}
		}
		request, err := ask(x, newID())
		x.done(err)
		seen, err := x.Review(t.Context(), x.admin.Place, request.ID)
		x.done(err)
		if !slices.ContainsFunc(seen.Now.List, func(f Fact) bool { return f.Value == text }) {
			t.Errorf("the approver does not see the text: %+v", seen.Now)
		}
		isIn("awaiting approval", "text_drafts.message")
		_, err = x.Approve(t.Context(), x.admin, request.ID, seen.Shown)
		x.done(err)
		isIn("sent", "campaigns.message")
	})
}
