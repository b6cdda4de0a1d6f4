package api

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/webhook"
)

const (
	deliveriesOfPage    = 50
	mostDeliveries      = 100
	deliveriesOfPayment = 20
	replayedAtOnce      = 1000
	cursorMax           = 120
)

func errNoWebhook() *problem.Error {
	return problem.New(problem.NotFound, "webhook_not_found", "The account has no such webhook. Webhooks are kept for 30 days after they end")
}

// listWebhooks lists the account's webhooks, newest payments first. With the filter failed it lists the webhooks
// whose delivery was given up, the last one first. A page begins after the cursor of the previous page.
func listWebhooks(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	filter := webhook.Filter{Tenant: c.caller.Tenant, State: webhook.State(f.choice("status", false, string(webhook.Failed)))}
	size := f.number("page_size", deliveriesOfPage, 1, mostDeliveries)
	if text := f.line("before", false, cursorMax); text != "" {
		if filter.Before = readCursor(filter.State, text); filter.Before == nil {
			f.bad("before", "must be meta.next of the page before")
		}
	}
	if err := f.err(); err != nil {
		return err
	}
	filter.Limit = size + 1
	list, err := c.api.Webhooks.List(c.ctx, filter)
	if err != nil {
		return err
	}
	next := ""
	if len(list) > size {
		list = list[:size]
		next = cursorOf(filter.State, list[size-1])
	}
	w := c.success("Webhooks fetched successfully")
	w.List("data")
	for _, d := range list {
		w.Object("")
		w.delivery(d)
		w.End()
	}
	w.End()
	w.Object("meta")
	w.Integer("per_page", int64(size))
	if next == "" {
		w.Null("next")
	} else {
		w.Text("next", next)
	}
	w.End()
	w.End()
	return nil
}

// cursorOf returns the position of a page's last webhook: its own id, with the id of its payment or the time at which
// the delivery was given up.
func cursorOf(state webhook.State, d webhook.Delivery) string {
	if state == webhook.Failed {
		return strconv.FormatInt(d.EndedAt.UnixMicro(), 10) + ":" + d.ID
	}
	return d.Subject + ":" + d.ID
}

// readCursor parses a cursor. It returns nil for an invalid one.
func readCursor(state webhook.State, text string) *webhook.Delivery {
	place, id, is := strings.Cut(text, ":")
	if !is || place == "" || id == "" {
		return nil
	}
	if state != webhook.Failed {
		return &webhook.Delivery{Subject: place, ID: id}
	}
	micros, err := strconv.ParseInt(place, 10, 64)
	if err != nil || micros <= 0 {
		return nil
	}
	return &webhook.Delivery{EndedAt: time.UnixMicro(micros), ID: id}
}

// delivery writes the members of a webhook that all lists have.
func (w *writer) delivery(d webhook.Delivery) {
	w.Text("webhook_id", d.ID)
	w.Text("type", string(d.Kind))
	w.Text("url", d.URL)
	w.Text("body", d.Body)
	w.Text("status", string(d.State))
	w.Integer("attempts", int64(d.Attempts))
	w.Integer("last_status", int64(d.Status))
	w.Text("last_error", d.Error)
	w.Time("created_at", d.CreatedAt)
	w.Moment("ended_at", d.EndedAt)
}

// paymentOf returns the payment that the path names: a collection or payout, else a top-up. Other payments have no
// webhooks.
func (c *call) paymentOf(f *form) (book.Payment, error) {
	id, err := f.called("transaction_id", errNoWebhook())
	if err == nil {
		err = f.err()
	}
	if err != nil {
		return book.Payment{}, err
	}
	for _, kinds := range [][2]book.Kind{{book.KindCollection, book.KindPayout}, {book.KindTopUp, book.KindTopUp}} {
		if p, found, err := c.api.Payments.Lookup(c.ctx, c.caller.Tenant, id, kinds[0], kinds[1]); err != nil || found {
			return p, err
		}
	}
	return book.Payment{}, errNoWebhook()
}

// paymentWebhooks returns the webhooks of one payment, newest first, with their failed attempts.
func paymentWebhooks(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	pay, err := c.paymentOf(f)
	if err != nil {
		return err
	}
	list, err := c.api.Webhooks.List(c.ctx, webhook.Filter{Tenant: c.caller.Tenant, Subject: pay.ID, Limit: deliveriesOfPayment})
	if err == nil && len(list) == 0 {
		err = errNoWebhook()
	}
	if err != nil {
		return err
	}
	w := c.success("Webhooks fetched successfully")
	w.List("data")
	for _, d := range list {
		tries, err := c.api.Webhooks.Attempts(c.ctx, c.caller.Tenant, d.ID)
		if err != nil {
			return err
		}
		w.Object("")
		w.delivery(d)
		w.List("failed_attempts")
		for _, t := range tries {
			w.attempt(t)
		}
		w.End()
		w.End()
	}
	w.End()
	w.End()
	return nil
}

func (w *writer) attempt(t webhook.Attempt) {
	w.Object("")
	w.Integer("number", int64(t.Number))
	w.Integer("status", int64(t.Status))
	w.Text("error", t.Error)
	w.Text("answer", t.Answer)
	w.Integer("took_ms", t.Took.Milliseconds())
	w.Time("created_at", t.At)
	w.End()
}

// replayWebhook delivers a webhook of a payment again: the named webhook, or else the newest.
func replayWebhook(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	event := f.line("webhook_id", false, idMax)
	pay, err := c.paymentOf(f)
	if err != nil {
		return err
	}
	event, err = c.api.Webhooks.Replay(c.ctx, c.caller.Tenant, pay.ID, event)
	if err != nil {
		return err
	}
	w := c.success("Webhook is sent again")
	w.Object("data")
	w.Text("webhook_id", event)
	w.Text("transaction_id", pay.Reference)
	w.End()
	w.End()
	return nil
}

// replayFailed delivers webhooks again that were given up since a day, oldest first and at most 1,000.
func replayFailed(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	from := f.day("from")
	if from.IsZero() && !f.refused() {
		f.bad("from", required)
	}
	if err := f.err(); err != nil {
		return err
	}
	done, err := c.api.Webhooks.ReplayFailed(c.ctx, c.caller.Tenant, from, replayedAtOnce)
	if err != nil {
		return err
	}
	w := c.success("Webhooks are sent again")
	w.Object("data")
	w.Integer("replayed", int64(done.Events))
	w.Integer("erased", int64(done.Erased))
	w.Flag("more", done.Events == replayedAtOnce)
	w.End()
	w.End()
	return nil
}

// webhookSecret returns the fingerprint of the signing secret. With the fingerprint a program can check whether it
// is configured with the right secret. Only people can see and change the secret, on the page that the response
// names.
func webhookSecret(c *call) error {
	s, err := c.api.Webhooks.Secret(c.ctx, c.caller.Tenant)
	if err != nil {
		return err
	}
	w := c.success("Secret fetched successfully")
	w.Object("data")
	w.Text("fingerprint", fingerprint(s.Current))
	w.Time("created_at", s.MadeAt)
	w.Object("former")
	w.Text("fingerprint", fingerprint(s.Former))
	w.Moment("until", s.FormerUntil)
	w.End()
	w.Text("page", c.ownPage("access"))
	w.End()
	w.End()
	return nil
}

// fingerprint returns the first half of the SHA-256 of a secret in hexadecimal, or "" if there is no secret.
func fingerprint(secret string) string {
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:16])
}
