package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/makola/makola/internal/api/wire"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Limits of the texts of batches.
const (
	batchNameMax   = 100
	batchReasonMax = 500
	batchPage      = 100 // rows
	batchPageMax   = 1000
	shownFaults    = 100 // maximum number of row errors in one response
)

// makeBatch creates a draft of payouts from the rows of the body.
func makeBatch(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	up := batch.Upload{Tenant: c.caller.Tenant, Requester: c.caller.KeyID, Key: c.caller.KeyID, Name: f.short("name", true, batchNameMax), Again: f.short("again", false, batchReasonMax)}
	rows, bad := f.payees(batch.MaxRows)
	up.Once = c.asker(f)
	if f.err() != nil {
		bad.add(c.api.Batches.Faults(c.ctx, up, rows))
		bad.total()
		return f.err()
	}
	b, replayed, err := c.api.Batches.Make(c.ctx, up, rows)
	return c.answerBatch("Batch created successfully", b, replayed, blame(err, "rows", "duplicate_batch"))
}

// payees reads the rows of a batch. An error in a row names a field such as rows.2.amount. Rows are counted from
// 1.
func (f *form) payees(most int) ([]batch.Given, *rowFaults) {
	rows := f.objects("rows", most)
	bad := &rowFaults{form: f, rows: map[int]bool{}}
	if len(rows) > most {
		f.bad("rows", "must be at most "+strconv.Itoa(most))
		return nil, bad
	}
	list := make([]batch.Given, len(rows))
	for i, r := range rows {
		bad.row = i + 1
		list[i] = batch.Given{Number: bad.text(r, "account_number"), Network: bad.place(r), Amount: bad.cedis(r), Name: bad.text(r, "account_name"),
			Reference: bad.reference(r), Note: bad.text(r, "note")}
	}
	return list, bad
}

// rowFaults records the errors in the rows of a list.
type rowFaults struct {
	form  *form
	row   int
	rows  map[int]bool // with errors
	count int
}

// add records the errors that the domain found in the other rows, so that the client sees all of them at once.
func (b *rowFaults) add(err error) {
	e := problem.From(err)
	if e == nil || e.Kind != problem.Invalid {
		return // the errors of the form are answered
	}
	for _, field := range e.FieldNames() {
		parts := strings.SplitN(field, ".", 3)
		if len(parts) != 3 {
			continue
		}
		if row, err := strconv.Atoi(parts[1]); err != nil || b.rows[row] {
			continue
		}
		for _, text := range e.Fields[field] {
			if b.count++; b.count <= shownFaults {
				b.form.bad(field, text)
			}
		}
	}
}

// total adds the number of all errors if some are not shown.
func (b *rowFaults) total() {
	if b.count > shownFaults {
		b.form.bad("rows", "have "+strconv.Itoa(b.count)+" faults, of which "+strconv.Itoa(shownFaults)+" are shown")
	}
}

func (b *rowFaults) bad(member, text string) {
	b.rows[b.row] = true
	if b.count++; b.count <= shownFaults {
		b.form.bad("rows."+strconv.Itoa(b.row)+"."+member, text)
	}
}

// text returns an optional text of a row. It must be on one line.
func (b *rowFaults) text(r row, member string) string {
	value := r.Find(member)
	switch {
	case value == nil || value[0] == 'n':
		return ""
	case value[0] != '"':
		b.bad(member, notText)
		return ""
	}
	text := strings.TrimSpace(wire.Unquote(value))
	switch {
	case wire.HasControl(text, false):
		b.bad(member, badText)
	case utf8.RuneCountInString(text) > textMax:
		b.bad(member, "must be at most "+strconv.Itoa(textMax)+" characters")
	default:
		return text
	}
	return ""
}

// place returns the network of a row, or the id of its bank.
func (b *rowFaults) place(r row) string {
	channel, bank := b.text(r, "channel"), b.text(r, "bank_id")
	if channel != "" && bank != "" {
		b.bad("bank_id", "must not be given together with channel")
	}
	return cmp.Or(channel, bank)
}

// cedis returns the amount of a row as text. The client sends a JSON number or a numeric string. The domain checks
// it.
func (b *rowFaults) cedis(r row) string {
	value := r.Find("amount")
	switch {
	case value == nil, value[0] == '"', value[0] == 'n':
		return b.text(r, "amount")
	case value[0] != '-' && (value[0] < '0' || value[0] > '9'):
		b.bad("amount", money.ErrFormat.Error())
		return ""
	}
	amount, err := money.ParseNumber(string(value))
	if err != nil {
		b.bad("amount", err.Error())
		return ""
	}
	return amount.String()
}

// reference returns the client's reference of a row.
func (b *rowFaults) reference(r row) string {
	text := b.text(r, "client_reference")
	switch {
	case text == "":
	case !wordy(text):
		b.bad("client_reference", "must consist of letters, digits, dots, underscores and hyphens")
	case len(text) < referenceMin || len(text) > referenceMax:
		b.bad("client_reference", "must be 12 to 36 characters long")
	default:
		return text
	}
	return ""
}

// batchID returns the id of the batch in the path.
func (f *form) batchID() (string, error) {
	return f.id("batch_id", problem.New(problem.NotFound, "batch_not_found", "Batch not found"))
}

// batchOf reads the batch in the path. It returns the form's error if any field is invalid.
func (c *call) batchOf(f *form) (batch.Batch, error) {
	id, unknown := f.batchID()
	if err := f.err(); err != nil {
		return batch.Batch{}, err
	}
	if unknown != nil {
		return batch.Batch{}, unknown
	}
	return c.api.Batches.Get(c.ctx, c.caller.Tenant, id)
}

// batchStatus returns a batch and the number of its rows by status.
func batchStatus(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	b, err := c.batchOf(f)
	return c.answerBatch("Batch fetched successfully", b, false, err)
}

// listBatches returns a page of the account's batches, newest first, also those of its people.
func listBatches(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	var states []string
	for _, s := range batch.States() {
		states = append(states, string(s))
	}
	status := f.choice("status", false, states...)
	number, size := f.number("page", 1, 1, maxPage), f.number("page_size", defaultPage, 1, maxPageSize)
	if err := f.err(); err != nil {
		return err
	}
	list, total, err := c.api.Batches.Page(c.ctx, c.caller.Tenant, batch.Status(status), number, size)
	if err != nil {
		return err
	}
	w := c.success("Batches fetched successfully")
	w.List("data")
	for _, b := range list {
		w.Object("")
		w.batch(b)
		w.End()
	}
	w.End()
	c.statusPages(status, number, size, defaultPage, int64(total), len(list))
	w.End()
	return nil
}

// batchRows returns a page of the rows of a batch with their outcomes.
func batchRows(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	status := f.choice("status", false, batch.Statuses()...)
	number, size := f.number("page", 1, 1, maxPage), f.number("page_size", batchPage, 1, batchPageMax)
	b, err := c.batchOf(f)
	if err != nil {
		return err
	}
	rows, total, err := c.api.Batches.Find(c.ctx, b, status, number, size)
	if err != nil {
		return err
	}
	w := c.success("Batch rows fetched successfully")
	w.List("data")
	for _, r := range rows {
		w.batchRow(r)
	}
	w.End()
	c.statusPages(status, number, size, batchPage, int64(total), len(rows))
	w.End()
	return nil
}

// submitBatch sends a batch of the calling key, or requests its approval.
func submitBatch(c *call) error {
	return c.changeBatch("Batch submitted successfully", "again", func(who idempotency.Caller, id, again string) (batch.Batch, bool, error) {
		return c.api.Changes.SubmitBatch(c.ctx, changes.Submission{Caller: who, Batch: id, Origin: c.origin(), Again: again})
	})
}

func pauseBatch(c *call) error {
	return c.changeBatch("Batch paused successfully", "", func(who idempotency.Caller, id, _ string) (batch.Batch, bool, error) {
		return c.api.Batches.PauseFor(c.ctx, who, id)
	})
}

func resumeBatch(c *call) error {
	return c.changeBatch("Batch resumed successfully", "", func(who idempotency.Caller, id, _ string) (batch.Batch, bool, error) {
		return c.api.Batches.ResumeFor(c.ctx, who, id)
	})
}

// cancelBatch cancels a batch. The money of the rows that are not accepted yet returns to the wallet.
func cancelBatch(c *call) error {
	return c.changeBatch("Batch cancelled successfully", "reason", func(who idempotency.Caller, id, reason string) (batch.Batch, bool, error) {
		return c.api.Batches.CancelFor(c.ctx, who, id, reason, "key "+c.caller.KeyID)
	})
}

// changeBatch changes the batch in the path and returns it. member is the name of an optional text in the body, or
// empty.
func (c *call) changeBatch(message, member string, change func(who idempotency.Caller, id, text string) (batch.Batch, bool, error)) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	id, unknown := f.batchID()
	text := ""
	if member != "" {
		text = f.short(member, false, batchReasonMax)
	}
	who := c.asker(f)
	if err := f.err(); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	b, replayed, err := change(who, id, text)
	return c.answerBatch(message, b, replayed, err)
}

// answerBatch writes a batch and the number of its rows by status.
func (c *call) answerBatch(message string, b batch.Batch, replayed bool, err error) error {
	if err != nil {
		return err
	}
	n, err := c.api.Batches.Numbers(c.ctx, b)
	if err != nil {
		return err
	}
	c.replayed(replayed)
	w := c.success(message)
	w.Object("data")
	w.batch(n.Batch)
	w.Object("counts")
	for _, status := range slices.Sorted(slices.Values(batch.Statuses())) {
		w.Integer(status, int64(n.Rows[status]))
	}
	w.End()
	w.End()
	w.End()
	return nil
}
