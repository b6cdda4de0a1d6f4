package frame

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
)

var RequestColumns = []Column[changes.Request]{
	{"id", func(a changes.Request) any { return a.ID }},
	{"kind", func(a changes.Request) any { return a.Kind }},
	{"state", func(a changes.Request) any { return string(a.State) }},
	{"sentence", func(a changes.Request) any { return a.Sentence }},
	{"tenant", func(a changes.Request) any { return a.Tenant }},
	{"place", func(a changes.Request) any { return a.Place }},
	{"amount", func(a changes.Request) any { return a.Amount }},
	{"reason", func(a changes.Request) any { return a.Reason }},
	{"maker", func(a changes.Request) any { return a.RequesterName }},
	{"origin", func(a changes.Request) any { return a.Origin }},
	{"checkers_needed", func(a changes.Request) any { return int64(a.Needs) }},
	{"made_at", func(a changes.Request) any { return a.MadeAt }},
	{"expires_at", func(a changes.Request) any { return a.ExpiresAt }},
	{"ended_at", func(a changes.Request) any { return a.EndedAt }},
	{"note", func(a changes.Request) any { return a.Note }},
	{"digest", func(a changes.Request) any { return a.Digest }},
	{"payload", func(a changes.Request) any { return json.RawMessage(a.Payload) }},
}

// waitsError is returned by a command whose request waits for a second person.
type waitsError struct{ request changes.Request }

func (w *waitsError) Error() string {
	if w.request.Needs == 0 {
		if w.request.Requester == identity.Machine {
			return "Nothing was changed yet: a server applies the request " + w.request.ID + " within seconds. makola approvals show prints its outcome"
		}
		return "Nothing was changed yet: apply the request in the console at /ops/acts/" + w.request.ID
	}
	text := fmt.Sprintf("Nothing was changed yet: the request waits for approval in the console at /ops/acts/%s, until %s", w.request.ID, w.request.ExpiresAt.UTC().Format(time.RFC3339))
	if changes.HasLink(w.request) {
		text += ". After the approval that page shows the link to you and the code to the approver. Send both to the person"
	}
	return text
}

// outcome reports the outcome of the request: it calls show once the change is applied, and prints a request that waits for approval.
func (q *Ask) outcome(err error, show func(*Ask) error) error {
	if err != nil {
		return err
	}
	switch request := q.Request; request.State {
	case changes.Done:
		return show(q)
	case changes.Waiting:
		if err := PrintOne(q.E.Stdout, q.Output, Narrow(q.Output, RequestColumns, "id", "state", "sentence", "checkers_needed", "expires_at"), request); err != nil {
			return err
		}
		return &waitsError{request}
	case changes.Failed:
		if request.Refused != nil {
			return request.Refused
		}
		return problem.New(problem.Refused, "act_failed", request.Note)
	default:
		return problem.New(problem.Duplicate, changes.CodeEnded, fmt.Sprintf("The change request %s is already %s", request.ID, request.State))
	}
}
