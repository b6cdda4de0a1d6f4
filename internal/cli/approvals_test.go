package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/identitytest"
)

// TestApprovals_listedAndShown: the command line shows requests that await approval in the console.
func TestApprovals_listedAndShown(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		key, err := config.NewSecret([]byte(strings.Repeat("k", config.SecretBytes)))
		if err != nil {
			t.Fatal(err)
		}
		c := clock.Real()
		log := audit.New(w.db, c)
		people := identity.New(w.db, c, log, identity.Options{Secret: key, HashMemory: identitytest.HashMemory})
		requester := identitytest.Join(t, w.db, c, people, "ama@example.com", identity.Membership{Role: roles.Operations})
		identitytest.Join(t, w.db, c, people, "kofi@example.com", identity.Membership{Role: roles.Approver})
		if list := w.list("acts", "list"); len(list) != 0 {
			t.Fatalf("%v", list)
		}
		made, err := changes.NewStore(w.db, c, log, people, true).Make(t.Context(), changes.By{Visitor: requester.Visitor}, changes.Rule{Make: roles.ChangeMoney, Check: roles.ApproveMoney},
			changes.Request{ID: uuid.Must(uuid.NewV7()).String(), Kind: "wallet.fund", Payload: []byte(`{"pesewas":5}`), Sentence: "Put GHS 0.05 into a wallet", Reason: "slip 4711", Amount: 5})
		if err != nil {
			t.Fatal(err)
		}
		if list := w.list("acts", "list", "--state", "waiting"); len(list) != 1 || list[0]["maker"] != "ama@example.com" || list[0]["amount"] != "0.05" {
			t.Fatalf("%v", list)
		}
		if list := w.list("acts", "list", "--state", "done"); len(list) != 0 {
			t.Fatalf("%v", list)
		}
		if request := w.object("acts", "show", made.ID); request["digest"] != made.Digest || request["checkers_needed"] != float64(1) || request["reason"] != "slip 4711" {
			t.Fatalf("%v", request)
		}
		w.run(exitNotFound, "acts", "show", "nothing")
	})
}

// TestApprovals_policy: the command prints the policy in force for people who may request, with the function that decides in
// production.
func TestApprovals_policy(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		key, err := config.NewSecret([]byte(strings.Repeat("k", config.SecretBytes)))
		if err != nil {
			t.Fatal(err)
		}
		people := identity.New(w.db, clock.Real(), audit.New(w.db, clock.Real()), identity.Options{Secret: key, HashMemory: identitytest.HashMemory})
		identitytest.Join(t, w.db, clock.Real(), people, "ama@example.com", identity.Membership{Tenant: id, Role: roles.Finance})
		identitytest.Join(t, w.db, clock.Real(), people, "boss@example.com", identity.Membership{Role: roles.Owner})
		identitytest.Join(t, w.db, clock.Real(), people, "kofi@example.com", identity.Membership{Tenant: id, Role: roles.Signatory})
		payouts := func(byKey bool) map[string]any {
			t.Helper()
			for _, one := range w.list("approvals", "policy", "--account", id) {
				if one["place"] == id && one["kind"] == "payout.send" && one["by_key"] == byKey {
					return one
				}
			}
			t.Fatal("no payouts")
			return nil
		}
		has(t, payouts(false), map[string]any{"in_force": "no approver", "alone": false}) // in development
		of := installation.New(w.db, clock.Real())
		if err := errors.Join(of.Check(t.Context(), key), of.MarkProduction(t.Context())); err != nil {
			t.Fatal(err)
		}
		has(t, payouts(false), map[string]any{"in_force": "1 approver", "alone": false})
		has(t, payouts(true), map[string]any{"in_force": "no approver", "alone": false})
		if list := w.list("approvals", "policy"); len(list) == 0 || list[0]["place"] != "installation" {
			t.Errorf("%v", list)
		}
	})
}
