package sim

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
)

// mtnParty is the other side of a movement.
type mtnParty struct {
	Type string `json:"partyIdType"`
	ID   string `json:"partyId"`
}

type mtnBody struct {
	Amount   string    `json:"amount"`
	Currency string    `json:"currency"`
	External string    `json:"externalId"`
	Payer    *mtnParty `json:"payer,omitempty"`
	Payee    *mtnParty `json:"payee,omitempty"`
	Message  string    `json:"payerMessage"`
	Note     string    `json:"payeeNote"`
	Refund   string    `json:"referenceIdToRefund,omitempty"`
}

// mtnEcho is the part of a request that status answers repeat. The amount is
// the first member, as it was sent: see amountOf.
type mtnEcho struct {
	Amount   string    `json:"amount"`
	Currency string    `json:"currency"`
	External string    `json:"externalId"`
	Payer    *mtnParty `json:"payer,omitempty"`
	Payee    *mtnParty `json:"payee,omitempty"`
	Message  string    `json:"payerMessage"`
	Note     string    `json:"payeeNote"`
}

// move answers the creation of a request to pay or withdraw, transfer, cash
// transfer, deposit or refund.
func (m *mtn) move(c *mtnCall, resource string) {
	p := c.product
	reference := c.r.Header.Get("X-Reference-Id")
	callback, hasCallback := c.r.Header["X-Callback-Url"]
	raw, err := io.ReadAll(io.LimitReader(c.r.Body, mtnMaxBody))
	var b mtnBody
	if err != nil || !uuid4(reference) || json.Unmarshal(raw, &b) != nil {
		c.write(http.StatusBadRequest, "application/json", nil)
		return
	}
	o := Order{Provider: c.account.provider, Kind: p.kind, Reference: reference, Resource: p.name + "/" + resource}
	if hasCallback {
		u, err := url.Parse(callback[0])
		if err != nil || u.Host == "" || !c.user.mayCall(u) {
			c.fail(http.StatusBadRequest, "INVALID_CALLBACK_URL_HOST")
			return
		}
		o.CallbackURL = callback[0]
	}
	other := b.Payer
	if p.party == "payee" {
		other = b.Payee
	}
	var refunded *Plan
	if resource == "refund" {
		other, refunded = m.refund(c, b.Refund)
		b.Payee = other
	}
	o.Amount, err = money.Parse(b.Amount)
	if err != nil || o.Amount <= 0 || other == nil || !strings.EqualFold(other.Type, "MSISDN") || !digits(other.ID) ||
		!mtnNote(b.Message) || !mtnNote(b.Note) {
		c.write(http.StatusBadRequest, "application/json", nil)
		return
	}
	if b.Currency != c.account.currency {
		c.fail(http.StatusInternalServerError, "INVALID_CURRENCY")
		return
	}
	o.Party, o.Text = other.ID, b.Message
	if o.Text == "" && o.Kind == Collection {
		o.Text = "Pay " + b.Currency + " " + b.Amount + "? Enter your PIN to approve."
	}
	o.fixed = mtnFixture(resource, other.ID)
	if resource == "refund" {
		o.fixed = refunded
	}
	echo, _ := json.Marshal(mtnEcho{b.Amount, b.Currency, b.External, b.Payer, b.Payee, b.Message, b.Note})
	o.Wire = string(echo[1 : len(echo)-1])
	placed, ok := c.order(o)
	switch {
	case !ok:
	case placed.Existed:
		c.fail(http.StatusConflict, "RESOURCE_ALREADY_EXIST")
	case c.hit.of(RefuseOutright).Answer != "" && placed.Refused != "":
		c.says(c.hit.of(RefuseOutright).Answer, o)
	case placed.Refused == FloatLow:
		c.fail(http.StatusInternalServerError, "NOT_ENOUGH_FUNDS")
	case placed.Refused != "":
		c.fail(http.StatusBadRequest, "PAYEE_NOT_ALLOWED_TO_RECEIVE")
	default:
		c.answer(http.StatusAccepted, "application/json", nil)
	}
}

// refund returns the payee of a refund, and its plan where that differs from the
// payee's own. The payee is nil where reference is neither a UUID nor one of
// MTN's test references. That the refund of anything but a collection is
// accepted and fails in its status is inferred from the suites of MTN's SDKs;
// the reason is ours.
func (m *mtn) refund(c *mtnCall, reference string) (payee *mtnParty, plan *Plan) {
	if plan = mtnRefundFixture(reference); plan != nil {
		return &mtnParty{"MSISDN", mtnSomebody}, plan
	}
	if !uuid4(reference) {
		return nil, nil
	}
	original, known := m.s.status(c.account.provider, reference)
	if !known || original.Kind != Collection || original.Status == Failed {
		return &mtnParty{"MSISDN", mtnSomebody}, &Plan{Delay: settleSoon, Then: Failed, Reason: "RESOURCE_NOT_FOUND"}
	}
	return &mtnParty{"MSISDN", original.Party}, nil
}

// anyResource makes find look for a movement of any product.
const anyResource = ""

// find returns the movement of a resource that a path names, or answers that
// there is none.
func (m *mtn) find(c *mtnCall, resource, reference string) (Entry, bool) {
	if !uuid4(reference) {
		c.write(http.StatusBadRequest, "application/json", nil)
		return Entry{}, false
	}
	e, ok := m.s.status(c.account.provider, reference)
	if !ok || resource != anyResource && (e.Kind != c.product.kind || e.Resource != "" && e.Resource != c.product.name+"/"+resource) || c.hides(e) {
		c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
		return Entry{}, false
	}
	return e, true
}

// query answers a status query.
func (m *mtn) query(c *mtnCall, resource, reference string) {
	e, ok := m.find(c, resource, reference)
	if !ok {
		return
	}
	if c.hit.has(StatusOther) {
		// The echo is of the wire, as it came: the reference is in it as externalId.
		e.Wire = strings.NewReplacer(e.Reference, others(e.Reference), e.Party, others(e.Party)).Replace(e.Wire)
	}
	c.bends(&e)
	c.answer(http.StatusOK, "application/json", m.render(e))
}

// render writes the status object. A reason is a bare text, as the live system
// has it, or the object of the specification.
func (m *mtn) render(e Entry) []byte {
	b := make([]byte, 0, 384)
	b = append(b, `{"amount":"`...)
	amount, echo := amountOf(e)
	b = append(b, amount...)
	b = append(b, `",`...)
	b = append(b, echo...)
	if e.Status == Success {
		b = append(b, `,"financialTransactionId":"`...)
		b = strconv.AppendInt(b, 4_000_000_000+e.Number, 10)
		b = append(b, '"')
	}
	b = append(b, `,"status":"`...)
	switch e.Status {
	case Success:
		b = append(b, `SUCCESSFUL"`...)
	case Pending:
		b = append(b, `PENDING"`...)
	default:
		b = append(b, `FAILED","reason":`...)
		code := mtnCode(e)
		if m.s.opts.MTNReasonObject {
			object, _ := json.Marshal(mtnReason{code, mtnText(code)})
			b = append(b, object...)
		} else {
			b = strconv.AppendQuote(b, code)
		}
	}
	return append(b, '}')
}

// amountOf takes the amount off the echo of an entry. It is the one that was sent
// ("5" stays "5"), unless the answer speaks of another amount or the book is of a
// time when the echo had none.
func amountOf(e Entry) (amount, echo string) {
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

// callback is what MTN sends, once: the status object, by PUT for collections
// and by POST for disbursements, because clients must take both.
func (m *mtn) callback(e Entry) Callback {
	method := http.MethodPost
	if e.Kind == Collection {
		method = http.MethodPut
	}
	return Callback{
		Method: method, URL: e.CallbackURL,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Reference-Id": {e.Reference}},
		Body:   m.render(e),
	}
}

// mtnCode is MTN's word for a reason. INVALID_PIN is our invention: MTN
// publishes none for it. A key that is not in the table is a code already.
func mtnCode(e Entry) string {
	side := func(payer, payee string) string {
		if e.Kind == Collection {
			return payer
		}
		return payee
	}
	switch e.Reason {
	case Declined:
		return "APPROVAL_REJECTED"
	case Expired:
		return "EXPIRED"
	case NoFunds, FloatLow:
		return "NOT_ENOUGH_FUNDS"
	case WrongPIN:
		return "INVALID_PIN"
	case NotRegistered:
		return side("PAYER_NOT_FOUND", "PAYEE_NOT_FOUND")
	case OverLimit:
		return side("PAYER_LIMIT_REACHED", "PAYEE_LIMIT_REACHED")
	case Barred:
		return side("SENDER_ACCOUNT_NOT_ACTIVE", "PAYEE_NOT_ALLOWED_TO_RECEIVE")
	case ReversedLater:
		return "TRANSACTION_CANCELED"
	case Internal, Refused, "":
		return "INTERNAL_PROCESSING_ERROR"
	}
	return string(e.Reason)
}

// mtnCollectFixtures and mtnTransferFixtures are what MTN's sandbox makes of
// the numbers 46733123450 and up.
var (
	mtnCollectFixtures = []Reason{"INTERNAL_PROCESSING_ERROR", "APPROVAL_REJECTED", "EXPIRED", "", "PENDING", "PAYER_NOT_FOUND",
		"PAYEE_NOT_ALLOWED_TO_RECEIVE", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY",
		"INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE", "COULD_NOT_PERFORM_TRANSACTION"}
	mtnTransferFixtures = []Reason{"INTERNAL_PROCESSING_ERROR", "APPROVAL_REJECTED", "EXPIRED", "", "PENDING", "NOT_ENOUGH_FUNDS",
		"PAYER_LIMIT_REACHED", "PAYEE_NOT_FOUND", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY",
		"INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE"}
)

// mtnRefundFixtures are what MTN's sandbox makes of refunds of the references 1
// and up, which were never paid.
var mtnRefundFixtures = []Reason{"PAYER_NOT_FOUND", "INTERNAL_PROCESSING_ERROR", "APPROVAL_REJECTED", "EXPIRED", "", "PENDING",
	"NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "INTERNAL_PROCESSING_ERROR",
	"SERVICE_UNAVAILABLE", "COULD_NOT_PERFORM_TRANSACTION"}

// mtnSomebody is the customer where a request names none: of refunds of the test
// references, and of consents for the placeholder of MTN's documents.
const mtnSomebody = "46733999999"

// mtnFixture gives what one of MTN's test numbers leads to, or nil for another.
func mtnFixture(resource, party string) *Plan {
	n, ok := mtnTestNumber(party)
	if !ok {
		return nil
	}
	if resource == "transfer" || resource == "cashtransfer" {
		return mtnPlan(mtnTransferFixtures, n)
	}
	return mtnPlan(mtnCollectFixtures, n) // of deposits, too
}

// mtnRefundFixture gives what a refund of one of MTN's test references leads to,
// or nil for another.
func mtnRefundFixture(reference string) *Plan {
	n, err := strconv.Atoi(reference)
	if err != nil || n < 1 || reference != strconv.Itoa(n) {
		return nil
	}
	return mtnPlan(mtnRefundFixtures, n-1)
}

func mtnPlan(table []Reason, n int) *Plan {
	if n >= len(table) {
		return nil
	}
	switch r := table[n]; r {
	case "": // "ongoing": succeeds when asked half a minute later
		return &Plan{Delay: 15 * settleSoon}
	case "PENDING":
		return &Plan{Wait: true}
	default:
		return &Plan{Delay: settleSoon, Then: Failed, Reason: r}
	}
}

// mtnTestNumber tells the how manieth of 46733123450 and up a number is, from 0.
func mtnTestNumber(party string) (n int, ok bool) {
	last, found := strings.CutPrefix(party, "467331234")
	n, err := strconv.Atoi(last)
	return n - 50, found && err == nil && len(last) == 2 && n >= 50
}

// active answers whether a wallet is active. Of MTN's test numbers, the one that
// it calls NotFound and the one that it calls NotActive are not. Its older
// documents list errors for four more, but clients that were tested against the
// sandbox read true or false for them, and the specification lists no other answer.
func (c *mtnCall) active(id string, known bool) {
	if n, fixed := mtnTestNumber(id); fixed {
		known = n > 1
	}
	c.answer(http.StatusOK, "application/json", []byte(`{"result":`+strconv.FormatBool(known)+`}`))
}

// mtnNote reports whether MTN takes a text: at most 160 characters and none of
// the special ones.
func mtnNote(s string) bool {
	return len([]rune(s)) <= 160 && !strings.ContainsAny(s, "'\"<>&\\\n\r\t")
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// uuid4 reports whether s is a version 4 UUID with its hyphens.
func uuid4(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		case 14:
			if c != '4'|0x20 {
				return false
			}
		case 19:
			if !strings.ContainsRune("89ab", rune(c)) {
				return false
			}
		default:
			if !('0' <= c && c <= '9') && !('a' <= c && c <= 'f') {
				return false
			}
		}
	}
	return true
}

// balance answers what an account holds. Collections come into one account,
// payouts go out of the other.
func (m *mtn) balance(c *mtnCall, currency []string) {
	if len(currency) > 1 || len(currency) == 1 && currency[0] != c.account.currency {
		c.fail(http.StatusInternalServerError, "INVALID_CURRENCY")
		return
	}
	m.s.settleDue()
	in, out := m.s.book.accounts(c.account.provider)
	if c.product.kind == Collection {
		out = in
	}
	body, _ := json.Marshal(map[string]string{"availableBalance": out.String(), "currency": c.account.currency})
	c.answer(http.StatusOK, "application/json", body)
}

// holder answers questions about a wallet.
func (m *mtn) holder(c *mtnCall, idType, id, question string) {
	given, family, known := Name(id)
	switch {
	case !strings.EqualFold(idType, "msisdn") || !digits(id):
		c.write(http.StatusBadRequest, "application/json", nil)
	case question == "active":
		c.active(id, known)
	case question != "basicuserinfo":
		mtnNotFound(c.w)
	case !known:
		c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
	default:
		body, _ := json.Marshal(map[string]string{
			"given_name": given, "family_name": family, "birthdate": "1990-01-01", "locale": "en_GH", "gender": "UNKNOWN", "status": "ACTIVE", "sub": "0",
		})
		c.answer(http.StatusOK, "application/json", body)
	}
}
