package moolre

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
)

// stamp formats a time as Moolre does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// amountText formats an amount without zeros at its end, as in Moolre's samples.
func amountText(amount money.Pesewas) string {
	return strings.TrimSuffix(strings.TrimRight(amount.String(), "0"), ".")
}

// transactionID and networkID are Moolre's and the network's ids of a transaction.
func transactionID(e sim.Entry) string { return fmt.Sprint(42_000_000 + e.Number) }
func networkID(e sim.Entry) string     { return fmt.Sprint(55_700_000_000 + e.Number) }

// promptID is the id of a prompt.
func promptID(e sim.Entry) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("moolre/"+e.Reference)).String()
}

// written returns a payee as in requests: a wallet has ten digits.
func written(party string) string {
	if m, err := msisdn.Parse(party); err == nil && strings.HasPrefix(party, "233") {
		return m.Local()
	}
	return party
}

// stateOf returns Moolre's state of a transaction. A slow transaction is in the undocumented state 3 for a while.
func stateOf(e sim.Entry) int {
	code, _ := sim.Magic(e.Party)
	switch {
	case e.Status == sim.Success:
		return 1
	case e.Status == sim.Failed:
		return 2
	case code == "002":
		return 3
	}
	return 0
}

// transactionObject returns a transaction as in status answers and in the list.
func transactionObject(e sim.Entry) map[string]any {
	o := map[string]any{"txstatus": stateOf(e), "txtype": 2, "accountnumber": account, "payer": "", "payee": written(e.Party), "amount": amountText(e.Amount),
		"value": amountText(e.Amount), "transactionid": transactionID(e), "externalref": e.Reference, "thirdpartyref": networkID(e), "ts": stamp(e.At)}
	if e.Kind == sim.Collection {
		o["txtype"], o["payer"], o["payee"] = 1, e.Party, accountName
	}
	return o
}

// accountName is the name of the account.
const accountName = "Makola"

// transferObject is the answer to a payout, which is pending or paid.
func transferObject(e sim.Entry) map[string]any {
	given, family, _ := sim.Name(e.Party)
	state := 0
	if e.Status == sim.Success {
		state = 1
	}
	return map[string]any{"txstatus": state, "receiver": written(e.Party), "transactionid": transactionID(e), "externalref": e.Reference, "thirdpartyref": networkID(e),
		"receivername": strings.TrimSpace(given + " " + family), "amount": amountText(e.Amount), "amountfee": amountText(e.Amount), "networkfee": "0.00", "fee": "0.00"}
}

// callback returns the callback about a paid collection. Moolre sends no callbacks about payouts or about other collections.
func (m *moolre) callback(e sim.Entry) sim.Callback {
	if e.Kind != sim.Collection || e.Status != sim.Success {
		return sim.Callback{}
	}
	data := map[string]any{"txtstatus": 1, "payer": e.Party, "terminalid": "", "accountnumber": account, "name": "", "amount": amountText(e.Amount), "value": amountText(e.Amount),
		"transactionid": transactionID(e), "externalref": e.Reference, "thirdpartyref": networkID(e)}
	body := map[string]any{"status": 1, "code": "P01", "message": "Transaction Successful", "data": data, "secret": callbackSecret, "ts": stamp(latest(e)), "go": nil}
	return sim.Callback{Method: http.MethodPost, URL: e.CallbackURL, Body: sim.Encode(body), Header: http.Header{"Content-Type": {jsonType}}}
}

func latest(e sim.Entry) time.Time {
	if e.Settled.IsZero() {
		return e.At
	}
	return e.Settled
}

// forge replaces the secret of a callback by another one.
func forge(c sim.Callback) sim.Callback {
	if c.URL == "" { // the false callback would report a failure, which Moolre never reports
		return c
	}
	var body map[string]any
	if json.Unmarshal(c.Body, &body) == nil {
		body["secret"] = "11111111-1111-4111-8111-111111111111"
		c.Body = sim.Encode(body)
	}
	return c
}
