package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/payments/book"
)

// A refund is requested on the page of its collection. It awaits approval if the line for payouts requires it, and is paid to the
// payer once. The approver sees which collection it refunds.
func TestRefundPage_approvedByAnother(t *testing.T) {
	eachPaying(t, func(t *testing.T, b *browsed) {
		app := "/app/" + demoTenant
		signatory := b.holds("1.00")
		b.call("payment-api/momopay", `{"amount":"20","network":"MTN","phone_number":"0240000001","transaction_id":"refunded-page-1"}`)
		collection := app + "/payments/" + b.the("refunded-page-1")
		form := collection + "/refund"
		b.until(collection, ">Success<")
		b.want(http.StatusOK, collection, form)
		b.want(http.StatusOK, form, "refunded-page-1", "20.00", "may see the reason")
		b.post(http.StatusUnprocessableEntity, form, "id", uuid.Must(uuid.NewV7()).String(), "amount", "20.01", "reason", "goods returned")
		id := b.want(http.StatusOK, form).hidden(t, "id")
		second := b.post(http.StatusOK, form, "id", id, "amount", "15.00", "reason", "goods returned")
		fee := second.hidden(t, "fee")
		if !strings.Contains(second.text, "Refund test GHS 15.00 of the collection refunded-page-1 to MTN 233****0001, with a fee of test GHS "+fee) || !strings.Contains(second.text, "Nothing was requested yet") {
			t.Errorf("the second page: %s", second.text)
		}
		b.want(http.StatusOK, collection, form) // nothing was requested
		b.post(http.StatusUnprocessableEntity, form, "id", id, "amount", "15.00", "fee", "9.99", "reason", "goods returned")
		refund := b.post(http.StatusSeeOther, form, "id", id, "amount", "15.00", "fee", fee, "reason", "goods returned").Header.Get("Location")
		if again := b.post(http.StatusSeeOther, form, "id", id, "amount", "15.00", "fee", fee, "reason", "goods returned").Header.Get("Location"); again != refund {
			t.Errorf("the form again leads to %q, not %q", again, refund)
		}
		request := strings.Replace(refund, "/payments/", "/acts/", 1)
		b.want(http.StatusOK, refund, "Awaiting approval", "Nothing was sent", request, "goods returned")
		if p := b.want(http.StatusOK, collection, "It cannot be refunded. Another refund of the collection is still open."); strings.Contains(p.text, form) {
			t.Error("the page offers another refund")
		}
		if p := b.post(http.StatusUnprocessableEntity, form, "id", uuid.Must(uuid.NewV7()).String(), "amount", "1.00", "reason", "goods returned"); !strings.Contains(p.text, "Another refund of the collection is still open") {
			t.Errorf("a second refund: %s", p.text)
		}
		if p := b.want(http.StatusOK, request, "Withdraw request"); strings.Contains(p.text, "Approve and apply") {
			t.Error("the requester is offered to approve")
		}
		name := b.http.Jar.Cookies(mustParse(t, b.base))[0].Name
		b.http.Jar = held{name: {Name: name, Value: signatory.Token}}
		if p := b.want(http.StatusOK, collection); strings.Contains(p.text, form) || strings.Contains(p.text, "cannot be refunded") {
			t.Error("somebody who requests no payouts is offered a refund")
		}
		b.want(http.StatusForbidden, form)
		p := b.want(http.StatusOK, request, "Refund test GHS 15.00 of the collection refunded-page-1 to MTN 233****0001, with a fee of test GHS ", "Approve and apply", "Left to refund", "test GHS 20.00", collection, refund)
		b.post(http.StatusSeeOther, request+"/approve", "digest", p.hidden(t, "digest"))
		b.until(refund, ">Success<")
		b.want(http.StatusOK, collection, "Refunded", "15.00")
		list, err := b.payments.RefundsOf(t.Context(), strings.TrimPrefix(collection, app+"/payments/"), 10)
		if err != nil || len(list) != 1 || list[0].Amount != 15_00 || list[0].Status != book.StatusSuccess {
			t.Errorf("%+v, %v", list, err)
		}
		b.forget()
		b.signIn(b.nextLink())
		b.want(http.StatusOK, form, "5.00")
	})
}
