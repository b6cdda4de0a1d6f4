package changes

import (
	"context"
	"fmt"
	"strconv"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/usertext"
)

// KindRerun runs a failed job (a dead letter of the queue) again.
const KindRerun = "job.rerun"

// rerun is the payload of a request to run a failed job again. Its members and their order are hashed, so they never
// change.
type rerun struct {
	Job     string `json:"job"`
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
}

// Rerun requests another run of a job that was given up.
func (a *Changes) Rerun(ctx context.Context, by By, id, job, reason string) (Request, error) {
	return a.Do(ctx, by, KindRerun, id, Values{"job": job}, reason)
}

func (a *Changes) lookRerun(ctx context.Context, o Order) (Draft, error) {
	j, err := a.Jobs.DeadLetter(ctx, o.Values["job"])
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Run the failed job %s again: %s of %s", j.ID, j.Kind, j.Subject)
	return Draft{Sentence: sentence, Payload: rerun{j.ID, j.Kind, j.Subject}}, nil
}

// rerunKind needs no approver, because a job repeats an earlier decision.
func (a *Changes) rerunKind() Kind {
	return written(a, KindRerun, "Rerun of a failed job", Rule{Make: roles.ChangeMoney, Check: roles.ApproveMoney, Light: true}, func(tx *db.Tx, request Request, p rerun) ([]audit.Change, error) {
		return []audit.Change{{What: "job " + p.Job, Before: "dead letter", After: "waits"}}, a.Jobs.RerunIn(tx, p.Job)
	}).by(a.lookRerun, Field{Name: "job", Label: "Job", Hint: "The id of the failed job.", Max: 64, Required: true}).showing(a.checkRerun)
}

// checkRerun returns the reason why the job was given up.
func (a *Changes) checkRerun(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[rerun](r)
	if err != nil {
		return nil, err
	}
	j, err := a.Jobs.DeadLetter(ctx, p.Job)
	if err != nil {
		return nil, err
	}
	return []Fact{{Name: "Job", Value: j.Kind}, {Name: "About", Value: j.Subject}, {Name: "Tried", Value: strconv.Itoa(j.Tries)}, {Name: "Last error", Value: usertext.Cut(j.LastError, mostError)}, {Name: "Given up", Value: at(j.DeadAt)}}, nil
}

// mostError is the maximum length of a job's error in a fact, in bytes.
const mostError = 300
