package moolre

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/makola/makola/internal/sim"
)

// account answers with the balance (type 1) or the list of transactions (type 2).
func (m *moolre) account(c *call) {
	switch c.body.Type {
	case "1":
		c.give(codeBalance, "Wallet Found", map[string]any{"balance": json.Number(m.s.Float(Name).String()), "accountname": accountName, "callback": m.setting().CallbackURL})
	case "2":
		m.list(c)
	default:
		c.refuse(http.StatusBadRequest, codeInvalid, []string{"Type is invalid"}, "type")
	}
}

// listed is the number of transactions on a page if the request does not set it. Moolre documents neither this number nor further
// pages.
const listed = 20

// list answers with the newest transactions. It leaves out collections that were not approved yet.
func (m *moolre) list(c *call) {
	b := c.body
	most, err := strconv.Atoi(string(b.Limit))
	if err != nil || most < 1 {
		most = listed
	}
	rows := []map[string]any{}
	for _, e := range slices.Backward(m.s.All()) {
		at := stamp(e.At)
		if e.Provider != Name || e.Kind == sim.Collection && e.Status == sim.Pending || b.Start != "" && at < string(b.Start) || b.End != "" && at > string(b.End) ||
			b.State != "" && string(b.State) != strconv.Itoa(stateOf(e)) {
			continue
		}
		rows = append(rows, transactionObject(e))
	}
	count := len(rows)
	rows = rows[:min(most, count)]
	c.give(codeList, "Transactions Found", map[string]any{"txcount": strconv.Itoa(count), "transactions": rows})
}

// update changes the address of callbacks.
func (m *moolre) update(c *call) {
	if c.body.Callback != nil {
		m.mu.Lock()
		m.settings.CallbackURL = *c.body.Callback
		m.mu.Unlock()
	}
	c.Answer(http.StatusOK, jsonType, sim.Encode(answer{"1", codeUpdated, "Account Updated Successfully", map[string]any{
		"status": 1, "accountnumber": account, "accountname": accountName, "paymentid": "0710006", "api": 1, "callback": m.setting().CallbackURL,
		"settlement": map[string]any{"currency": currency, "frequency": "1", "channel": "1", "recipient": "", "sublist": ""}, "secret": callbackSecret,
	}, nil}))
}

// data answers with the list of banks.
func (m *moolre) data(c *call) {
	if q := c.Request.URL.Query(); q.Get("country") != "gha" || q.Get("data") != "banks" {
		c.refuse(http.StatusBadRequest, codeInvalid, []string{"Country or data is invalid"}, "all")
		return
	}
	c.give(codeBanks, "Banks Found", banks)
}
