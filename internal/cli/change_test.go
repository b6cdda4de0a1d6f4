package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/accounts"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/cli/funds"
	"github.com/makola/makola/internal/cli/operations"
)

// Each alias is a command. Each argument and flag of its own is a field of its kind, or it would be ignored.
func TestAliases_flagsAreFields(t *testing.T) {
	t.Parallel()
	model, err := Model()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	common := []string{"help", "data", "database", "output", "json", "wide", "token-file", "break-glass", "reason", "public-url", "wait"}
	for _, leaf := range model.Leaves(false) {
		name := frame.CommandName(leaf)
		for _, table := range []map[string]frame.Alias{accounts.Aliases, funds.Aliases, operations.Aliases} {
			alias, is := table[name]
			if !is {
				continue
			}
			found++
			form, known := changes.FormOf(alias.Kind)
			if !known {
				t.Errorf("makola %s: there is no kind %s", name, alias.Kind)
			}
			values := slices.Clone(leaf.Positional)
			for _, f := range leaf.Flags {
				values = append(values, f.Value)
			}
			for _, v := range values {
				field, _, _ := strings.Cut(alias.Fields[v.Name], "=")
				if field == "" {
					field = v.Name
				}
				if frame.FieldOf(form, field) == "" && !slices.Contains(common, v.Name) {
					t.Errorf("makola %s: %s is no field of %s", name, v.Name, alias.Kind)
				}
			}
		}
	}
	if all := len(accounts.Aliases) + len(funds.Aliases) + len(operations.Aliases); found != all {
		t.Errorf("%d of %d aliases are commands", found, all)
	}
}

// Flags set the fields of a change of any kind. The same checks apply as for the separate command of the kind, and a reference can
// be used once.
func TestChange_byFields(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		w.served()
		fund := []string{"change", "wallet.fund", "--account", "Adom Stores", "--amount=250", "--reference", "slip 1", "--reason", "paid by bank"}
		has(t, w.object(fund...), map[string]any{"kind": "wallet.fund", "state": "done"})
		if _, errs := w.run(exitConflict, fund...); !strings.Contains(errs, "Nothing was moved") {
			t.Error(errs)
		}
		has(t, w.object("wallet", "show", id), map[string]any{"wallet": "250.00"})
		w.run(exitFunds, "change", "wallet.adjust", "--tenant", id, "--amount", "300", "--way", "out", "--reason", "too much")
		has(t, w.object("change", "tenant.low_balance", "--set", "tenant="+id, "--amount", "50", "--reason", "payday"), map[string]any{"state": "done"})
		for text, args := range map[string][]string{
			"kind field is unknown":         {"change", "wallet.spend", "--reason", "x"},
			"amount field is required":      {"change", "wallet.fund", "--tenant", id, "--reason", "x"},
			"is not a field of this change": {"change", "wallet.fund", "--tenant", id, "--amount", "1", "--set", "colour=red", "--reason", "x"},
			"network field must be one of":  {"change", "catalogue.prefix", "--prefix", "0553", "--network", "NONE", "--reason", "x"},
			"unknown flag --provider":       {"change", "wallet.fund", "--provider", "mtn", "--reason", "x"},
			"kind field is unknown. makola": {"change", "payout.send", "--reason", "x"},
			"must be an amount, such as 1":  {"change", "wallet.fund", "--tenant", id, "--amount", "much", "--reason", "x"},
		} {
			if _, errs := w.run(exitUsage, args...); !strings.Contains(errs, text) {
				t.Errorf("%v: %s", args, errs)
			}
		}
		has(t, w.object("change", "tenant.set", "--tenant", id, "--transfer-limit", "900", "--reason", "contract 12"), map[string]any{"kind": "tenant.set", "state": "done"})
		has(t, w.object("change", "credits.sell", "--tenant", id, "--credits", "40", "--price", "1.60", "--reason", "paid"), map[string]any{"state": "done"})
		has(t, w.object("change", "fees.set", "--tenant", id, "--rules", "payout=0.10 collection=1%", "--reason", "contract 12"), map[string]any{"state": "done"})
		has(t, w.object("change", "fees.set", "--tenant", id, "--rules", "free", "--from", "2099-01-01T00:00:00Z", "--reason", "contract 13"), map[string]any{"state": "done"})
		has(t, w.object("change", "provider.pause", "--provider", "mtn", "--mode", "test", "--reason", "their maintenance"), map[string]any{"state": "done"})
		key := w.object("change", "key.create", "--tenant", id, "--scopes", "read collect", "--expiry", "90d", "--reason", "the shop")
		if text, _ := key["secret"].(string); !strings.HasPrefix(text, "mk_") {
			t.Errorf("%v", key)
		}
		for _, args := range [][]string{{"people.invite", "--name", "Ama", "--role", "owner"}, {"people.reset"}} {
			made := w.object(append(append([]string{"change"}, args...), "--email", "ama@example.com", "--public-url", "https://pay.example.com/", "--reason", "new here")...)
			if link, _ := made["link"].(string); !strings.HasPrefix(link, "https://pay.example.com/first?t=") || len(made["code"].(string)) != 8 {
				t.Errorf("%v", made)
			}
		}
		kinds, _ := w.run(exitOK, "acts", "kinds", "-o", "csv")
		if !strings.Contains(kinds, `"tenant.low_balance","Low-balance threshold","amount"`) {
			t.Error(kinds)
		}
	})
}
