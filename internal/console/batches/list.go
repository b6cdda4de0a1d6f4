package batches

import (
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// path returns the path of the account's batches.
func path(v *console.Visit) string { return v.Base() + "/batches" }

// find finds the batch of the path.
func (ps *Pages) find(v *console.Visit) (batch.Batch, error) {
	b, err := ps.Batches.Get(v.Ctx, v.Tenant.ID, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	return b, err
}

var badges = map[batch.Status]page.Badge{
	batch.Draft:     {Tone: page.Plain, Word: "Draft"},
	batch.Requested: {Tone: page.Open, Word: "Awaiting approval"},
	batch.Running:   {Tone: page.Sent, Word: "Running"},
	batch.Paused:    {Tone: page.Bad, Word: "Paused"},
	batch.Finished:  {Tone: page.Good, Word: "Finished"},
	batch.Cancelled: {Tone: page.Declined, Word: "Cancelled"},
	batch.Void:      {Tone: page.Declined, Word: "Ended by a recovery"},
}

// causes are the reasons of a pause, with the next step.
var causes = map[batch.Cause]string{
	batch.CausePerson:                      "A person paused the batch.",
	batch.CauseProgram:                     "An API key paused the batch.",
	batch.CauseRecovery:                    "The service was restored from a backup. Ask the operator before you resume the batch: rows may have been paid.",
	batch.CauseKey:                         "The API key of the batch was revoked or has expired. Cancel the batch, and send the remaining rows with another key.",
	batch.CauseAltered:                     "The stored rows differ from the approved rows. Cancel the batch, and inform the operator.",
	batch.Cause(payments.CauseBlocked):     "The account is blocked. Ask the operator.",
	batch.Cause(payments.CauseStopped):     "Payouts of the account are stopped. Ask the operator.",
	batch.Cause(payments.CauseNoRoute):     "The network or bank of the next row is switched off, or no provider serves it. Ask the operator.",
	batch.Cause(payments.CausePaused):      "The operator paused the provider of the next row. Resume the batch when the provider is back.",
	batch.Cause(payments.CauseCircuitOpen): "The provider of the next row fails. Resume the batch when the provider works again.",
	batch.Cause(payments.CauseRecovering):  "The service is being restored from a backup. Resume the batch when the recovery is over.",
}

// batchColumns are the columns of the list of batches.
var batchColumns = []console.Column[batch.Batch]{
	console.Time("Time", "", func(b batch.Batch) time.Time { return b.CreatedAt }),
	console.Text("Name", "", func(b batch.Batch) string { return b.Name }),
	console.Shown("Status", func(b batch.Batch) templ.Component { return page.Mark(badges[b.Status]) }),
	console.Count("Rows", "", func(b batch.Batch) int64 { return int64(b.Lines) }),
	console.Shown("Total with fees", total).Laid(page.Display{Right: true, Minor: true}),
}

// total returns the total. It is empty for a draft, whose rows may still change.
func total(b batch.Batch) templ.Component {
	if b.Ready == 0 {
		return page.Text("")
	}
	return page.Money(b.Total())
}

// list shows the batches of the account.
func (ps *Pages) list(v *console.Visit) (console.Answer, error) {
	list, err := ps.Batches.List(v.Ctx, v.Tenant.ID, v.Param("before"), console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Batches", Lead: "Payouts to many people by one file.",
		Actions: v.Actions(roles.RequestPayouts, page.Link{Href: path(v) + "/new", Text: "Upload a file"}),
		Empty:   page.Empty{Title: "No batches", Text: "Upload a file with a number, a network or bank, and an amount in each row. Payouts begin only after you request the batch."}}
	list = console.Keyed(v, &l, "before", list, func(b batch.Batch) string { return b.ID })
	l.Grid = console.Grid(batchColumns, list, func(b batch.Batch) string { return path(v) + "/" + b.ID })
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}
