package paystack

import (
	"net/http"

	"github.com/makola/makola/internal/sim"
)

// listBanks answers with the banks of a type, or all. Every bank is on the first page.
func (p *paystack) listBanks(c *call) {
	q := c.Request.URL.Query()
	rows := []map[string]any{}
	for _, b := range banks {
		if (q.Get("type") == "" || q.Get("type") == b.kind) && (q.Get("currency") == "" || q.Get("currency") == currency) {
			rows = append(rows, bankObject(b))
		}
	}
	c.give(http.StatusOK, "Banks retrieved", rows)
}

// resolve answers with the holder of a wallet or a bank account.
func (p *paystack) resolve(c *call) {
	q := c.Request.URL.Query()
	number, code := q.Get("account_number"), q.Get("bank_code")
	b, known := bankOf(code)
	given, family, has := sim.Name(sim.Party(number))
	switch {
	case !known:
		c.refuse(http.StatusUnprocessableEntity, unresolvable, "validation_error", "invalid_bank_code")
	case !has || b.kind == mobileMoney && !digits(number, 10, 10) || b.kind == ghipss && !accountFits(number):
		c.refuse(http.StatusUnprocessableEntity, unresolvable, "validation_error", "invalid_params")
	default:
		c.give(http.StatusOK, "Account number resolved", map[string]any{"account_number": number, "account_name": given + " " + family, "bank_id": b.id})
	}
}

const unresolvable = "Could not resolve account name. Check parameters or try again."

// ledger answers with the movements of the balance, newest first. Each row has the balance after it.
func (p *paystack) ledger(c *call) {
	q := c.Request.URL.Query()
	perPage, page := positive(q.Get("perPage"), 50), positive(q.Get("page"), 1)
	rows := p.movements()
	from := min((page-1)*perPage, len(rows))
	shown := rows[from:min(from+perPage, len(rows))]
	c.Answer(http.StatusOK, "application/json", sim.Encode(answer{Status: true, Message: "Balance ledger retrieved", Data: shown, Meta: map[string]any{
		"total": len(rows), "skipped": from, "perPage": perPage, "page": page, "pageCount": (len(rows) + perPage - 1) / perPage,
	}}))
}
