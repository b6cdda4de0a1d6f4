package mtn

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

const (
	payer    = "233241234567"
	patient  = "233240000003" // the payer waits for the handset
	decliner = "233240000020"
)

// TestInvoice_statesAndCancel: the payer of an invoice is asked and pays once. The invoice ends if it is cancelled or
// its time is over.
func TestInvoice_statesAndCancel(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	c := newSDK(t, s, "collection")
	c.login("collection", "/token/", "")
	const path = "/collection/v2_0/invoice"
	body := func(number, amount, currency string) string {
		return `{"externalId":"e-1","amount":"` + amount + `","currency":"` + currency + `","validityDuration":"3600","intendedPayer":{"partyIdType":"MSISDN","partyId":"` + number + `"},"payee":{"partyIdType":"MSISDN","partyId":"233200000001"},"description":"Rent"}`
	}
	create := func(number string) string {
		id := uuid.NewString()
		c.wants("an invoice", 202, "")(c.call("POST", path, body(number, "12.50", "EUR"), "X-Reference-Id", id))
		return path + "/" + id
	}
	paid := create(payer)
	c.wants("at first", 200, `"status":"PENDING"`)(c.call("GET", paid, ""))
	clock.Advance(3 * time.Second)
	c.wants("paid", 200, `"status":"SUCCESSFUL","paymentReference":"4000000001","invoiceId":"INV-1","expiryDateTime":"`)(c.call("GET", paid, ""))
	c.wants("its members", 200, `"externalId":"e-1","amount":"12.50","currency":"EUR","intendedPayer":{"partyIdType":"MSISDN","partyId":"`+payer+`"},"description":"Rent"`)(c.call("GET", paid, ""))
	c.wants("the reference again", 409, "RESOURCE_ALREADY_EXIST")(c.call("POST", path, body(payer, "1", "EUR"), "X-Reference-Id", strings.TrimPrefix(paid, path+"/")))
	c.wants("cancelled too late", 200, `"externalId":"e-1"`)(c.call("DELETE", paid, `{"externalId":"e-1"}`, "X-Reference-Id", uuid.NewString()))
	c.wants("still paid", 200, `"status":"SUCCESSFUL"`)(c.call("GET", paid, ""))

	cancelled, expired, declined := create(patient), create(patient), create(decliner)
	c.wants("a cancellation without a reference", 400, "")(c.call("DELETE", cancelled, `{"externalId":"e-1"}`))
	c.wants("cancelled", 200, `"externalId":"e-1"`)(c.call("DELETE", cancelled, `{"externalId":"e-1"}`, "X-Reference-Id", uuid.NewString()))
	c.wants("cancelled", 200, `"status":"FAILED"`)(c.call("GET", cancelled, ""))
	clock.Advance(3 * time.Second)
	c.wants("declined", 200, `"errorReason":{"code":"APPROVAL_REJECTED"`)(c.call("GET", declined, ""))
	c.wants("within its time", 200, `"status":"PENDING"`)(c.call("GET", expired, ""))
	clock.Advance(time.Hour)
	c.login("collection", "/token/", "") // the token has ended too
	c.wants("after its time", 200, `"errorReason":{"code":"EXPIRED"`)(c.call("GET", expired, ""))

	id := uuid.NewString()
	c.wants("no amount", 400, "")(c.call("POST", path, body(payer, "0", "EUR"), "X-Reference-Id", id))
	c.wants("no number", 400, "")(c.call("POST", path, body("Ama", "1", "EUR"), "X-Reference-Id", id))
	c.wants("another currency", 500, "INVALID_CURRENCY")(c.call("POST", path, body(payer, "1", "USD"), "X-Reference-Id", id))
	c.wants("an unknown one", 404, "RESOURCE_NOT_FOUND")(c.call("GET", path+"/"+id, ""))
	c.wants("an invoice as a request to pay", 404, "RESOURCE_NOT_FOUND")(c.call("GET", "/collection/v1_0/requesttopay/"+strings.TrimPrefix(paid, path+"/"), ""))
}

// TestPreapproval_listedUntilItEnds: a pre-approval is listed from the customer's approval until it ends or is cancelled.
func TestPreapproval_listedUntilItEnds(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	c := newSDK(t, s, "collection")
	c.login("collection", "/token/", "")
	const path = "/collection/v2_0/preapproval"
	list := "/collection/v1_0/preapprovals/msisdn/" + payer
	body := `{"payer":{"partyIdType":"MSISDN","partyId":"` + payer + `"},"payerCurrency":"EUR","payerMessage":"Rent","validityTime":3600}`
	give := func() string {
		id := uuid.NewString()
		c.wants("a pre-approval", 202, "")(c.call("POST", path, body, "X-Reference-Id", id))
		return id
	}
	first := give()
	c.wants("nothing yet", 200, `[]`)(c.call("GET", list, ""))
	c.wants("cancelled before it is given", 404, "RESOURCE_NOT_FOUND")(c.call("DELETE", "/collection/v1_0/preapproval/"+first, ""))
	clock.Advance(3 * time.Second)
	c.wants("given", 200, `"status":"SUCCESSFUL","expirationDateTime":`)(c.call("GET", path+"/"+first, ""))
	c.wants("listed", 200, `[{"preApprovalId":"`+first+`","fromFri":"FRI:`+payer+`/MSISDN","fromCurrency":"EUR"`)(c.call("GET", list, ""))
	c.wants("cancelled", 200, "")(c.call("DELETE", "/collection/v1_0/preapproval/"+first, ""))
	c.wants("no longer listed", 200, `[]`)(c.call("GET", list, ""))
	give()
	clock.Advance(3 * time.Second)
	c.wants("listed", 200, `"message":"Rent"`)(c.call("GET", list, ""))
	clock.Advance(time.Hour)
	c.login("collection", "/token/", "") // the token has ended too
	c.wants("ended", 200, `[]`)(c.call("GET", list, ""))
	c.wants("no time", 400, "")(c.call("POST", path, strings.Replace(body, "3600", "0", 1), "X-Reference-Id", uuid.NewString()))
}

// TestBill_paidFromOurAccount: a bill is paid from the account of the merchant.
func TestBill_paidFromOurAccount(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	c := newSDK(t, s, "collection")
	c.login("collection", "/token/", "")
	const path = "/collection/v2_0/payment"
	id, before := uuid.NewString(), s.Float(Sandbox)
	body := `{"externalTransactionId":"e-1","money":{"amount":"20","currency":"EUR"},"customerReference":"661551442","serviceProviderUserName":"ecg"}`
	c.wants("a bill", 202, "")(c.call("POST", path, body, "X-Reference-Id", id))
	c.wants("the reference again", 409, "RESOURCE_ALREADY_EXIST")(c.call("POST", path, body, "X-Reference-Id", id))
	clock.Advance(3 * time.Second)
	c.wants("paid", 200, `{"referenceId":"`+id+`","status":"SUCCESSFUL","financialTransactionId":"4000000001"}`)(c.call("GET", path+"/"+id, ""))
	if paid := before - s.Float(Sandbox); paid != 2000 {
		t.Errorf("the account paid %s, want 20.00", paid)
	}
	c.wants("no company", 400, "")(c.call("POST", path, strings.Replace(body, "ecg", "", 1), "X-Reference-Id", uuid.NewString()))
}
