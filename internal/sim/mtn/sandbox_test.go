package mtn

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// sdk is a client of MTN's sandbox, like an SDK. It knows only a base URL and the credentials of its user.
type sdk struct {
	t     *testing.T
	url   string
	key   string // key of the subscription
	user  string
	api   string
	token string
}

// newSDK returns a client of one product with the credentials that the simulator prints.
func newSDK(t *testing.T, s *sim.Sim, product string) *sdk {
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	for _, c := range Credentials() {
		if c.Product == product {
			return &sdk{t: t, url: server.URL + "/mtn", key: c.SubscriptionKey, user: c.User, api: c.APIKey}
		}
	}
	t.Fatalf("no credentials for %s", product)
	return nil
}

// ask makes a call, with pairs of header and value, and returns its status and body.
func (c *sdk) ask(method, path, body string, header ...string) (int, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Ocp-Apim-Subscription-Key", c.key)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

// call is ask with a token and the sandbox as target environment.
func (c *sdk) call(method, path, body string, header ...string) (int, string) {
	c.t.Helper()
	return c.ask(method, path, body, append([]string{"Authorization", "Bearer " + c.token, "X-Target-Environment", "sandbox"}, header...)...)
}

// wants returns a function that fails the test if a call has another status or body.
func (c *sdk) wants(what string, status int, contains string) func(int, string) {
	c.t.Helper()
	return func(gotStatus int, got string) {
		c.t.Helper()
		if gotStatus != status || !strings.Contains(got, contains) || contains == "" && got != "" {
			c.t.Errorf("%s: HTTP %d %q, want %d %q", what, gotStatus, got, status, contains)
		}
	}
}

// login requests a token with this body.
func (c *sdk) login(product, path, body string) {
	c.t.Helper()
	basic := base64.StdEncoding.EncodeToString([]byte(c.user + ":" + c.api))
	status, text := c.ask(http.MethodPost, "/"+product+path, body, "Authorization", "Basic "+basic)
	var a struct {
		Token string `json:"access_token"`
		Type  string `json:"token_type"`
		Life  int    `json:"expires_in"`
	}
	if err := json.Unmarshal([]byte(text), &a); status != http.StatusOK || err != nil || a.Token == "" || a.Type != "access_token" || a.Life != 3600 {
		c.t.Fatalf("token: %d %s", status, text)
	}
	c.token = a.Token
}

// provision makes an API user and its key.
func (c *sdk) provision(host string) {
	c.t.Helper()
	c.user = uuid.NewString()
	c.wants("the user", http.StatusCreated, "")(c.ask("POST", "/v1_0/apiuser", `{"providerCallbackHost":"`+host+`"}`, "X-Reference-Id", c.user))
	status, text := c.ask("POST", "/v1_0/apiuser/"+c.user+"/apikey", "")
	var a struct{ APIKey string }
	if err := json.Unmarshal([]byte(text), &a); status != http.StatusCreated || err != nil || len(a.APIKey) != 32 {
		c.t.Fatalf("the key: %d %s", status, text)
	}
	c.api = a.APIKey
}

// movement returns the body of a movement in euro, to or from a number.
func movement(side, number, amount string) string {
	return `{"amount":"` + amount + `","currency":"EUR","externalId":"6353636","` + side + `":{"partyIdType":"MSISDN","partyId":"` + number + `"},"payerMessage":"Pay for product a","payeeNote":"payer note"}`
}

// A user is created once, can be read, has the newest key, and survives a restart.
func TestAPIUser_asInTheSandbox(t *testing.T) {
	dir := t.TempDir()
	s, _ := simtest.New(t, sim.Options{Dir: dir}, New(Options{}))
	c := newSDK(t, s, "collection")
	c.provision("clinic.example")
	made, body := c.user, `{"providerCallbackHost":"clinic.example"}`
	c.wants("the same user again", 409, "RESOURCE_ALREADY_EXIST")(c.ask("POST", "/v1_0/apiuser", body, "X-Reference-Id", strings.ToUpper(made)))
	c.wants("the printed user", 409, "RESOURCE_ALREADY_EXIST")(c.ask("POST", "/v1_0/apiuser", body, "X-Reference-Id", disbursementUser))
	c.wants("no UUID", 400, "")(c.ask("POST", "/v1_0/apiuser", body, "X-Reference-Id", "me"))
	c.wants("no host", 400, "")(c.ask("POST", "/v1_0/apiuser", `{}`, "X-Reference-Id", uuid.NewString()))
	c.wants("no subscription", 401, "invalid subscription key")(c.ask("POST", "/v1_0/apiuser", body, "X-Reference-Id", uuid.NewString(), "Ocp-Apim-Subscription-Key", "x"))
	c.wants("the user shown", 200, `{"providerCallbackHost":"clinic.example","targetEnvironment":"sandbox"}`)(c.ask("GET", "/v1_0/apiuser/"+made, ""))
	c.wants("an unknown user", 404, "RESOURCE_NOT_FOUND")(c.ask("GET", "/v1_0/apiuser/"+uuid.NewString(), ""))
	c.wants("an unknown user's key", 404, "RESOURCE_NOT_FOUND")(c.ask("POST", "/v1_0/apiuser/"+uuid.NewString()+"/apikey", ""))
	c.wants("another method", 404, "Resource not found")(c.ask("DELETE", "/v1_0/apiuser/"+made, ""))
	// The user can use every product, each with the subscription key of the product.
	c.login("collection", "/token/", "")
	old, first := c.token, c.api
	c.key = disbursementKey
	c.login("disbursement", "/token/", "")
	c.wants("a collection with a token of disbursement", 401, "invalid_token")(
		c.call("GET", "/collection/v1_0/account/balance", "", "Ocp-Apim-Subscription-Key", collectionKey))
	// A new key ends the previous key and its tokens.
	c.key = collectionKey
	_, text := c.ask("POST", "/v1_0/apiuser/"+made+"/apikey", "")
	if strings.Contains(text, first) {
		t.Error("the key is the one before")
	}
	c.token = old
	c.wants("a token of the key before", 401, "invalid_token")(c.call("GET", "/collection/v1_0/account/balance", ""))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := simtest.New(t, sim.Options{Dir: dir}, New(Options{}))
	c.url = newSDK(t, again, "collection").url
	c.api = strings.TrimSuffix(strings.TrimPrefix(text, `{"apiKey":"`), `"}`)
	c.login("collection", "/token/", "")
	c.wants("after a restart", 200, "clinic.example")(c.ask("GET", "/v1_0/apiuser/"+made, ""))
}

// The requests of an SDK succeed in their usual order. None of them changes the money of Makola's own account.
func TestSandbox_conversationOfAnSDK(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	before := s.Float(Name)
	var mu sync.Mutex
	var heard []string
	back := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, string(text))
	}))
	defer back.Close()
	c := newSDK(t, s, "collection")
	c.provision("http://127.0.0.1:1")
	for _, how := range [][2]string{{"/token/", ""}, {"/token", ""}, {"/token/", "{}"}, {"/token/", "grant_type=client_credentials"}} {
		c.login("collection", how[0], how[1])
	}
	const pay = "/collection/v1_0/requesttopay"
	id := uuid.NewString()
	asks := movement("payer", "46733123499", "5.0")
	c.wants("a callback to another host", 400, "INVALID_CALLBACK_URL_HOST")(c.call("POST", pay, asks, "X-Reference-Id", id, "X-Callback-Url", "http://elsewhere.example/x"))
	c.wants("cedis", 500, "INVALID_CURRENCY")(c.call("POST", pay, strings.Replace(asks, "EUR", "GHS", 1), "X-Reference-Id", id))
	c.wants("another environment", 500, "NOT_ALLOWED_TARGET_ENVIRONMENT")(c.call("POST", pay, asks, "X-Reference-Id", id, "X-Target-Environment", "mtnuganda"))
	c.wants("request to pay", 202, "")(c.call("POST", pay, asks, "X-Reference-Id", id, "X-Callback-Url", back.URL))
	c.wants("the same again", 409, "RESOURCE_ALREADY_EXIST")(c.call("POST", pay, asks, "X-Reference-Id", id))
	c.wants("its status", 200, `{"amount":"5.0","currency":"EUR","externalId":"6353636","payer":{"partyIdType":"MSISDN","partyId":"46733123499"},"payerMessage":"Pay for product a","payeeNote":"payer note","status":"PENDING"}`)(c.call("GET", pay+"/"+id, ""))
	c.wants("a notification too early", 409, "")(c.call("POST", pay+"/"+id+"/deliverynotification", `{"notificationMessage":"Thanks"}`))
	clock.Advance(3 * time.Second)
	c.wants("its end", 200, `"status":"SUCCESSFUL"`)(c.call("GET", pay+"/"+id, ""))
	c.wants("in another environment", 404, "RESOURCE_NOT_FOUND")(c.call("GET", pay+"/"+id, "", "X-Target-Environment", "mtnghana"))
	c.wants("as another resource", 404, "RESOURCE_NOT_FOUND")(c.call("GET", "/collection/v1_0/requesttowithdraw/"+id, ""))
	if err := s.Quiet(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if len(heard) != 1 || !strings.Contains(heard[0], `{"amount":"5.0","currency":"EUR"`) || !strings.Contains(heard[0], `"status":"SUCCESSFUL"`) {
		t.Errorf("called back %v", heard)
	}
	mu.Unlock()
	c.wants("a notification without a text", 400, "")(c.call("POST", pay+"/"+id+"/deliverynotification", `{}`))
	c.wants("a notification", 200, "")(c.call("POST", pay+"/"+id+"/deliverynotification", `{"notificationMessage":"Thanks"}`))
	c.wants("a notification of nothing", 404, "RESOURCE_NOT_FOUND")(c.call("POST", pay+"/"+uuid.NewString()+"/deliverynotification", `{"notificationMessage":"Thanks"}`))
	if m := s.Messages("46733123499"); len(m) != 1 || m[0].Text != "Thanks" {
		t.Errorf("the handset shows %+v", m)
	}
	c.wants("balance", 200, `{"availableBalance":"5.00","currency":"EUR"}`)(c.call("GET", "/collection/v1_0/account/balance", ""))
	c.wants("balance in euro", 200, `"5.00"`)(c.call("GET", "/collection/v1_0/account/balance/EUR", ""))
	c.wants("name", 200, `"given_name"`)(c.call("GET", "/collection/v1_0/accountholder/msisdn/46733123499/basicuserinfo", ""))
	c.key = disbursementKey
	c.login("disbursement", "/token/", "")
	c.wants("refund", 202, "")(c.call("POST", "/disbursement/v2_0/refund", `{"amount":"5","currency":"EUR","externalId":"1","payerMessage":"","payeeNote":"","referenceIdToRefund":"`+id+`"}`, "X-Reference-Id", uuid.NewString()))
	clock.Advance(3 * time.Second)
	if after := s.Float(Name); after != before {
		t.Errorf("the float was %v and is %v", before, after)
	}
	if list := s.Entries(id); len(list) != 1 || list[0].Provider != Sandbox {
		t.Errorf("the book has %+v", list)
	}
}

// Each of MTN's test numbers gives its documented outcome for each resource.
func TestSandbox_testNumbers(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	collect := []string{"INTERNAL_PROCESSING_ERROR", "APPROVAL_REJECTED", "EXPIRED", "SUCCESSFUL", "PENDING", "PAYER_NOT_FOUND", "PAYEE_NOT_ALLOWED_TO_RECEIVE",
		"NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE",
		"COULD_NOT_PERFORM_TRANSACTION", "SUCCESSFUL"}
	transfer := []string{"INTERNAL_PROCESSING_ERROR", "APPROVAL_REJECTED", "EXPIRED", "SUCCESSFUL", "PENDING", "NOT_ENOUGH_FUNDS", "PAYER_LIMIT_REACHED",
		"PAYEE_NOT_FOUND", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "INTERNAL_PROCESSING_ERROR",
		"SERVICE_UNAVAILABLE", "SUCCESSFUL"}
	for _, each := range []struct {
		product, path, side string
		want                []string
	}{
		{"collection", "/v1_0/requesttopay", "payer", collect},
		{"collection", "/v2_0/requesttowithdraw", "payer", collect},
		{"disbursement", "/v1_0/deposit", "payee", collect},
		{"disbursement", "/v1_0/transfer", "payee", transfer},
		{"remittance", "/v1_0/transfer", "payee", transfer},
		{"remittance", "/v2_0/cashtransfer", "payee", transfer},
	} {
		c := newSDK(t, s, each.product)
		c.login(each.product, "/token/", "")
		for n, want := range each.want {
			number, id := "467331234"+string([]byte{'5' + byte(n/10), '0' + byte(n%10)}), uuid.NewString()
			path := "/" + each.product + each.path
			c.wants(path+" "+number, 202, "")(c.call("POST", path, movement(each.side, number, "1"), "X-Reference-Id", id))
			clock.Advance(3 * time.Second)
			if n == 3 { // the number is pending, and succeeds half a minute later
				c.wants(path+" "+number+" at first", 200, `"status":"PENDING"`)(c.call("GET", path+"/"+id, ""))
				clock.Advance(30 * time.Second)
			}
			status := `"status":"FAILED","reason":"` + want + `"`
			if want == "SUCCESSFUL" || want == "PENDING" {
				status = `"status":"` + want + `"`
			}
			c.wants(path+" "+number, 200, status)(c.call("GET", path+"/"+id, ""))
		}
		for n, want := range []string{"false", "false", "true", "true", "true", "true", "true"} {
			number := "4673312345" + string('0'+byte(n))
			c.wants(each.product+" "+number+" active", 200, `{"result":`+want+`}`)(c.call("GET", "/"+each.product+"/v1_0/accountholder/MSISDN/"+number+"/active", ""))
		}
		c.wants("what MTN does not have", 404, "Resource not found")(c.call("POST", "/"+each.product+"/v2_0/voucher", `{}`, "X-Reference-Id", uuid.NewString()))
	}
}

// A refund goes to the payer. A test reference of the sandbox gives its documented outcome.
func TestSandbox_refunds(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	c := newSDK(t, s, "disbursement")
	c.login("disbursement", "/token/", "")
	const path = "/disbursement/v1_0/refund"
	for i, want := range []string{"PAYER_NOT_FOUND", "INTERNAL_PROCESSING_ERROR", "APPROVAL_REJECTED", "EXPIRED", "SUCCESSFUL", "PENDING", "NOT_ALLOWED",
		"NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE",
		"COULD_NOT_PERFORM_TRANSACTION", ""} {
		id, of := uuid.NewString(), strconv.Itoa(i+1)
		body := `{"amount":"7","currency":"EUR","externalId":"1","payerMessage":"","payeeNote":"","referenceIdToRefund":"` + of + `"}`
		if want == "" {
			c.wants("refund of "+of, 400, "")(c.call("POST", path, body, "X-Reference-Id", id))
			continue
		}
		c.wants("refund of "+of, 202, "")(c.call("POST", path, body, "X-Reference-Id", id))
		clock.Advance(31 * time.Second)
		if want == "SUCCESSFUL" || want == "PENDING" {
			want = `"status":"` + want + `"`
		} else {
			want = `"status":"FAILED","reason":"` + want + `"`
		}
		c.wants("refund of "+of, 200, `"payee":{"partyIdType":"MSISDN","partyId":"46733999999"}`)(c.call("GET", path+"/"+id, ""))
		c.wants("refund of "+of, 200, want)(c.call("GET", path+"/"+id, ""))
	}
}

// A refund to one of MTN's test numbers has the outcome of that number.
func TestRefund_toTestNumber(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	c := newSDK(t, s, "collection")
	c.login("collection", "/token/", "")
	of, id := uuid.NewString(), uuid.NewString()
	c.wants("the collection", 202, "")(c.call("POST", "/collection/v1_0/requesttopay", movement("payer", "46733123453", "5"), "X-Reference-Id", of))
	clock.Advance(31 * time.Second)
	c.wants("the collection", 200, `"status":"SUCCESSFUL"`)(c.call("GET", "/collection/v1_0/requesttopay/"+of, ""))
	c = newSDK(t, s, "disbursement")
	c.login("disbursement", "/token/", "")
	body := `{"amount":"5","currency":"EUR","externalId":"1","payerMessage":"","payeeNote":"","referenceIdToRefund":"` + of + `"}`
	c.wants("the refund", 202, "")(c.call("POST", "/disbursement/v1_0/refund", body, "X-Reference-Id", id))
	clock.Advance(3 * time.Second)
	c.wants("the refund, which is ongoing", 200, `"status":"PENDING"`)(c.call("GET", "/disbursement/v1_0/refund/"+id, ""))
	clock.Advance(31 * time.Second)
	c.wants("the refund in the end", 200, `"status":"SUCCESSFUL"`)(c.call("GET", "/disbursement/v1_0/refund/"+id, ""))
}

// TestRefund_ofNoCollection: a refund of a payout, of a failed collection or of
// an unknown reference is accepted, fails in its status and moves nothing.
func TestRefund_ofNoCollection(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	c := newSDK(t, s, "collection")
	c.login("collection", "/token/", "")
	failed, sent := uuid.NewString(), uuid.NewString()
	c.wants("a collection", 202, "")(c.call("POST", "/collection/v1_0/requesttopay", movement("payer", "46733123451", "5"), "X-Reference-Id", failed))
	c.key = disbursementKey
	c.user, c.api = disbursementUser, disbursementAPI
	c.login("disbursement", "/token/", "")
	c.wants("a deposit", 202, "")(c.call("POST", "/disbursement/v1_0/deposit", movement("payee", "46733123499", "5"), "X-Reference-Id", sent))
	clock.Advance(3 * time.Second)
	before := s.Float(Sandbox)
	for _, of := range []string{failed, sent, uuid.NewString()} {
		id := uuid.NewString()
		body := `{"amount":"5","currency":"EUR","externalId":"1","payerMessage":"","payeeNote":"","referenceIdToRefund":"` + of + `"}`
		c.wants("the refund", 202, "")(c.call("POST", "/disbursement/v2_0/refund", body, "X-Reference-Id", id))
		clock.Advance(3 * time.Second)
		c.wants("its status", 200, `"status":"FAILED","reason":"RESOURCE_NOT_FOUND"`)(c.call("GET", "/disbursement/v1_0/refund/"+id, ""))
	}
	if after := s.Float(Sandbox); after != before {
		t.Errorf("the float was %v and is %v", before, after)
	}
}

// TestRefund_neverMoreThanCollected: all refunds of a collection together are at most its amount, even if many arrive
// at once or after a restart. A refund that exceeds it is accepted and fails in its status. A collection that is not
// paid cannot be refunded.
func TestRefund_neverMoreThanCollected(t *testing.T) {
	dir := t.TempDir()
	s, clock := simtest.New(t, sim.Options{Dir: dir}, New(Options{}))
	c := newSDK(t, s, "collection")
	c.login("collection", "/token/", "")
	paid, open := uuid.NewString(), uuid.NewString()
	c.wants("a collection", 202, "")(c.call("POST", "/collection/v1_0/requesttopay", movement("payer", "46733123499", "5"), "X-Reference-Id", paid))
	c.wants("an open one", 202, "")(c.call("POST", "/collection/v1_0/requesttopay", movement("payer", "46733123454", "5"), "X-Reference-Id", open))
	disburse := func() {
		c = newSDK(t, s, "disbursement")
		c.login("disbursement", "/token/", "")
	}
	disburse()
	clock.Advance(3 * time.Second)
	refund := func(of, amount string) string {
		id := uuid.NewString()
		body := `{"amount":"` + amount + `","currency":"EUR","externalId":"1","payerMessage":"","payeeNote":"","referenceIdToRefund":"` + of + `"}`
		c.wants("the refund", 202, "")(c.call("POST", "/disbursement/v1_0/refund", body, "X-Reference-Id", id))
		return id
	}
	ends := func(id, status string) {
		t.Helper()
		clock.Advance(3 * time.Second)
		c.wants("its status", 200, status)(c.call("GET", "/disbursement/v1_0/refund/"+id, ""))
	}
	const success, failed = `"status":"SUCCESSFUL"`, `"status":"FAILED","reason":"COULD_NOT_PERFORM_TRANSACTION"`
	before := s.Float(Sandbox)
	ends(refund(open, "5"), `"status":"FAILED","reason":"RESOURCE_NOT_FOUND"`)
	ends(refund(paid, "5.01"), failed)
	ends(refund(paid, "2"), success)
	ends(refund(paid, "3.01"), failed)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	now := clock.Now()
	s, clock = simtest.New(t, sim.Options{Dir: dir}, New(Options{}))
	clock.Advance(now.Sub(clock.Now()))
	disburse()
	var ids [9]string
	var sent sync.WaitGroup
	for i := range ids {
		sent.Go(func() { ids[i] = refund(paid, "1") })
	}
	sent.Wait()
	clock.Advance(3 * time.Second)
	done := 0
	for _, id := range ids {
		_, status := c.call("GET", "/disbursement/v1_0/refund/"+id, "")
		done += strings.Count(status, success)
	}
	if after := s.Float(Sandbox); done != 3 || before-after != 500 {
		t.Errorf("%d of 9 refunds of 1 succeeded where 3 were left, and %v went out", done, before-after)
	}
}

// TestActive_byFault: a fault returns the errors that MTN's older documents have for an inactive wallet, as the page
// about testing describes.
func TestActive_byFault(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	c := newSDK(t, s, "collection")
	c.login("collection", "/token/", "")
	if err := s.Inject(sim.Fault{Provider: Name, Operation: sim.OpWalletName, Kind: sim.StatusAnswer, Answer: "500:NOT_ALLOWED", Count: 1}); err != nil {
		t.Fatal(err)
	}
	const path = "/collection/v1_0/accountholder/msisdn/46733123454/active"
	c.wants("active", 500, `"code":"NOT_ALLOWED"`)(c.call("GET", path, ""))
	c.wants("active afterwards", 200, `{"result":true}`)(c.call("GET", path, ""))
}

// TestDeliveryNotification_ofEachProduct: a message in a header or body reaches the customer of a successful
// movement. It can be sent once a minute for a day. Clients of every product send it to the path of requests to pay.
func TestDeliveryNotification_ofEachProduct(t *testing.T) {
	for _, each := range []struct{ product, resource, side string }{
		{"collection", "requesttopay", "payer"}, {"disbursement", "transfer", "payee"}, {"disbursement", "deposit", "payee"}, {"remittance", "transfer", "payee"},
	} {
		s, clock := simtest.New(t, sim.Options{}, New(Options{}))
		c := newSDK(t, s, each.product)
		c.login(each.product, "/token/", "")
		id, own := uuid.NewString(), "/"+each.product+"/v1_0/"+each.resource+"/"
		common := "/" + each.product + "/v1_0/requesttopay/"
		const body = `{"notificationMessage":"Thanks"}`
		c.wants("a movement", 202, "")(c.call("POST", strings.TrimSuffix(own, "/"), movement(each.side, "46733123499", "5"), "X-Reference-Id", id))
		c.wants(own+" too early", 409, "")(c.call("POST", common+id+"/deliverynotification", body))
		clock.Advance(3 * time.Second)
		c.wants(common+" by header", 200, "")(c.call("POST", common+id+"/deliverynotification", "", "notificationMessage", "Welcome"))
		c.wants(own+" at once again", 429, "")(c.call("POST", own+id+"/deliverynotification", body))
		clock.Advance(time.Minute)
		c.wants(own+" a minute later", 200, "")(c.call("POST", own+id+"/deliverynotification", body))
		if m := s.Messages("46733123499"); len(m) != 2 || m[0].Text != "Welcome" || m[1].Text != "Thanks" {
			t.Errorf("%s: the handset shows %+v", own, m)
		}
		c.wants(own+" without a text", 400, "")(c.call("POST", own+id+"/deliverynotification", ""))
		c.wants(common+" of nothing", 404, "RESOURCE_NOT_FOUND")(c.call("POST", common+uuid.NewString()+"/deliverynotification", body))
		clock.Advance(24 * time.Hour)
		c.login(each.product, "/token/", "")
		c.wants(own+" too late", 410, "")(c.call("POST", own+id+"/deliverynotification", body))
	}
}

// MTN's own SDKs send the literal placeholder of its documents as the login hint. They still get a customer.
func TestConsent_ofThePlaceholder(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	for _, product := range []string{"collection", "disbursement", "remittance"} {
		c := newSDK(t, s, product)
		c.login(product, "/token/", "")
		basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(c.user+":"+c.api))
		for _, hint := range []string{"ID:msisdn/msisdn", "ID:{msisdn}/MSISDN", "ID:MSISDN/MSISDN"} {
			var a struct {
				ID    string `json:"auth_req_id"`
				Token string `json:"access_token"`
			}
			status, text := c.call("POST", "/"+product+"/v1_0/bc-authorize", "login_hint="+hint+"&scope=profile&access_type=online")
			if err := json.Unmarshal([]byte(text), &a); status != 200 || err != nil {
				t.Fatalf("%s of %s: %d %s", hint, product, status, text)
			}
			_, text = c.ask("POST", "/"+product+"/oauth2/token/", "grant_type=urn:openid:params:grant-type:ciba&auth_req_id="+a.ID, "Authorization", basic)
			if err := json.Unmarshal([]byte(text), &a); err != nil || a.Token == "" {
				t.Fatalf("the consent's token: %s", text)
			}
			c.wants("userinfo", 200, `"phone_number":"`+somebody+`"`)(c.call("GET", "/"+product+"/oauth2/v1_0/userinfo", "", "Authorization", "Bearer "+a.Token))
		}
	}
}

// userinfo returns a customer's details for the token of the consent, and for no other token.
func TestSandbox_consent(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	c := newSDK(t, s, "collection")
	c.login("collection", "/token/", "")
	const authorize, info = "/collection/v1_0/bc-authorize", "/collection/oauth2/v1_0/userinfo"
	for _, form := range []string{"", "login_hint=ID:46733123499/MSISDN&access_type=online", "login_hint=46733123499&scope=profile&access_type=online",
		"login_hint=ID:46733123499/EMAIL&scope=profile&access_type=online", "login_hint=ID:46733123499/MSISDN&scope=profile&access_type=x"} {
		c.wants("bc-authorize "+form, 400, "")(c.call("POST", authorize, form))
	}
	status, text := c.call("POST", authorize, "login_hint=ID%3A46733123499%2FMSISDN&scope=all_info&access_type=offline")
	var a struct {
		ID       string `json:"auth_req_id"`
		Interval int    `json:"interval"`
		Life     int    `json:"expires_in"`
		Token    string `json:"access_token"`
		Scope    string
	}
	if err := json.Unmarshal([]byte(text), &a); status != 200 || err != nil || a.ID == "" || a.Interval == 0 || a.Life == 0 {
		t.Fatalf("bc-authorize: %d %s", status, text)
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(c.user+":"+c.api))
	grant := "grant_type=urn%3Aopenid%3Aparams%3Agrant-type%3Aciba&auth_req_id="
	c.wants("no consent", 400, "invalid_grant")(c.ask("POST", "/collection/oauth2/token/", grant+c.token, "Authorization", basic))
	c.wants("another user", 401, "login_failed")(c.ask("POST", "/collection/oauth2/token/", grant+a.ID, "Authorization", "Basic eDp4"))
	status, text = c.ask("POST", "/collection/oauth2/token/", grant+a.ID, "Authorization", basic)
	if err := json.Unmarshal([]byte(text), &a); status != 200 || err != nil || a.Token == "" || a.Scope != "all_info" {
		t.Fatalf("the consent's token: %d %s", status, text)
	}
	c.wants("userinfo without consent", 401, "invalid_token")(c.call("GET", info, ""))
	c.wants("userinfo with the request", 401, "invalid_token")(c.call("GET", info, "", "Authorization", "Bearer "+a.ID))
	c.wants("money with a consent", 401, "invalid_token")(c.call("GET", "/collection/v1_0/account/balance", "", "Authorization", "Bearer "+a.Token))
	c.wants("userinfo", 200, `"phone_number":"46733123499"`)(c.call("GET", info, "", "Authorization", "Bearer "+a.Token))
	clock.Advance(time.Hour)
	c.wants("userinfo an hour later", 401, "invalid_token")(c.call("GET", info, "", "Authorization", "Bearer "+a.Token))
	c.wants("a token an hour later", 401, "invalid_token")(c.call("GET", "/collection/v1_0/account/balance", ""))
}

// The simulator can be configured with another currency of the sandbox.
func TestSandbox_otherCurrency(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{SandboxCurrency: "XAF"}))
	c := newSDK(t, s, "disbursement")
	c.login("disbursement", "/token/", "")
	c.wants("balance", 200, `"currency":"XAF"`)(c.call("GET", "/disbursement/v1_0/account/balance", ""))
	c.wants("euro", 500, "INVALID_CURRENCY")(c.call("POST", "/disbursement/v1_0/transfer", movement("payee", "46733123499", "1"), "X-Reference-Id", uuid.NewString()))
}

// An older book may store an echo without its amount. The answer then has the amount of the entry.
func TestAmount_fromAnOlderBook(t *testing.T) {
	e := sim.Entry{Order: sim.Order{Amount: 500, Wire: `"currency":"GHS"`}}
	if amount, echo := amountOf(e); amount != "5.00" || echo != `"currency":"GHS"` {
		t.Errorf("%s %s", amount, echo)
	}
	e.Wire = `"amount":"5","currency":"GHS"`
	if amount, echo := amountOf(e); amount != "5" || echo != `"currency":"GHS"` {
		t.Errorf("%s %s", amount, echo)
	}
	e.Amount++
	if amount, _ := amountOf(e); amount != "5.01" {
		t.Errorf("another amount reads %s", amount)
	}
}
