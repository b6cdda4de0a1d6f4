package frame

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/problem"
)

var ActsColumns = []Column[changes.Request]{
	{"id", func(a changes.Request) any { return a.ID }},
	{"kind", func(a changes.Request) any { return a.Kind }},
	{"state", func(a changes.Request) any { return string(a.State) }},
	{"sentence", func(a changes.Request) any { return a.Sentence }},
	{"tenant", func(a changes.Request) any { return a.Tenant }},
	{"place", func(a changes.Request) any { return a.Place }},
	{"amount", func(a changes.Request) any { return a.Amount }},
	{"reason", func(a changes.Request) any { return a.Reason }},
	{"maker", func(a changes.Request) any { return a.MakerName }},
	{"origin", func(a changes.Request) any { return a.Origin }},
	{"checkers_needed", func(a changes.Request) any { return int64(a.Needs) }},
	{"made_at", func(a changes.Request) any { return a.MadeAt }},
	{"expires_at", func(a changes.Request) any { return a.ExpiresAt }},
	{"ended_at", func(a changes.Request) any { return a.EndedAt }},
	{"note", func(a changes.Request) any { return a.Note }},
	{"digest", func(a changes.Request) any { return a.Digest }},
	{"payload", func(a changes.Request) any { return json.RawMessage(a.Payload) }},
}

// waitsError is the end of a command whose act waits for a second person.
type waitsError struct{ act changes.Request }

func (w *waitsError) Error() string {
	text := fmt.Sprintf("Nothing is done yet: the request waits for approval in the console at /ops/acts/%s, until %s", w.act.ID, w.act.ExpiresAt.UTC().Format(time.RFC3339))
	if changes.HasLink(w.act) {
		text += ". After the approval that page shows the link to you and the code to the approver. Send both to the person"
	}
	return text
}

// Asked reports the outcome of a request: it calls done once the change is applied, and prints a request that waits for approval.
func (o *Opened) Asked(e *Env, output string, act changes.Request, err error, done func() error) error {
	if err != nil {
		return err
	}
	switch act.State {
	case changes.Done:
		return done()
	case changes.Waiting:
		if err := PrintOne(e.Stdout, output, Narrow(output, ActsColumns, "id", "state", "sentence", "checkers_needed", "expires_at"), act); err != nil {
			return err
		}
		return &waitsError{act}
	case changes.Failed:
		if act.Refused != nil {
			return act.Refused
		}
		return problem.New(problem.Refused, "act_failed", act.Note)
	}
	return problem.New(problem.Duplicate, changes.CodeEnded, fmt.Sprintf("The change request %s is already %s", act.ID, act.State))
}
