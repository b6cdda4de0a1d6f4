package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/identity"
)

func TestPayouts_foundAndShown(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		w.run(exitOK, "wallet", "fund", id, "100", "--reason", "bank slip", "--reference", "slip 1")
		first, second := w.stuck(t, id, "order-000000001"), w.stuck(t, id, "order-000000002")
		for _, text := range []string{first.ID, strings.ToUpper(first.ProviderReference), "order-000000001"} {
			has(t, w.object("payouts", "show", text), map[string]any{"id": first.ID, "customer": "Adom Stores", "account": "233241234567", "amount": "10.00",
				"held": "the provider has not reported an outcome in time, or its answer does not match: operators were alerted"})
		}
		shown := w.object("payouts", "show", first.ID)
		if next, err := time.Parse(time.RFC3339, shown["next_question_at"].(string)); err != nil || time.Until(next) < 0 || len(shown["transfers"].([]any)) != 1 {
			t.Errorf("shown is %v", shown)
		}
		for _, text := range []string{"024 123 4567", "+233241234567", "10", "GHS 10.00"} {
			if found := w.list("payouts", "find", text); len(found) != 2 || found[0]["id"] != second.ID {
				t.Errorf("%q finds %v", text, found)
			}
			if _, errs := w.run(exitUsage, "payouts", "show", text); !strings.Contains(errs, first.ID) || !strings.Contains(errs, second.ID) {
				t.Errorf("%q shows %s", text, errs)
			}
		}
		if found := w.list("payouts", "find", "0241234567", "--tenant", "adom stores", "--status", "failed"); len(found) != 0 {
			t.Errorf("failed ones are %v", found)
		}
		out, errs := w.run(exitOK, "payouts", "find", "10", "--limit", "1", "-o", "json")
		if strings.Count(out, `"id"`) != 1 || !strings.Contains(errs, "--before "+second.ID) {
			t.Errorf("one of them: %s%s", out, errs)
		}
		if found := w.list("payouts", "find", "10", "--before", second.ID); len(found) != 1 || found[0]["id"] != first.ID {
			t.Errorf("further: %v", found)
		}
		w.run(exitNotFound, "payouts", "show", "order-000000003")
		w.run(exitNotFound, "payouts", "find", "10", "--tenant", "nobody")
		w.run(exitUsage, "payouts", "find", "10", "--from", "yesterday")

		// The table is narrow and has the customer's name. --wide prints all columns.
		table, _ := w.run(exitOK, "payouts", "stuck")
		if !strings.Contains(table, "Adom Stores") || strings.Contains(table, "ATTEMPT REFERENCE") {
			t.Errorf("the table is\n%s", table)
		}
		if table, _ = w.run(exitOK, "payouts", "stuck", "--wide"); !strings.Contains(table, "ATTEMPT REFERENCE") || !strings.Contains(table, id) {
			t.Errorf("the wide table is\n%s", table)
		}
		out, errs = w.run(exitOK, "payouts", "stuck", "--page", "2", "--page-size", "1", "-o", "json")
		if strings.Count(out, `"id"`) != 1 || !strings.Contains(errs, "Page 2 of 2") {
			t.Errorf("a page: %s%s", out, errs)
		}
	})
}

// A command's search for a phone number is limited and recorded in the audit log, as in the console. A search for a reference is
// neither.
func TestFind_ofNumbersIsAudited(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		w.run(exitOK, "wallet", "fund", id, "100", "--reason", "bank slip", "--reference", "slip 1")
		pay := w.stuck(t, id, "order-000000001")
		for _, text := range []string{"024 123 4567", "+233241234567", "0241234567"} { // one number
			if found := w.list("payouts", "find", text); len(found) != 1 || found[0]["id"] != pay.ID {
				t.Errorf("%q finds %v", text, found)
			}
		}
		w.list("payouts", "find", "order-000000001")
		w.list("payouts", "find", "10")
		log := w.list("audit", "list", "--action", "numbers.search")
		if len(log) != 1 || strings.Contains(fmt.Sprint(log), "241234567") || !strings.HasPrefix(fmt.Sprint(log[0]["actor"]), "cli:") {
			t.Errorf("the audit log has %v", log)
		}
		w.run(exitOK, "payouts", "show", "0241234567") // the same number
		people := identity.New(w.db, clock.Real(), audit.New(w.db, clock.Real()), identity.Options{})
		for n := range identity.SearchesOfNumbers.Most - 1 { // these count like further commands
			if err := people.Use(t.Context(), identity.SearchesOfNumbers, "cli:"+frame.LoggedIn(), fmt.Sprint(n), audit.Entry{Actor: "x", Action: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		for _, command := range []string{"find", "show"} {
			if _, errs := w.run(exitUnavailable, "payouts", command, "0241239999"); !strings.Contains(errs, "30 numbers an hour") {
				t.Errorf("%s: %s", command, errs)
			}
		}
		w.run(exitOK, "payouts", "find", "order-000000001")
	})
}

func TestAccount_byUniqueName(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		w.run(exitOK, "tenant", "create", "Kofi & Sons", "--mode", "live", "--id", "kofi")
		w.run(exitOK, "wallet", "fund", "adom stores", "5", "--reason", "bank slip", "--reference", "slip 1")
		has(t, w.object("wallet", "show", "Adom Stores"), map[string]any{"tenant": id, "wallet": "5.00"})
		has(t, w.object("tenant", "set", "Kofi & Sons", "--blocked", "on", "--reason", "fraud"), map[string]any{"id": "kofi", "blocked": true})
		w.object("key", "create", "--tenant", "Adom Stores")
		for _, args := range [][]string{{"key", "list", "--tenant"}, {"ledger", "statement"}, {"fees", "show"}, {"payouts", "list"}, {"webhooks", "secret"}, {"tenant", "show"}, {"audit", "list", "--tenant"}} {
			w.run(exitOK, append(args, "Adom Stores")...)
		}
		if log := w.list("audit", "list", "--tenant", id, "--action", "key.create"); len(log) != 1 {
			t.Errorf("the log has the name instead of the id: %v", log)
		}
		w.run(exitOK, "tenant", "create", "ADOM Stores", "--mode", "live", "--id", "adom-2")
		if _, errs := w.run(exitUsage, "wallet", "show", "Adom Stores"); !strings.Contains(errs, id) || !strings.Contains(errs, "adom-2") {
			t.Errorf("a name that two have: %s", errs)
		}
		has(t, w.object("wallet", "show", "adom-2"), map[string]any{"tenant": "adom-2"})
		if _, errs := w.run(exitNotFound, "wallet", "show", "Koffi & Sons"); !strings.Contains(errs, `Did you mean "Kofi & Sons" (kofi)?`) {
			t.Errorf("a misspelt name: %s", errs)
		}
		if _, errs := w.run(exitNotFound, "wallet", "show", "Bediako"); strings.Contains(errs, "Did you mean") {
			t.Errorf("a name that is near none: %s", errs)
		}
	})
}
