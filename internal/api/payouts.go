package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/webhook"
)

const idempotencyHeader = "Idempotency-Key"

// asker is who asks, for the domain. With an Idempotency-Key goes the hash that
// tells whether a request with the same key is the same request.
func (c *call) asker(f *form) idempotency.Caller {
	who := idempotency.Caller{Tenant: c.caller.Tenant, Key: c.caller.KeyID, Daily: c.caller.Daily}
	key := c.r.Header.Get(idempotencyHeader)
	if key == "" {
		return who
	}
	if len(key) > textMax {
		f.bad(idempotencyHeader, "must be at most 255 characters")
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			f.bad(idempotencyHeader, "must consist of visible ASCII characters")
			break
		}
	}
	h := sha256.New()
	h.Write([]byte(c.route.Path + "\n"))
	if c.r.Method == http.MethodGet {
		h.Write([]byte(c.r.URL.RawQuery))
	} else {
		h.Write(c.body)
	}
	who.IdempotencyKey, who.BodyHash = key, hex.EncodeToString(h.Sum(nil)[:16])
	return who
}

// replayed tells the client that this is the answer of an earlier request.
func (c *call) replayed(yes bool) {
	if yes {
		c.header("Idempotent-Replayed", "true")
	}
}

// payoutToWallet sends to a mobile money wallet.
func payoutToWallet(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	in := payments.Payout{
		Amount:      f.amount("amount", payments.MinPayout, c.tenant.PayoutLimitWallet),
		MSISDN:      f.phone("account_number"),
		Name:        f.label("account_name"),
		Network:     f.network("channel", true),
		Reference:   f.reference("client_reference", true),
		CallbackURL: f.url("callback_url", webhook.CheckURL),
		AccountType: f.choice("carriermomo_account_type", false, "subscriber", "agent"),
		Gone:        c.r.Context().Done(),
		Asker:       payments.Asker{Origin: c.origin()},
	}
	who := c.asker(f)
	if err := f.err(); err != nil {
		return err
	}
	return c.sent(c.api.Payments.Payout(c.ctx, who, in))
}

// payoutToBank sends to a bank account.
func payoutToBank(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	in := payments.Payout{
		Amount:        f.amount("amount", payments.MinPayout, c.tenant.PayoutLimitBank),
		AccountNumber: f.account("account_number"),
		BankID:        f.ours("bank_id"),
		Name:          f.label("account_name"),
		Reference:     f.reference("client_reference", true),
		CallbackURL:   f.url("callback_url", webhook.CheckURL),
		Gone:          c.r.Context().Done(),
		Asker:         payments.Asker{Origin: c.origin()},
	}
	who := c.asker(f)
	unlisted(c, f, "bank_id", in.BankID, "banks", c.api.Routes.Bank)
	if err := f.err(); err != nil {
		return err
	}
	return c.sent(c.api.Payments.Payout(c.ctx, who, in))
}

// sent answers a payout.
func (c *call) sent(p book.Payment, replayed bool, err error) error {
	c.replayed(replayed) // a refusal can be one
	if err != nil {
		return err
	}
	w := c.success("Sent Successfully")
	w.object("data")
	w.payout(p)
	w.end()
	w.end()
	return nil
}
