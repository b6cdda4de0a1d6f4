package notice

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/mailtest"
)

// Each event has a topic and a title. Some role can see it, and the end of a condition is also an event.
func TestEvents_tableIsWhole(t *testing.T) {
	for e, r := range eventRules {
		if topicRules[r.topic].title == "" || r.one == "" || r.own == (r.needs != "") {
			t.Errorf("%s: %+v", e, r)
		}
		if _, there := eventRules[r.over]; r.over != "" && !there {
			t.Errorf("%s ends as %s, which is no event", e, r.over)
		}
		if strings.Contains(r.many, "%d") == (r.many == "") {
			t.Errorf("%s: %q", e, r.many)
		}
	}
	for _, all := range []map[string]Event{requestEvents, ownEvents, appliedEvents} {
		for action, e := range all {
			if _, there := eventRules[e]; !there {
				t.Errorf("%s leads to %s, which is no event", action, e)
			}
		}
	}
}

// Entries of the audit log become facts in the same transaction: a changed factor for its person, a key for the account, and
// break-glass for the installation.
func TestFollow_makesFactsOfEntries(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := node(t, d, mailtest.Start(t, nil), clock.Real()).start()
		ama := f.person("ama@pay.example", roles.Owner)
		esi := f.person("esi@pay.example", roles.Support)
		f.requests["r1"] = Request{Title: "Role of a person", Requester: "ama@pay.example", RequesterID: ama, About: "esi@pay.example"}
		log := audit.New(d, f.Clock).Followed(Follow)
		write := func(e audit.Entry) {
			t.Helper()
			if err := log.Record(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		write(audit.Entry{Actor: "esi@pay.example", Person: esi, Origin: "198.51.100.4", Action: "person.factor"})
		write(audit.Entry{Actor: audit.BreakGlass + "root", Action: "wallet.fund", Reason: "an emergency"})
		write(audit.Entry{Actor: "kofi@pay.example", Person: "kofi", Action: "people.role", Details: map[string]any{"act": "r1", "kind": "people.role"}})
		write(audit.Entry{Actor: "ama@pay.example", Person: ama, Action: "numbers.search"})
		f.work()
		f.until("the mails", func() bool { return f.states()[Sent] == 2 })
		got := map[string]string{}
		for _, m := range f.server.Mails() {
			got[m.To] += m.Subject + "\n" + m.Body
		}
		want := map[string][]string{
			"<esi@pay.example>": {"Your second factor", "from 198.51.100.4", "A person or a role was changed", "Role of a person"},
			"<ama@pay.example>": {"--break-glass", "wallet.fund by break-glass:root: an emergency"},
		}
		for to, texts := range want {
			for _, text := range texts {
				if !strings.Contains(got[to], text) {
					t.Errorf("%s lacks %q: %s", to, text, got[to])
				}
			}
		}
		if strings.Contains(got["<ama@pay.example>"], "second factor") || strings.Contains(got["<esi@pay.example>"], "break-glass:") {
			t.Errorf("somebody learns of what the role may not see: %v", slices.Sorted(maps.Values(got)))
		}
	})
}
