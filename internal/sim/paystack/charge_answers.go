package paystack

import (
	"fmt"

	"github.com/makola/makola/internal/sim"
)

// transactionID is the number of a transaction.
func transactionID(e sim.Entry) int64 { return 4_090_000_000 + e.Number }

// authorization is the wallet that paid a charge.
func authorization(e sim.Entry) map[string]any {
	number := written(e.Party)
	return map[string]any{
		"authorization_code": fmt.Sprintf("AUTH_%010x", e.Number), "bank": wallets[wireOf(e).Kind], "bin": number[:3] + "XXX", "last4": "X" + number[len(number)-3:],
		"brand": wallets[wireOf(e).Kind], "channel": mobileMoney, "country_code": "GH", "exp_month": 12, "exp_year": 9999, "reusable": false, "account_name": nil,
	}
}

func customer(e sim.Entry) map[string]any {
	return map[string]any{"customer_code": fmt.Sprintf("CUS_%015x", e.Number), "email": wireOf(e).Name, "id": 16_000 + e.Number, "risk_action": "default"}
}

// chargedObject is a paid charge as in the response to a charge.
func chargedObject(e sim.Entry) map[string]any {
	return map[string]any{
		"amount": int64(e.Amount), "channel": mobileMoney, "created_at": stamp(e.At), "currency": currency, "domain": "test", "fees": int64(e.Fee),
		"gateway_response": "Approved", "id": transactionID(e), "ip_address": "192.0.2.1", "message": "madePayment", "paid_at": stamp(latest(e)),
		"reference": e.Reference, "status": "success", "transaction_date": stamp(e.At), "authorization": authorization(e), "customer": customer(e),
	}
}

// longer adds the details of the payer that only verifications and events have.
func longer(o map[string]any) (authorized, payer map[string]any) {
	authorized, _ = o["authorization"].(map[string]any)
	payer, _ = o["customer"].(map[string]any)
	authorized["exp_month"], authorized["exp_year"], authorized["card_type"], authorized["signature"] = "12", "9999", "", nil
	payer["first_name"], payer["last_name"], payer["phone"], payer["metadata"] = nil, nil, "", nil
	return authorized, payer
}

// transactionObject is a charge with the given status, as in the response to a verification.
func transactionObject(e sim.Entry, status string) map[string]any {
	o := chargedObject(e)
	_, payer := longer(o)
	payer["phone"], payer["international_format_phone"] = nil, nil
	o["status"] = status
	if e.Status != sim.Success {
		o["fees"], o["paid_at"], o["message"], o["gateway_response"] = nil, nil, nil, "The transaction was not completed"
		if e.Status == sim.Failed && !e.Reversed {
			o["message"], o["gateway_response"] = failure(e), failure(e)
		}
	}
	for _, absent := range []string{"receipt_number", "log", "fees_split", "plan", "order_id", "pos_transaction_data", "source", "fees_breakdown", "connect"} {
		o[absent] = nil
	}
	for _, empty := range []string{"split", "plan_object", "subaccount"} {
		o[empty] = map[string]any{}
	}
	o["metadata"], o["requested_amount"] = "", int64(e.Amount)
	o["paidAt"], o["createdAt"] = o["paid_at"], o["created_at"]
	return o
}

// chargeEvent is the event of a paid charge. Paystack sends none for others.
func chargeEvent(e sim.Entry) map[string]any {
	o := chargedObject(e)
	longer(o)
	delete(o, "transaction_date")
	o["metadata"], o["log"], o["fees_split"], o["paidAt"] = "", nil, nil, o["paid_at"]
	for _, empty := range []string{"plan", "subaccount", "subaccount_group"} {
		o[empty] = map[string]any{}
	}
	return map[string]any{"event": "charge.success", "data": o}
}

// refundObject is a refund in a list, or in the answer to a request with its transaction as an object.
func refundObject(e sim.Entry, of sim.Entry) map[string]any {
	var at any
	if e.Status != sim.Pending {
		at = stamp(latest(e))
	}
	deducted := int64(0)
	if e.Status == sim.Success {
		deducted = int64(e.Amount)
	}
	w := wireOf(e)
	return map[string]any{
		"id": refundID(e), "integration": integration, "domain": "test", "transaction": transactionID(of), "dispute": nil, "settlement": nil,
		"amount": int64(e.Amount), "deducted_amount": deducted, "currency": currency, "fully_deducted": deducted > 0, "refunded_by": "merchant@example.com",
		"refunded_at": at, "customer_note": e.Text, "merchant_note": w.Name, "status": refundStatus(e), "createdAt": stamp(e.At),
	}
}

func refundID(e sim.Entry) int64 { return 3_018_000 + e.Number }

// refundStatus is Paystack's status of a refund.
func refundStatus(e sim.Entry) string {
	switch {
	case e.Status == sim.Pending && e.Plan.Wait:
		return "needs-attention"
	case e.Status == sim.Success:
		return "processed"
	default:
		return string(e.Status)
	}
}

// refundEvent is the event of a refund that is final. Its amount is a text if the refund was processed, as in the samples.
func refundEvent(e sim.Entry) map[string]any {
	o := map[string]any{
		"status": refundStatus(e), "transaction_reference": e.Refunds, "refund_reference": fmt.Sprint(refundID(e)), "amount": int64(e.Amount), "currency": currency,
		"processor": "instant-transfer", "customer": map[string]any{"first_name": nil, "last_name": nil, "email": "customer@example.com"}, "integration": integration, "domain": "test",
	}
	if e.Status == sim.Success {
		o["amount"] = fmt.Sprint(int64(e.Amount))
	}
	return map[string]any{"event": "refund." + refundStatus(e), "data": o}
}

// failure returns the message of a failed charge. Only the message for insufficient funds is documented.
func failure(e sim.Entry) string {
	if e.Reason == sim.NoFunds {
		return "Insufficient funds"
	}
	return "Declined"
}

// refundKind is the kind of a refund in the book.
const refundKind = "refund"

// isRefund reports whether an entry is a refund of a charge.
func isRefund(e sim.Entry) bool { return e.Kind == sim.Payout && wireOf(e).Kind == refundKind }
