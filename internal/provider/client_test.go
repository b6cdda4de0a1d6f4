package provider

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/trace"
)

func post(url string) Request {
	return Request{Method: http.MethodPost, URL: url, Body: []byte(`{"a":1}`), Operation: "collect"}
}

func newTestClient(t *testing.T, o ClientOptions) *Client {
	c := NewClient(o)
	t.Cleanup(c.Close)
	return c
}

func TestClient_unwrittenIsNotSent(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, but never speaks TLS
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	// The local end of an open connection has a port on which nothing listens, and which no other program can get.
	near, err := net.Dial("tcp", plain.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	c := newTestClient(t, ClientOptions{})
	for name, url := range map[string]string{
		"refused connection": "http://" + near.LocalAddr().String(), "no such host": "http://host.invalid/", "broken URL": "http://[::1", "TLS cut off": "https://" + silent.Addr().String(),
		"TLS to a server without": strings.Replace(plain.URL, "http:", "https:", 1), "unknown scheme": "ftp://127.0.0.1/",
	} {
		a := c.Do(context.Background(), post(url))
		if a.Written || a.Err == nil || a.Status != 0 {
			t.Errorf("%s: %+v", name, a)
		}
		o, ok := Undelivered(a)
		if !ok || o.Class != NotSent {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// The log of exchanges has no text of a person, also if the response repeats it, and also where the log cuts the response.
func TestClient_hidesTextsInResponses(t *testing.T) {
	const text = `Your code is 482913 "now"`
	for name, body := range map[string]string{"plain": "cannot send " + text, "JSON": `{"message":"Your code is 482913 \"now\""}`, "cut": strings.Repeat("x", recordedBytes-20) + text} {
		var got Exchange
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, body)
		}))
		c := newTestClient(t, ClientOptions{Record: func(e Exchange) { got = e }})
		r := post(server.URL)
		r.HideBody, r.Text = true, text
		c.Do(t.Context(), r)
		server.Close()
		if got.Answer == "" || strings.Contains(got.Answer, "Your code") || strings.Contains(got.Answer, "482913") || got.Request != "***" {
			t.Errorf("%s: %q, %q", name, got.Request, got.Answer)
		}
	}
}

// The log of exchanges has no personal data of a JSON text inside a JSON string, at any depth.
func TestRedact_jsonInsideText(t *testing.T) {
	for _, text := range []string{`"{\"receivername\":\"KWAME, TEST\",\"accountnumber\": 100000510006,\"amount\":\"1.00\"}"`,
		`{"data":"{\"a\":\"{\\\"name\\\":\\\"KWAME TEST\\\",\\\"pin\\\":\\\"100000510006\\\"}\",\"amount\":\"1.00\"}"}`} {
		if got := Redact(text); strings.Contains(got, "KWAME") || strings.Contains(got, "510006") || !strings.Contains(got, "1.00") || Redact(got) != got {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// A call sends the traceparent of its context, or none if the context has none.
func TestClient_carriesTheTrace(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("traceparent")) }))
	defer server.Close()
	c := newTestClient(t, ClientOptions{})
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, ctx := range []context.Context{t.Context(), trace.With(t.Context(), parent)} {
		if a := c.Do(ctx, post(server.URL)); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if !slices.Equal(got, []string{"", parent}) {
		t.Errorf("the calls carried %q", got)
	}
}

// A proxy that opens no tunnel proves that nothing was sent. The log of exchanges contains neither the proxy's text
// nor its credentials.
func TestClient_throughAProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Squid-Error", r.Header.Get("Proxy-Authorization"))
		w.WriteHeader(http.StatusProxyAuthRequired)
		io.WriteString(w, r.Header.Get("Proxy-Authorization"))
	}))
	defer proxy.Close()
	address := proxy.Listener.Addr().String()
	p, err := outbound.NewProxy("http://ama:hunter2@"+address, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var kept []Exchange
	c := newTestClient(t, ClientOptions{Proxy: p, Record: func(e Exchange) { kept = append(kept, e) }})
	for range 2 {
		a := c.Do(t.Context(), post("https://momo.example/collection"))
		o, ok := Undelivered(a)
		if a.Written || a.Status != 0 || !ok || o.Class != NotSent || o.Message != "egress proxy opened no tunnel: the proxy answered 407" {
			t.Errorf("%+v, %+v", a, o)
		}
	}
	text := fmt.Sprintf("%+v", kept)
	for _, secret := range []string{"hunter2", "Basic", "YW1hOmh1bnRlcjI=", address} {
		if len(kept) != 2 || kept[0].Written || strings.Contains(text, secret) {
			t.Errorf("%q: %s", secret, text)
		}
	}
	local := httptest.NewServer(http.NotFoundHandler())
	defer local.Close()
	if a := c.Do(t.Context(), post(local.URL)); a.Status != http.StatusNotFound {
		t.Errorf("loopback: %+v", a)
	}
}

func TestClient_writtenAndLost(t *testing.T) {
	var hits atomic.Int64
	drop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		io.ReadAll(r.Body)
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	}))
	defer drop.Close()
	torn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.Write([]byte(`{"status"`))
		conn, _, _ := http.NewResponseController(w).Hijack()
		conn.Close()
	}))
	defer torn.Close()
	long := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("x", 2000))
	}))
	defer long.Close()
	c := newTestClient(t, ClientOptions{MaxAnswer: 1000})
	for name, url := range map[string]string{"dropped": drop.URL, "torn": torn.URL, "too long": long.URL} {
		a := c.Do(context.Background(), post(url))
		if !a.Written || a.Err == nil {
			t.Errorf("%s: %+v", name, a)
		}
		if o, ok := Undelivered(a); !ok || o.Class != Unknown {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if hits.Load() != 1 {
		t.Errorf("the dropped POST was sent %d times", hits.Load())
	}
}

// TestClient_stalePostIsNotRepeated: the other side closes a connection at the moment of a POST. The POST is not sent
// a second time without our knowledge.
func TestClient_stalePostIsNotRepeated(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var posts atomic.Int64
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // it answers one request, reads the next and closes the connection
				r := bufio.NewReader(conn)
				for i := range 2 {
					req, err := http.ReadRequest(r)
					if err != nil {
						break
					}
					io.ReadAll(req.Body)
					posts.Add(1)
					if i == 0 {
						io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
					}
				}
				conn.Close()
			}()
		}
	}()
	c := newTestClient(t, ClientOptions{})
	url := "http://" + l.Addr().String()
	if a := c.Do(context.Background(), post(url)); a.Status != 202 {
		t.Fatalf("%+v", a)
	}
	a := c.Do(context.Background(), post(url))
	if a.Err == nil || !a.Written || posts.Load() != 2 {
		t.Errorf("%+v after %d posts", a, posts.Load())
	}
}

// A request is cancelled before it begins, at many moments while it is sent, after the server has read it, or never. Every
// request that the server received is reported as written.
func TestClient_cancelledAfterWrite(t *testing.T) {
	var seen, cancels sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.URL.Path, true)
		if cancel, ok := cancels.Load(r.URL.Path); ok {
			cancel.(context.CancelFunc)()
		}
	}))
	defer server.Close()
	c := newTestClient(t, ClientOptions{MaxConns: 4})
	const before, byServer, never, moments = 0, 1, 2, 60
	var wg sync.WaitGroup
	written := make([]bool, 400)
	path := func(i int) string { return "/" + strconv.Itoa(i) }
	for i := range written {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			switch i % moments {
			case before:
				cancel()
			case byServer:
				cancels.Store(path(i), cancel)
			case never:
			default:
				go func() {
					for range i % moments {
						runtime.Gosched()
					}
					cancel()
				}()
			}
			written[i] = c.Do(ctx, post(server.URL+path(i))).Written
		})
	}
	wg.Wait()
	server.Close()
	for i, was := range written {
		_, did := seen.Load(path(i))
		if did && !was {
			t.Errorf("request %d reached the server and was called not written", i)
		}
		switch i % moments {
		case before:
			if was || did {
				t.Errorf("request %d was cancelled before it began: written %v, seen %v", i, was, did)
			}
		case byServer, never:
			if !was || !did {
				t.Errorf("request %d was sent: written %v, seen %v", i, was, did)
			}
		}
	}
}

func TestClient_noRedirectNoCookies(t *testing.T) {
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := hits.Add(1)
		if r.Header.Get("Cookie") != "" {
			t.Error("a cookie came back")
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		http.Redirect(w, r, "/elsewhere", []int{http.StatusFound, http.StatusTemporaryRedirect}[n%2])
	}))
	defer server.Close()
	c := newTestClient(t, ClientOptions{})
	for range 2 {
		a := c.Do(context.Background(), post(server.URL))
		if a.Status != http.StatusTemporaryRedirect && a.Status != http.StatusFound {
			t.Errorf("%+v", a)
		}
		if o, ok := Undelivered(a); !ok || o.Class != Unknown {
			t.Errorf("%+v", o)
		}
	}
	if hits.Load() != 2 {
		t.Errorf("%d requests", hits.Load())
	}
}

func TestClient_barredStatuses(t *testing.T) {
	for status, want := range map[int]Class{401: Barred, 403: Barred, 429: Barred, 301: Unknown, 101: Unknown} {
		o, ok := Undelivered(Answer{Status: status, Written: true, Header: http.Header{"Retry-After": {"7"}}})
		if !ok || o.Class != want || o.RetryAfter != 7*time.Second {
			t.Errorf("%d: %+v", status, o)
		}
	}
	for _, status := range []int{200, 202, 400, 404, 409, 500, 503} {
		if o, ok := Undelivered(Answer{Status: status, Written: true}); ok {
			t.Errorf("%d: %+v", status, o)
		}
	}
	for _, h := range []string{"", "-1", "x", "Wed, 21 Oct 2026 07:28:00 GMT"} {
		if d := retryAfter(Answer{Header: http.Header{"Retry-After": {h}}}); d != 0 {
			t.Errorf("Retry-After %q is %v", h, d)
		}
	}
	for _, a := range []Answer{{}, {Err: errors.New("x")}, {Status: 401, Written: true}, {Status: 404, Written: true}, {Status: 202, Written: true}, {Status: 200, Err: errors.New("torn")}} {
		if o, ok := StatusUnanswered(a); !ok || o.Class != Unknown {
			t.Errorf("%+v: %+v", a, o)
		}
	}
}

func TestRedact_numbersNamesAndSecrets(t *testing.T) {
	for in, want := range map[string]string{
		`{"payer":{"partyId":"233244123456"}}`:                       `{"payer":{"partyId":"233*****3456"}}`,
		`http://h/v1/accountholder/msisdn/233244123456/active`:       `http://h/v1/accountholder/msisdn/233*****3456/active`,
		`{"CustomerMsisdn":"0244123456"}`:                            `{"CustomerMsisdn":"024***3456"}`,
		`?destination=%2B233244123456&x=1`:                           `?destination=%2B233*****3456&x=1`,
		`{"access_token" : "abc\"def" ,"token_type":"access_token"}`: `{"access_token" : "***" ,"token_type":"access_token"}`,
		`{"given_name":"AMA","family_name":"MENSAH"}`:                `{"given_name":"***","family_name":"***"}`,
		`{"RecipientName":"AMA MENSAH","Amount":1}`:                  `{"RecipientName":"***","Amount":1}`,
		`{"access_token":"cut in the mid`:                            `{"access_token":"***`,
		`{"financialTransactionId":"4233244123","status":"PENDING"}`: `{"financialTransactionId":"4233244123","status":"PENDING"}`,
		`{"externalId":"5d6a0bd7-0f02-4a5c-a3b4-233244123456"}`:      `{"externalId":"5d6a0bd7-0f02-4a5c-a3b4-233244123456"}`,
		`{"pin":7,"x":"name"}`:                                       `{"pin":***,"x":"name"}`,
		// Names are removed whatever the provider calls the field, in any format.
		`{"CustomerFullName":"AMA","payer_email":"a@b.gh","nickName":"Ama","RefreshToken":"abc","bankName":"GCB"}`: `{"CustomerFullName":"***","payer_email":"***","nickName":"***","RefreshToken":"***","bankName":"GCB"}`,
		`{"name":{"first":"AMA","all":["KOFI",4],"deep":{"x":"ESI"}},"status":"ok"}`:                               `{"name":{"first":"***","all":["***",***],"deep":{"x":"***"}},"status":"ok"}`,
		`{"Display":"Customer Name","Value":"AMA MENSAH"},{"Display":"amount","Value":"5.00"}`:                     `{"Display":"Customer Name","Value":"***"},{"Display":"amount","Value":"5.00"}`,
		`"say ama.mensah+1@shop.example.gh, please"`:                                                               `"say ***, please"`,
		`customerName=Ama&amount=5&api_key=abc`:                                                                    `customerName=***&amount=5&api_key=***`,
		`/verify?name=Ama%20Mensah&id=7`:                                                                           `/verify?name=***&id=7`,
		`<Name>AMA MENSAH</Name><status>OK</status>`:                                                               `<Name>***</Name><status>OK</status>`,
		`Authorization: Bearer abc.def-ghi`:                                                                        `Authorization: Bearer ***`,
		`token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln`:                                                          `token ***`,
		`+233 24 412 3456 and 024-412-3456, (024) 412 3456`:                                                        `+233 ** *** 3456 and 024-***-3456, (024) *** 3456`,
		`{"msisdn":244123456,"m":"+233 (0) 24 412 3456","u":"?to=024%20412%203456"}`:                               `{"msisdn":244**3456,"m":"+233 (*) ** *** 3456","u":"?to=024%20***%203456"}`,
		`200 0244123456 1`: `200 024***3456 1`,
		// The token of our callback address is removed, because whoever has it may post callbacks.
		`{"PrimaryCallbackUrl":"https://pay.example/callbacks/hubtel/0123456789abcdef0123456789abcdef","x":1}`: `{"PrimaryCallbackUrl":"https://pay.example/callbacks/hubtel/***","x":1}`,
		`{"Message":"cannot reach https:\/\/pay.example\/callbacks\/mtn\/0123456789abcdef0123456789abcdef."}`:  `{"Message":"cannot reach https:\/\/pay.example\/callbacks\/mtn\/***."}`,
		`?callback=https%3A%2F%2Fpay.example%2Fcallbacks%2Fmtn%2F0123456789abcdef0123456789abcdef&x=1`:         `?callback=https%3A%2F%2Fpay.example%2Fcallbacks%2Fmtn%2F***&x=1`,
		`"https://pay.example/callbacks/hubtel/01234 cut`:                                                      `"https://pay.example/callbacks/hubtel/*** cut`,
		`2026-11-23 16:05:00, 2026-11-23T16:05:00.123`:                                                         `2026-11-23 16:05:00, 2026-11-23T16:05:00.123`,
		`12345678-0244-1234-5612-233244123456`:                                                                 `12345678-0244-1234-5612-233244123456`,
		``:                                                                                                     ``,
		`"`:                                                                                                    `"`,
		`{"name":"`:                                                                                            `{"name":"***`,
	} {
		if got := Redact(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestReason_hasASentence(t *testing.T) {
	for reason, s := range sentences {
		if !strings.HasSuffix(s, ".") || len(s) < 30 || Sentence(reason) != s {
			t.Errorf("%s: %q", reason, s)
		}
		if Declined(reason) && Invalid(reason) {
			t.Errorf("%s is both declined and invalid", reason)
		}
	}
	for _, r := range []string{ReasonDeclined, ReasonExpired, ReasonFunds, ReasonPIN, ReasonPayerNotFound, ReasonPayeeNotFound, ReasonLimit, ReasonBarred, ReasonRefused,
		ReasonUnavailable, ReasonInvalidRequest, ReasonFloat, ReasonSetup, ReasonOfferGone, ReasonReversed, ReasonMismatch, ReasonResolved, ReasonNotApproved, ReasonUnknown} {
		if sentences[r] == "" {
			t.Errorf("%s has no sentence", r)
		}
	}
	if len(sentences) != 19 {
		t.Errorf("%d sentences", len(sentences))
	}
	if Sentence("") != "" || Sentence("new_code") != sentences[ReasonUnknown] {
		t.Error("an unknown code reads badly")
	}
}

func TestOutcome_zeroHoldsTheMoney(t *testing.T) {
	var o Outcome
	if o.Class != Unknown || o.Final() {
		t.Errorf("%+v", o)
	}
	for _, c := range []Class{Unknown, Accepted, Rejected, NotSent} {
		if ParseClass(c.String()) != c {
			t.Errorf("%v does not come back", c)
		}
	}
	if ParseClass("refunded") != Unknown {
		t.Error("an unknown class is not Unknown")
	}
}

func TestOutcome_otherPaymentIsAMismatch(t *testing.T) {
	want := Expect{Reference: "5d6a0bd7-0f02-4a5c-a3b4-1ad2b1d8ef0c", Amount: 100, Party: "233244123456"}
	final := func(e *Echo) Outcome { return Outcome{Class: Accepted, State: Success, Echo: e} }
	for _, c := range []struct {
		o    Outcome
		want bool
	}{
		{Outcome{}, false},
		{Outcome{Class: Accepted}, false},
		{final(nil), true},
		{final(&Echo{}), true},
		{final(&Echo{Currency: "GHS"}), true},
		{final(&Echo{Reference: "5D6A0BD70F024A5CA3B41AD2B1D8EF0C"}), true}, // a success without an amount
		{final(&Echo{Reference: "5D6A0BD70F024A5CA3B41AD2B1D8EF0C", Amount: 100, AmountTold: true}), false},
		{Outcome{Class: Accepted, State: Failed, Echo: &Echo{Reference: want.Reference}}, false},
		{final(&Echo{Amount: 100, AmountTold: true}), false},
		{final(&Echo{Amount: 0, AmountTold: true}), true},
		{final(&Echo{Amount: 99, AmountTold: true}), true},
		{final(&Echo{Amount: 101, AmountTold: true}), true},
		{final(&Echo{Reference: want.Reference, Amount: -1, AmountTold: true}), true},
		{final(&Echo{Party: "0244123456", Amount: 100, AmountTold: true}), false},
		{final(&Echo{Party: "0244123456"}), true},
		{final(&Echo{Party: "+233 24 412 3457"}), true},
		{final(&Echo{Reference: want.Reference, Currency: "ghs", Amount: 100, AmountTold: true}), false},
		{final(&Echo{Reference: want.Reference, Currency: "USD"}), true},
		{final(&Echo{Reference: want.Reference, Currency: "USD", Amount: 100, AmountTold: true}), true},
		{final(&Echo{Party: "+233 24 412 3457", Amount: 100, AmountTold: true}), true},
		{Outcome{Class: Accepted, Echo: &Echo{Reference: "x"}}, true},
	} {
		if got := Mismatch(c.o, want); got != c.want {
			t.Errorf("%+v %+v: %v", c.o, c.o.Echo, got)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add(`{"name":"x","a":"0244123456"}`)
	f.Add(`https://h/callbacks/0244123456/callbacks/a/b%2Fcallbacks%2fa\/0123`)
	f.Fuzz(func(t *testing.T, s string) {
		if once := Redact(s); Redact(once) != once {
			t.Errorf("%q redacts to %q and then to %q", s, once, Redact(once))
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	const body = `{"amount":"5.00","currency":"GHS","externalId":"5d6a0bd7-0f02-4a5c-a3b4-1ad2b1d8ef0c","payee":{"partyIdType":"MSISDN","partyId":"233244123456"},"payerMessage":"Salary","payeeNote":"Salary","status":"SUCCESSFUL","financialTransactionId":"4233244123"}`
	for b.Loop() {
		Redact(body)
	}
}
