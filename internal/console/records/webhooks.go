package records

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/webhook"
)

// replayMost is the maximum number of webhooks that one request sends again.
const replayMost = 500

// replaySpans are the periods whose webhooks can be sent again.
var replaySpans = []struct {
	page.Option
	length time.Duration
}{
	{page.Option{Value: "hour", Text: "Last hour"}, time.Hour},
	{page.Option{Value: "day", Text: "Last 24 hours"}, 24 * time.Hour},
	{page.Option{Value: "week", Text: "Last 7 days"}, 7 * 24 * time.Hour},
	{page.Option{Value: "all", Text: "All stored"}, webhook.Kept + 24*time.Hour},
}

// WebhookRoutes are the pages of an account's webhooks.
func (ps *Pages) WebhookRoutes(base string) []console.Route {
	return []console.Route{
		{Method: http.MethodGet, Path: base + "/webhooks", Permission: roles.ReadWebhooks, Inputs: []console.Input{{Name: "sent", Max: 9}}, Handle: ps.webhooks},
		{Method: http.MethodPost, Path: base + "/webhooks", Permission: roles.ReplayWebhooks, Inputs: []console.Input{{Name: "since", Max: 8}}, Handle: ps.replayFailed},
	}
}

// endpointColumns are the columns of the addresses of webhooks.
var endpointColumns = []console.Column[webhook.Endpoint]{
	console.ID("Address", "", func(e webhook.Endpoint) string { return e.URL }),
	console.Shown("Success rate", func(e webhook.Endpoint) templ.Component {
		tenths, known := e.Rate()
		switch {
		case !known:
			return page.Text("–")
		case tenths >= 990:
			return page.Mark(page.Badge{Tone: page.Good, Word: page.Tenths(tenths)})
		}
		return page.Mark(page.Badge{Tone: page.Bad, Word: page.Tenths(tenths)})
	}),
	console.Count("Delivered", "", func(e webhook.Endpoint) int64 { return e.Delivered }).Laid(console.Minor),
	console.Count("Failed", "", func(e webhook.Endpoint) int64 { return e.Failed }),
	console.Count("Pending", "", func(e webhook.Endpoint) int64 { return e.Pending }).Laid(console.Minor),
	console.Text("Last response", "", func(e webhook.Endpoint) string { return cmp.Or(e.LastError, statusText(e.LastStatus)) }).Laid(console.Wide),
	console.Time("Last event", "", func(e webhook.Endpoint) time.Time { return e.Last }).Laid(console.Under),
}

// failedColumns are the columns of failed webhooks.
var failedColumns = []console.Column[webhook.Delivery]{
	console.Time("Given up", "", func(d webhook.Delivery) time.Time { return d.EndedAt }).Laid(console.Under),
	console.Text("Kind", "", func(d webhook.Delivery) string { return webhookKinds[d.Kind] }).Laid(console.Under),
	console.ID("Webhook", "", func(d webhook.Delivery) string { return d.ID }).Laid(console.Link),
	console.Text("Last response", "", func(d webhook.Delivery) string { return cmp.Or(d.Error, statusText(d.Status)) }),
	console.Count("Attempts", "", func(d webhook.Delivery) int64 { return int64(d.Attempts) }).Laid(console.Minor),
}

var webhookKinds = map[webhook.Kind]string{webhook.Payout: "Payout", webhook.Collection: "Collection", webhook.Airtime: "Airtime or data", webhook.Received: "Text from a handset", webhook.BatchEnded: "End of a batch"}

// statusText returns the status of an answer.
func statusText(status int) string {
	if status == 0 {
		return "no response yet"
	}
	return fmt.Sprintf("HTTP %d %s", status, http.StatusText(status))
}

// webhooks shows the addresses of an account's webhooks, and those that failed.
func (ps *Pages) webhooks(v *console.Visit) (console.Answer, error) {
	endpoints, read, err := ps.Webhooks.Endpoints(v.Ctx, v.Tenant.ID)
	if err != nil {
		return console.Answer{}, err
	}
	failed, err := ps.Webhooks.List(v.Ctx, webhook.Filter{Tenant: v.Tenant.ID, State: webhook.Failed, Limit: console.PageRows})
	if err != nil {
		return console.Answer{}, err
	}
	w := webhooksOf{endpoints: console.Grid(endpointColumns, endpoints, nil), read: read,
		failed: console.Grid(failedColumns, failed, func(d webhook.Delivery) string {
			switch d.Kind {
			case webhook.Received:
				return v.Base() + "/incoming"
			case webhook.BatchEnded:
				return v.Base() + "/batches/" + d.Subject
			}
			return v.Base() + "/payments/" + d.Subject
		})}
	if n, err := strconv.Atoi(v.Param("sent")); err == nil && n >= 0 {
		w.sent = page.Count(n) + " webhooks are being sent again."
	}
	if len(failed) > 0 && v.Can(roles.ReplayWebhooks) && !v.Viewing {
		options := make([]page.Option, len(replaySpans))
		for i, s := range replaySpans {
			options[i] = s.Option
		}
		w.replay = &page.Form{ID: "replay", Action: v.R.URL.Path, Submit: "Resend failed webhooks", Fields: []page.Field{{Name: "since", Label: "Given up in", Options: options, Value: "day",
			Hint: fmt.Sprintf("At most %d are sent, the oldest first. Each has the same ID and content as before.", replayMost)}}}
	}
	return console.Answer{Title: "Webhooks", Body: webhooksPage(w)}, nil
}

// webhooksOf is the data of the page of webhooks.
type webhooksOf struct {
	endpoints, failed page.Grid
	read              int
	replay            *page.Form // nil: the visitor cannot send any
	sent              string     // how many webhooks were sent again just now; empty: none
}

// replayFailed sends the failed webhooks of a time again, with an entry in the audit log.
func (ps *Pages) replayFailed(v *console.Visit) (console.Answer, error) {
	for _, s := range replaySpans {
		if s.Value != v.R.PostFormValue("since") {
			continue
		}
		since := v.Now().Add(-s.length)
		entry := v.Entry("webhook.replay", v.Tenant.ID, v.Tenant.ID)
		entry.Details = map[string]any{"failed": true, "since": since.UTC().Format(time.RFC3339), "at_most": replayMost}
		if err := ps.Audit.Record(v.Ctx, entry); err != nil {
			return console.Answer{}, err
		}
		done, err := ps.Webhooks.ReplayFailed(v.Ctx, v.Tenant.ID, since, replayMost)
		return console.Answer{To: fmt.Sprintf("%s?sent=%d", v.R.URL.Path, done.Events)}, err
	}
	return console.Answer{}, problem.Field("since", "must be one of the offered times")
}
