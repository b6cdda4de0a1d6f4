package mtn

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
)

// render returns the status object. A reason is plain text, as in the live system, or an object, as in the
// specification.
func (m *mtn) render(e sim.Entry) []byte {
	if show := agreedStatus[e.Resource]; show != nil {
		body, _ := json.Marshal(show(e))
		return body
	}
	b := make([]byte, 0, 384)
	b = append(b, `{"amount":"`...)
	amount, echo := amountOf(e)
	b = append(b, amount...)
	b = append(b, `",`...)
	b = append(b, echo...)
	if e.Status == sim.Success {
		b = append(b, `,"financialTransactionId":"`...)
		b = append(b, transactionID(e)...)
		b = append(b, '"')
	}
	b = append(b, `,"status":"`...)
	b = append(b, stateOf(e)...)
	b = append(b, '"')
	if why := reasonOf(e); why != nil {
		b = append(b, `,"reason":`...)
		if m.reasonObject {
			object, _ := json.Marshal(why)
			b = append(b, object...)
		} else {
			b = strconv.AppendQuote(b, why.Code)
		}
	}
	return append(b, '}')
}

// callback returns the callback that MTN sends once: the status object, by PUT for collections and by POST for
// disbursements. Clients must accept both.
func (m *mtn) callback(e sim.Entry) sim.Callback {
	method := http.MethodPost
	if e.Kind == sim.Collection {
		method = http.MethodPut
	}
	return sim.Callback{
		Method: method, URL: e.CallbackURL,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Reference-Id": {e.Reference}},
		Body:   m.render(e),
	}
}

// amountOf removes the amount from the echo of an entry and returns it as it was received ("5" stays "5"). If a fault
// changed the amount, or an older book stored none in the echo, it returns the amount of the entry.
func amountOf(e sim.Entry) (amount, echo string) {
	sent, has := strings.CutPrefix(e.Wire, `"amount":"`)
	amount, echo, cut := strings.Cut(sent, `",`)
	if !has || !cut {
		return e.Amount.String(), e.Wire
	}
	if is, err := money.Parse(amount); err != nil || is != e.Amount {
		return e.Amount.String(), echo
	}
	return amount, echo
}
