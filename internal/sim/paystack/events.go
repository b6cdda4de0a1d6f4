package paystack

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/hex"
	"net/http"

	"github.com/makola/makola/internal/sim"
)

// signature is the header with the signature of an event.
const signature = "X-Paystack-Signature"

// event returns the signed event that Paystack sends when a transfer is final. The event of a failed or reversed
// transfer has the older form of times, as in Paystack's samples.
func (p *paystack) event(e sim.Entry) sim.Callback {
	switch {
	case e.Kind == sim.Collection && e.Status != sim.Success:
		return sim.Callback{}
	case e.Kind == sim.Collection:
		return signed(e.CallbackURL, chargeEvent(e))
	case isRefund(e):
		return signed(e.CallbackURL, refundEvent(e))
	}
	o := verifiedObject(e)
	o["integration"] = map[string]any{"id": integration, "is_live": false, "business_name": "Makola Test"}
	delete(o, "request")
	delete(o, "fees_breakdown")
	to, _ := o["recipient"].(map[string]any)
	delete(to, "isDeleted")
	if e.Status != sim.Success {
		delete(o, "fee_charged")
		delete(o, "gateway_response")
		for _, object := range []map[string]any{o, to} {
			object["created_at"], object["updated_at"] = object["createdAt"], object["updatedAt"]
			delete(object, "createdAt")
			delete(object, "updatedAt")
		}
	}
	return signed(e.CallbackURL, map[string]any{"event": "transfer." + statusOf(e), "data": o})
}

// signed returns a signed event with a body.
func signed(url string, event any) sim.Callback {
	body := sim.Encode(event)
	return sim.Callback{Method: http.MethodPost, URL: url, Body: body, Header: http.Header{"Content-Type": {"application/json"}, signature: {sign(body)}}}
}

func sign(body []byte) string {
	mac := hmac.New(sha512.New, []byte(secretKey))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// forge signs an event with another key.
func forge(c sim.Callback) sim.Callback {
	if c.URL == "" { // the false event would report a failure, which Paystack never reports
		return c
	}
	mac := hmac.New(sha512.New, []byte("another key"))
	mac.Write(c.Body)
	c.Header.Set(signature, hex.EncodeToString(mac.Sum(nil)))
	return c
}
