package batch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
)

// maxFaults is how many faults of rows one answer names.
const maxFaults = 100

// Make creates a draft from the rows of a program. One bad row refuses them all, with a field such as rows.2.amount for
// each fault, because a program cannot mend a draft. As with ReadFile, the same rows under the same name return their draft.
func (s *Batches) Make(ctx context.Context, u Upload, given []Given) (b Batch, replayed bool, err error) {
	if len(given) > MaxRows {
		return Batch{}, false, problem.Field("rows", fmt.Sprintf("must be at most %d", MaxRows))
	}
	if b, replayed, err = s.Recall(ctx, u.Once); replayed || err != nil {
		return b, replayed, err
	}
	leave, err := s.uploads.enter(u.Tenant)
	if err != nil {
		return Batch{}, false, err
	}
	defer leave()
	rows, err := s.checked(ctx, u, given)
	if err != nil {
		return Batch{}, false, err
	}
	return s.draft(ctx, u, &madeRows{rows}, func() []string { return nil })
}

// Faults returns the errors with which Make would refuse rows, or nil. It counts as an upload.
func (s *Batches) Faults(ctx context.Context, u Upload, given []Given) error {
	leave, err := s.uploads.enter(u.Tenant)
	if err != nil {
		return err
	}
	defer leave()
	_, err = s.checked(ctx, u, given)
	return err
}

// checked reads and checks the rows of a program.
func (s *Batches) checked(ctx context.Context, u Upload, given []Given) ([]Row, error) {
	t, err := s.check(ctx, &u)
	if err != nil {
		return nil, err
	}
	known, err := s.banksFor(ctx, u.Tenant)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(given))
	var bad problem.Fields
	faults, first := 0, map[string]int{} // the row of each reference of its own
	for i, g := range given {
		rows[i] = members.row(i+1, i+1, g, known)
		if err := s.checkRow(ctx, t, &rows[i]); err != nil {
			return nil, err
		}
		if line, twice := first[rows[i].Reference]; twice {
			rows[i].bad(fieldReference, "is the reference of row "+strconv.Itoa(line)+", too")
		} else if rows[i].Reference != "" {
			first[rows[i].Reference] = i + 1
		}
		for field, why := range rows[i].Problems {
			for _, text := range why {
				if faults++; faults <= maxFaults {
					bad.Add("rows."+strconv.Itoa(i+1)+"."+cmp.Or(memberOf[field], field), text)
				}
			}
		}
	}
	if faults > maxFaults {
		bad.Add("rows", fmt.Sprintf("have %d faults, of which %d are shown", faults, maxFaults))
	}
	return rows, bad.Err()
}

// memberOf maps the fields of files to the members of a program's rows.
var memberOf = map[string]string{fieldNumber: "account_number", fieldNetwork: "channel", fieldName: "account_name", fieldReference: "client_reference"}

// madeRows are rows that were parsed already.
type madeRows struct{ left []Row }

func (m *madeRows) next() (Row, error) {
	if len(m.left) == 0 {
		return Row{}, io.EOF
	}
	r := m.left[0]
	m.left = m.left[1:]
	return r, nil
}

// PauseFor is Pause for a request of an API key. A batch that is paused already, or a repeated request, changes nothing and
// is replayed.
func (s *Batches) PauseFor(ctx context.Context, caller idempotency.Caller, id string) (b Batch, replayed bool, err error) {
	return s.program(ctx, caller, id, Paused, func(also func(*db.Tx) error) error {
		return s.pause(ctx, caller.Tenant, id, CauseProgram, also)
	})
}

// ResumeFor is Resume for a request of an API key. A pause that a person, a recovery or altered rows caused needs a person.
func (s *Batches) ResumeFor(ctx context.Context, caller idempotency.Caller, id string) (b Batch, replayed bool, err error) {
	return s.program(ctx, caller, id, Running, func(also func(*db.Tx) error) error {
		return s.resume(ctx, caller.Tenant, id, func(b Batch) error {
			switch b.Cause {
			case CausePerson, CauseRecovery, CauseAltered:
				return problem.New(problem.Forbidden, "batch_paused_by_person", "An API key cannot resume this batch: a person of the account resumes it on its page")
			}
			return nil
		}, also)
	})
}

// CancelFor is Cancel for a request of an API key. A draft of the key is discarded.
func (s *Batches) CancelFor(ctx context.Context, caller idempotency.Caller, id, reason, actor string) (b Batch, replayed bool, err error) {
	b, err = s.Get(ctx, caller.Tenant, id)
	if err == nil && b.Status == Draft && b.Key == caller.Key {
		err = s.Discard(ctx, b.Tenant, b.ID)
		b.Status = Cancelled
		return b, false, err
	}
	return s.program(ctx, caller, id, Cancelled, func(also func(*db.Tx) error) error {
		return s.Cancel(ctx, caller.Tenant, id, cmp.Or(reason, "an API key cancelled the batch"), actor, also)
	})
}

// program changes a batch for an API key, once for each Idempotency-Key. It refuses a batch that people made.
func (s *Batches) program(ctx context.Context, caller idempotency.Caller, id string, to Status, do func(also func(*db.Tx) error) error) (b Batch, replayed bool, err error) {
	if b, replayed, err = s.Recall(ctx, caller); replayed || err != nil {
		return b, replayed, err
	}
	if b, err = s.Get(ctx, caller.Tenant, id); err != nil {
		return b, false, err
	}
	if b.Key == "" {
		return b, false, problem.New(problem.Forbidden, "batch_of_people", "A person of the account created this batch: it can be paused, resumed and canceled on its page only")
	}
	if b.Status == to {
		return b, true, nil
	}
	if err := do(func(tx *db.Tx) error { return s.Keep(tx, caller, b) }); err != nil {
		return b, false, err
	}
	b, err = s.Get(ctx, caller.Tenant, id)
	return b, false, err
}
