package changes

import (
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// machine is the user of this machine, for a command without a person.
var machine = By{Machine: audit.BreakGlass + "root", Origin: "a machine", Place: roles.Installation}

// A command without a person uses the same kinds with the same checks. It is applied at once, and stored as done by the user of the
// machine. A refusal stores nothing.
func TestMachine_appliesAtOnce(t *testing.T) {
	each(t, func(f *fixture) {
		f.line(Line{Kind: KindFund, Approvers: 2})
		id := newID()
		request, err := f.Fund(t.Context(), machine, id, f.tenant.ID, 50*money.Cedi, "the bank closes")
		if err != nil || request.State != Done || request.Needs != 0 || request.RequesterName != machine.Machine || request.Requester != identity.Machine {
			t.Fatalf("%+v, %v", request, err)
		}
		log, err := f.log.List(t.Context(), audit.Filter{Action: KindFund})
		if err != nil || len(log) != 1 || !log[0].BrokeGlass() || log[0].Subject != id || log[0].Person != "" {
			t.Fatalf("%+v, %v", log, err)
		}
		if _, err := f.Adjust(t.Context(), machine, newID(), f.tenant.ID, -100*money.Cedi, "too much"); !problem.Is(err, problem.InsufficientFunds) {
			t.Error(err)
		}
		if _, err := f.Fund(t.Context(), machine, newID(), f.tenant.ID, 1, " "); !problem.Is(err, problem.Invalid) {
			t.Errorf("a blank reason: %v", err)
		}
		if list, err := f.Store.List(t.Context(), Filter{Limit: 10}); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// The user of a machine cannot approve, reject or withdraw a request of a person.
func TestMachine_approvesNoRequest(t *testing.T) {
	each(t, func(f *fixture) {
		request, err := f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, 50*money.Cedi, "slip 17")
		if err != nil || request.State != Waiting {
			t.Fatalf("%+v, %v", request, err)
		}
		for name, decide := range map[string]func() error{
			"approve":  func() error { _, err := f.Approve(t.Context(), machine, request.ID, request.Digest); return err },
			"reject":   func() error { _, err := f.Reject(t.Context(), machine, request.ID, request.Digest, "no"); return err },
			"withdraw": func() error { _, err := f.Withdraw(t.Context(), machine, request.ID, request.Digest); return err },
		} {
			if err := decide(); err == nil {
				t.Errorf("the machine may %s", name)
			}
		}
		if now, err := f.Get(t.Context(), roles.Installation, request.ID); err != nil || now.State != Waiting {
			t.Errorf("%+v, %v", now, err)
		}
	})
}
