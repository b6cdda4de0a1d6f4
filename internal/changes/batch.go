package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// KindSendBatch sends a batch of payouts. The request freezes the rows of the draft. A request that ends without being applied makes
// the batch a draft again.
const KindSendBatch = "batch.send"

// batchLasts is how long the request of a batch waits for its approvers before it expires.
const batchLasts = 72 * time.Hour

// sentBatch is the payload of a request to send a batch, as the requester saw it. Its members and their order are
// hashed, so they never change.
type sentBatch struct {
	ID      string        `json:"id"`
	Tenant  string        `json:"tenant"`
	Name    string        `json:"name"`
	Digest  string        `json:"digest"` // hash of all rows with their fees and registered names
	Rows    int           `json:"rows"`
	Amount  money.Pesewas `json:"pesewas"`
	Charges money.Pesewas `json:"charges"`
	Largest money.Pesewas `json:"largest"` // amount of a row
	Plan    int64         `json:"plan"`    // version of the fee plan
	Overlap int           `json:"overlap"` // rows that earlier batches paid
	Again   string        `json:"again,omitempty"`
	Key     string        `json:"key,omitempty"`
}

func sentBatchOf(b batch.Batch, largest money.Pesewas) sentBatch {
	return sentBatch{ID: b.ID, Tenant: b.Tenant, Name: b.Name, Digest: b.Digest, Rows: b.Ready, Amount: b.Amount, Charges: b.Charges, Largest: largest, Plan: b.Plan,
		Overlap: b.Overlap, Again: b.Again, Key: b.Key}
}

// BatchOf returns the id of the batch that a request is about. It is empty for a request of another kind.
func BatchOf(r Request) string {
	if r.Kind != KindSendBatch {
		return ""
	}
	p, err := payloadOf[sentBatch](r)
	if err != nil {
		return ""
	}
	return p.ID
}

var sendBatchRule = Rule{Make: roles.RequestPayouts, Check: roles.ApprovePayouts, ByKey: true, Lasts: batchLasts}

func (a *Changes) batchKind() Kind {
	return Kind{Name: KindSendBatch, Title: "Batch of payouts", Rule: sendBatchRule, Check: a.checkBatch, Apply: a.startBatch, Undone: a.withdrawBatch}.by(a.lookBatch, tenantField,
		Field{Name: "batch", Label: "Batch", Hint: "The id of the batch.", Max: 36, Required: true},
		Field{Name: "again", Label: "Reason for paying rows again", Hint: "Required if an earlier batch paid rows of this batch.", Max: 500},
		Field{Name: fieldDifferent, Label: "Rows with a different registered name", Hint: "Enter the number of these rows, if there are any.", Max: 6})
}

func (a *Changes) lookBatch(ctx context.Context, o Order) (Draft, error) {
	if request, err := a.Get(ctx, o.By.Place, o.ID); err == nil && request.Requester == o.By.id() && BatchOf(request) == o.Values["batch"] { // the same form again
		return Draft{Again: &request}, nil
	}
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	switch twin, found, err := a.RequestOfBatch(ctx, t.ID, o.Values["batch"]); {
	case err != nil:
		return Draft{}, err
	case found && twin.Requester == o.By.id() && twin.Place == o.By.Place:
		return Draft{Again: &twin}, nil
	}
	f, err := a.Batches.Freeze(ctx, t.ID, o.Values["batch"], o.Values["again"])
	if err == nil {
		err = confirmed(f.Batch, o.Values[fieldDifferent])
	}
	if err != nil {
		return Draft{}, err
	}
	f.Request = o.ID
	return Draft{Tenant: t.ID, Amount: f.Total(), Sentence: batchSentence(t, f.Batch), Payload: sentBatchOf(f.Batch, f.Largest),
		Begin: []func(*db.Tx) error{func(tx *db.Tx) error { return a.Batches.RequestIn(tx, f) }}}, nil
}

// fieldDifferent is the typed number of rows whose registered name differs. A single payout asks the requester to
// type the name. A file may have too many names, so the requester types their number.
const fieldDifferent = "different"

// confirmed refuses a batch with different registered names unless the requester typed their number.
func confirmed(b batch.Batch, typed string) error {
	n := b.Differs()
	if typed = strings.TrimSpace(typed); n == 0 && typed == "" || typed == strconv.Itoa(n) {
		return nil
	}
	return problem.Field(fieldDifferent, "must be the number of rows whose registered name differs")
}

func batchSentence(t tenant.Tenant, b batch.Batch) string {
	return fmt.Sprintf("Pay %d people of the batch %s: %s, with fees of %s", b.Ready, b.Name, t.Money().Text(int64(b.Amount)), t.Money().Text(int64(b.Charges)))
}

// checkBatch returns the wallet's balances, the notes about the file, and the rows that were paid by an earlier
// batch.
func (a *Changes) checkBatch(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[sentBatch](r)
	if err != nil {
		return nil, err
	}
	t, err := a.Tenants.Get(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	b, err := a.Batches.Get(ctx, p.Tenant, p.ID)
	if err != nil {
		return nil, err
	}
	list, err := a.balances(ctx, "wallet of "+t.Name, t.Wallet(), -int64(p.Amount+p.Charges))
	if err != nil {
		return nil, err
	}
	list = append(list, Fact{Name: "Largest payout", Value: t.Money().Text(int64(p.Largest))})
	if p.Overlap > 0 {
		list = append(list, warning(fmt.Sprintf("An earlier batch paid %d of %d rows in the last 30 days. They are paid again because: %s", p.Overlap, p.Rows, p.Again)))
	}
	counts, err := a.Batches.Count(ctx, b)
	if err != nil {
		return nil, err
	}
	list = append(list, nameFacts(counts)...)
	for _, note := range b.Notes {
		list = append(list, warning("About the file: "+note))
	}
	return list, nil
}

// nameFacts compares the registered name of each row with the name in the file. Rows with differences come first.
func nameFacts(c batch.Counts) (list []Fact) {
	for _, each := range []struct {
		state batch.NameState
		text  string
	}{
		{batch.NameChanged, "The registered names of %d rows changed since the request."},
		{batch.NameDifferent, "%d rows go to people whose registered name differs from the name in the file."},
		{batch.NameUnknown, "The registered names of %d rows are unknown."},
		{batch.NameNear, "The registered names of %d rows are only similar to the names in the file."},
		{batch.NameUnasked, "The registered names of %d rows were not looked up."},
	} {
		if n := c.Names[each.state]; n > 0 {
			list = append(list, warning(fmt.Sprintf(each.text, n)))
		}
	}
	if n := c.Names[batch.NameSame]; n > 0 {
		list = append(list, Fact{Name: "Names that agree", Value: strconv.Itoa(n)})
	}
	return list
}

// startBatch reserves the money, starts the batch and ends the request in one transaction.
func (a *Changes) startBatch(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[sentBatch](*request)
	if err != nil {
		return err
	}
	order := batch.Order{Tenant: p.Tenant, ID: p.ID, Digest: p.Digest, Reason: request.Reason, Actor: request.Actor}
	request.Made = p.ID
	return a.Batches.Start(context.WithoutCancel(ctx), order, func(tx *db.Tx, b batch.Batch) error {
		if sentBatchOf(b, p.Largest) != p {
			return errChanged("The batch")
		}
		if err := a.keyStands(tx, *request); err != nil {
			return err
		}
		return finish(tx, []audit.Change{{What: "batch " + b.Name, Before: "requested", After: "running, with " + ledger.GHS.Text(int64(b.Total())) + " reserved"}})
	})
}

// withdrawBatch makes the batch a draft again and ends the request in one transaction. It does not change a
// batch that a recovery has ended.
func (a *Changes) withdrawBatch(ctx context.Context, request Request, end func(*db.Tx) error) error {
	p, err := payloadOf[sentBatch](request)
	if err != nil {
		return err
	}
	return a.Store.Write(ctx, func(tx *db.Tx) error {
		err := a.Batches.Withdraw(tx, p.Tenant, p.ID)
		if err != nil && !problem.Is(err, problem.Invalid) && !problem.Is(err, problem.NotFound) {
			return err
		}
		return end(tx)
	})
}

// RequestOfBatch finds the waiting request of a batch.
func (a *Changes) RequestOfBatch(ctx context.Context, tenantID, id string) (r Request, found bool, err error) {
	b, err := a.Batches.Get(ctx, tenantID, id)
	if problem.Is(err, problem.NotFound) || err == nil && b.Status != batch.Requested {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	r, err = a.Store.Get(ctx, b.Request)
	if problem.Is(err, problem.NotFound) || err == nil && (r.State != Waiting || BatchOf(r) != id) {
		return Request{}, false, nil
	}
	return r, err == nil, err
}

// Submission is the request of an API key to send its batch.
type Submission struct {
	Caller idempotency.Caller
	Batch  string
	Origin string // address of the request
	Again  string // reason to pay rows of an earlier batch again
}

// SubmitBatch sends a batch for an API key. The batch starts at once, unless a line of the account's policy requires
// approval: then SubmitBatch stores a request. A batch that cannot start stays a draft. A second submission of the
// same batch returns the result of the first.
func (a *Changes) SubmitBatch(ctx context.Context, s Submission) (b batch.Batch, replayed bool, err error) {
	if b, replayed, err = a.Batches.Recall(ctx, s.Caller); replayed || err != nil {
		return b, replayed, err
	}
	b, err = a.Batches.Get(ctx, s.Caller.Tenant, s.Batch)
	if err == nil && b.Key != s.Caller.Key { // the daily limit of the key would not count
		err = problem.New(problem.NotFound, "batch_not_found", "There is no such batch of this key")
	}
	if err != nil {
		return b, false, err
	}
	switch b.Status {
	case batch.Requested, batch.Running, batch.Paused, batch.Finished:
		return b, true, nil
	}
	if err := a.submit(ctx, s); err != nil {
		return b, false, err
	}
	b, err = a.Batches.Get(ctx, b.Tenant, b.ID)
	return b, false, err
}

// submit starts a draft of a key, or stores its request if it needs approval. Each happens in one transaction.
func (a *Changes) submit(ctx context.Context, s Submission) error {
	t, err := a.Tenants.Get(ctx, s.Caller.Tenant)
	if err != nil {
		return err
	}
	f, err := a.Batches.Freeze(ctx, t.ID, s.Batch, s.Again)
	if err != nil {
		return err
	}
	request, err := a.requestByKey(ctx, t, f, s.Caller.Key, s.Origin)
	if err != nil {
		return err
	}
	f.Request = request.ID
	if request.Needs > 0 {
		return a.Store.Write(ctx, func(tx *db.Tx) error {
			return errors.Join(a.Batches.RequestIn(tx, f), a.Store.InsertPlanned(tx, By{}, sendBatchRule, request), a.Batches.Keep(tx, s.Caller, f.Batch))
		})
	}
	order := batch.Order{Tenant: t.ID, ID: f.ID, Digest: f.Digest, Reason: request.Reason, Actor: request.RequesterName}
	return a.Batches.Submit(context.WithoutCancel(ctx), f, order, func(tx *db.Tx, b batch.Batch) error {
		if err := a.keyStands(tx, request); err != nil {
			return err
		}
		return a.Batches.Keep(tx, s.Caller, b)
	})
}

// requestByKey makes the request of a batch that an API key submits. If no approver is needed, Needs is 0.
func (a *Changes) requestByKey(ctx context.Context, t tenant.Tenant, f batch.Frozen, key, origin string) (request Request, err error) {
	request = Request{ID: uuid.Must(uuid.NewV7()).String(), Kind: KindSendBatch, Tenant: t.ID, Place: t.ID, Amount: f.Total(), Origin: origin, Reason: "Batch " + f.Name, Sentence: batchSentence(t, f.Batch)}
	if err := a.byKey(ctx, &request, key); err != nil {
		return request, err
	}
	if request.Payload, err = json.Marshal(sentBatchOf(f.Batch, f.Largest)); err != nil {
		return request, err
	}
	if request.Facts, err = a.check(ctx, a.kinds[KindSendBatch], request); err != nil {
		return request, err
	}
	return a.Store.Planned(ctx, sendBatchRule, request)
}
