package paystack

import (
	"context"
	"net/http"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// chargeCodes are Paystack's names of the networks in charges.
var chargeCodes = map[msisdn.Network]string{msisdn.MTN: "mtn", msisdn.Telecel: "vod", msisdn.AirtelTigo: "atl"}

// chargeRequest is the body of a charge.
type chargeRequest struct {
	Amount      int64  `json:"amount"` // pesewas
	Email       string `json:"email"`
	Currency    string `json:"currency"`
	Reference   string `json:"reference"`
	MobileMoney struct {
		Phone    string `json:"phone"`
		Provider string `json:"provider"`
	} `json:"mobile_money"`
}

// Collect requests money from a payer. On Telecel's network the payer generates a voucher instead
// (SubmitVoucher).
func (a *Adapter) Collect(ctx context.Context, r provider.CollectRequest) provider.Outcome {
	body := chargeRequest{Amount: int64(r.Amount), Email: r.Email, Currency: currency, Reference: provider.PlainReference(r.ProviderReference)}
	body.MobileMoney.Phone, body.MobileMoney.Provider = r.MSISDN.Local(), chargeCodes[r.Network]
	if body.MobileMoney.Provider == "" {
		return provider.Outcome{Class: provider.Rejected, Unposted: true, Reason: provider.ReasonSetup, Message: "Paystack has no code for network " + string(r.Network)}
	}
	return charged(a.post(ctx, "collect", r.ProviderReference, "/charge", body), r.ProviderReference)
}

// CollectStatus queries the transaction. Paystack documents the answer for an unknown reference only for charges. So a
// transaction that Paystack does not find is also queried as a charge.
func (a *Adapter) CollectStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	plain := provider.PlainReference(r.ProviderReference)
	answer := a.get(ctx, "collect_status", r.ProviderReference, "/transaction/verify/"+plain)
	if noTransaction(answer) {
		answer = a.get(ctx, "collect_status", r.ProviderReference, "/charge/"+plain)
	}
	return collected(answer)
}

// voucherRequest is the body of a voucher.
type voucherRequest struct {
	OTP       string `json:"otp"`
	Reference string `json:"reference"`
}

// SubmitVoucher completes a charge with the payer's voucher. The log of exchanges has neither the voucher nor the response,
// which may repeat it.
func (a *Adapter) SubmitVoucher(ctx context.Context, r provider.VoucherRequest) provider.Outcome {
	body := voucherRequest{OTP: r.Code, Reference: provider.PlainReference(r.ProviderReference)}
	return vouched(a.send(ctx, body, provider.Request{Method: http.MethodPost, URL: a.account.URL + "/charge/submit_otp",
		Operation: "voucher", Reference: r.ProviderReference, Timeout: queryWithin, HideAnswer: true}), r.ProviderReference)
}
