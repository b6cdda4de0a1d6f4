package mtn

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/sim"
)

// balance returns the balance of an account. One account receives collections, the other pays payouts.
func (m *mtn) balance(c *call, currency []string) {
	if len(currency) > 1 || len(currency) == 1 && currency[0] != c.account.currency {
		c.fail(http.StatusInternalServerError, "INVALID_CURRENCY")
		return
	}
	in, out := m.s.Accounts(c.account.provider)
	if c.product.kind == sim.Collection {
		out = in
	}
	body, _ := json.Marshal(map[string]string{"availableBalance": out.String(), "currency": c.account.currency})
	c.Answer(http.StatusOK, "application/json", body)
}

// holder handles queries about a wallet.
func (m *mtn) holder(c *call, idType, id, question string) {
	given, family, known := sim.Name(id)
	switch {
	case !strings.EqualFold(idType, "msisdn") || !digits(id):
		c.Write(http.StatusBadRequest, "application/json", nil)
	case question == "active":
		c.active(id, known)
	case question != "basicuserinfo":
		c.Write(http.StatusNotFound, "application/json", []byte(noResource))
	case !known:
		c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
	default:
		body, _ := json.Marshal(map[string]string{
			"given_name": given, "family_name": family, "birthdate": "1990-01-01", "locale": "en_GH", "gender": "UNKNOWN", "status": "ACTIVE", "sub": "0",
		})
		c.Answer(http.StatusOK, "application/json", body)
	}
}

// active reports whether a wallet is active. Of MTN's test numbers, those named NotFound and NotActive are not. Older
// documents of MTN list errors for four more numbers. Clients that were tested against the sandbox receive true or
// false for these, and the specification lists no other response.
func (c *call) active(id string, known bool) {
	if n, fixed := testNumber(id); fixed {
		known = n > 1
	}
	c.Answer(http.StatusOK, "application/json", []byte(`{"result":`+strconv.FormatBool(known)+`}`))
}
