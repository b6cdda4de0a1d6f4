package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api/wire"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
)

// unread is a body that fails the test if it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// A request without a valid key costs no memory, because its body is not read, with or without a declared length.
func TestBody_unreadWithoutKey(t *testing.T) {
	h := open(t, nil)
	for _, path := range []string{v1 + "payout", prefix + "sms-api/contact/addBulkContact", v1 + "nowhere"} {
		for _, length := range []int64{-1, 1 << 10} {
			r := httptest.NewRequest("POST", path, unread{t})
			r.ContentLength = length
			w := httptest.NewRecorder()
			h.api.ServeHTTP(w, r)
			if w.Code != http.StatusUnauthorized || w.Header().Get("Connection") != "close" {
				t.Errorf("%s, length %d: %d, %v", path, length, w.Code, w.Header())
			}
		}
	}
	if a := h.ask("GET", v1+"open/7", "", "X-Api-Key", "").want(t, 401, "invalid_api_key"); a.Header().Get("Connection") != "" {
		t.Error("a request without a body loses its connection")
	}
}

// The size of a body without a length is checked after reading it, before limits and permissions.
func TestChecks_orderWithoutLength(t *testing.T) {
	h := open(t, nil)
	blocked := true
	h.set(tenant.Change{Blocked: &blocked})
	send := func(method, path string) int {
		r := httptest.NewRequest(method, path, io.MultiReader(strings.NewReader(strings.Repeat(" ", 2<<10))))
		r.ContentLength = -1
		r.Header.Set("X-Api-Key", h.key.Text)
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, r)
		return w.Code
	}
	for _, step := range []struct {
		method, path string
		want         int
	}{{"POST", "nowhere", 404}, {"PUT", "payout", 405}, {"POST", "payout", 413}} {
		if got := send(step.method, v1+step.path); got != step.want {
			t.Errorf("%s %s answers %d, want %d", step.method, step.path, got, step.want)
		}
	}
}

// upload is a request whose body is still arriving.
type upload struct {
	body *io.PipeWriter
	code chan int
}

func (h *house) upload(key string, sent int) upload {
	in, out := io.Pipe()
	u := upload{out, make(chan int, 1)}
	r := httptest.NewRequest("POST", v1+"list", in)
	r.ContentLength = -1
	r.Header.Set("X-Api-Key", key)
	go func() {
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, r)
		_ = in.Close()
		u.code <- w.Code
	}()
	go func() { _, _ = io.WriteString(out, `{"amount":1,"x":"`+strings.Repeat("x", sent)) }()
	return u
}

// Large bodies of one customer do not delay payouts or another customer's lists. The memory for all bodies together
// is limited.
func TestRoom_boundsBodies(t *testing.T) {
	h := open(t, nil)
	h.api.add(Route{Method: http.MethodPost, Path: "probe/list", Scope: access.SMS, Body: bulkBody, handle: echo})
	other, err := h.access.Mint(access.NewKey{Tenant: "t2"})
	if err != nil {
		t.Fatal(err)
	}
	h.write(func(tx *db.Tx) error {
		h.access.CreateKey(tx, other)
		_, err := h.tenants.Create(tx, tenant.Tenant{ID: "t2", Name: "Kumasi Foods", Mode: tenant.Test})
		return err
	})
	const large = moneyBody + 1<<10
	used := func(tenant string) int64 {
		h.api.large.mu.Lock()
		defer h.api.large.mu.Unlock()
		return h.api.large.of[tenant]
	}
	first, second := h.upload(h.key.Text, large), h.upload(h.key.Text, large)
	clocktest.Await(t, "two large bodies", func() bool { return used("t1") == 2*bulkBody })
	third := h.upload(h.key.Text, large)
	h.ask("POST", v1+"list", `{"amount":1}`).want(t, 200, "")
	h.ask("POST", v1+"payout", `{"amount":1}`).want(t, 200, "")
	neighbour := h.upload(other.Text, large)
	clocktest.Await(t, "the neighbour's", func() bool { return used("t2") == bulkBody })
	if got := <-third.code; got != http.StatusServiceUnavailable {
		t.Errorf("a third large body at once answers %d", got)
	}
	if h.log.Len() > 0 {
		t.Errorf("whom it turns away is logged: %s", h.log.String())
	}
	for _, u := range []upload{first, second, neighbour} {
		_, _ = io.WriteString(u.body, `"}`)
		_ = u.body.Close()
		if got := <-u.code; got != http.StatusOK {
			t.Errorf("it answers %d", got)
		}
	}
	for _, r := range []*room{h.api.small, h.api.large} {
		if len(r.of) > 0 || r.free != smallRoom && r.free != largeRoom {
			t.Errorf("of a room %d bytes are free, and %v has some", r.free, r.of)
		}
	}
}

// While the disk is nearly full, requests for rows that no payment needs are refused. Payments continue.
func TestShortDisk_refusesOnlyLists(t *testing.T) {
	short := true
	h := open(t, func(d *Deps) { d.Short = func() bool { return short } })
	h.api.add(Route{Method: http.MethodPost, Path: "probe/list", Scope: access.Contacts, Body: bulkBody, Stores: true, handle: echo})
	if a := h.ask("POST", v1+"list", `{"amount":1}`).want(t, 503, "storage_low"); a.Header().Get("Retry-After") != "60" {
		t.Errorf("it comes again after %q", a.Header().Get("Retry-After"))
	}
	h.ask("POST", v1+"payout", `{"amount":1}`).want(t, 200, "")
	short = false
	h.ask("POST", v1+"list", `{"amount":1}`).want(t, 200, "")
	stores := 0
	for _, r := range Routes() {
		if r.Stores {
			stores++
			if r.Scope != access.SMS && r.Scope != access.Contacts && r.Path != "payment-api/batches" {
				t.Errorf("%s is refused on a full disk", r.Path)
			}
		}
	}
	if stores != 7 {
		t.Errorf("%d endpoints are refused on a full disk", stores)
	}
}

// Each tenant has a limit for requests that cost the installation money. It is far above what a client needs.
func TestLimits_ofCostlyRequests(t *testing.T) {
	limited := map[string]int64{}
	for _, r := range Routes() {
		if limited[r.Path] = r.Limit.Max; r.Limit.OfKey >= r.Limit.Max && r.Limit.OfKey > 0 {
			t.Errorf("a key may use up the limit of %s", r.Path)
		}
	}
	for _, path := range []string{"payment-api/bankNameQuery", "kyc-api/msisdNameQuery", "databundle-api-v2/offers/{service_id}/{phone_number}"} {
		if limited[path] != 600 {
			t.Errorf("%s is limited to %d", path, limited[path])
		}
	}
	if limited["payment-api/checkstatus/{transaction_id}"] != 0 {
		t.Error("the status of a payment is limited")
	}
}

// One key may use only a part of a limit, so that the rest remains for the customer's other keys. Requests of the key
// that are refused do not use up the rest.
func TestLimits_keyLeavesRestToOthers(t *testing.T) {
	h := open(t, nil)
	other, err := h.access.Mint(access.NewKey{Tenant: h.tenant})
	if err != nil {
		t.Fatal(err)
	}
	h.write(func(tx *db.Tx) error {
		h.access.CreateKey(tx, other)
		return nil
	})
	const path = "/api/v1/probe/shared"
	for i, want := range []struct {
		key    string
		status int
		left   string
	}{{h.key.Text, 200, "1"}, {h.key.Text, 200, "0"}, {h.key.Text, 429, "0"}, {h.key.Text, 429, "0"}, {other.Text, 200, "0"}, {other.Text, 429, "0"}} {
		a := h.ask("GET", path, "", "X-Api-Key", want.key)
		if left := a.Header().Get("X-RateLimit-Remaining"); a.ResponseRecorder.Code != want.status || left != want.left {
			t.Errorf("request %d: %d with %s left, want %d with %s", i, a.ResponseRecorder.Code, left, want.status, want.left)
		}
	}
}

// A request that waits for memory gets it as soon as some is free.
func TestRoom_passesToWaiters(t *testing.T) {
	r := newRoom(10, 6)
	if r.try("a", 6) != nil || r.try("b", 4) != nil {
		t.Fatal("there is room")
	}
	if r.try("a", 1) == nil || r.try("c", 1) == nil {
		t.Fatal("a share, or the room, has no end")
	}
	waiting := make(chan error)
	go func() { waiting <- r.take(t.Context(), "c", 5) }()
	r.give("a", 6)
	if err := <-waiting; err != nil || r.free != 1 || len(r.of) != 2 {
		t.Errorf("%v, %d bytes are free of %v", err, r.free, r.of)
	}
}

// A body costs a small multiple of its size in memory, whatever its content is. Earlier, 1.4 million empty contacts
// took 100 MB.
func TestBody_hostileCostsLittleMemory(t *testing.T) {
	fill := func(head, item, tail string) []byte {
		n := (bulkBody - len(head) - len(tail)) / len(item)
		return []byte(head + strings.TrimSuffix(strings.Repeat(item, n), ",") + tail)
	}
	var members strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&members, `"a%d":1,`, i)
	}
	for name, body := range map[string][]byte{
		"empty contacts":   fill(`{"contacts":[`, `{},`, `]}`),
		"empty recipients": fill(`{"recipients":[`, `"",`, `]}`),
		"lists":            fill(`{"recipients":[`, `[],`, `]}`),
		"many members":     []byte(`{` + strings.TrimSuffix(members.String(), ",") + `}`),
		"members twice":    fill(`{`, `"a":1,`, `}`),
		"one contact":      []byte(`{"contacts":[{` + strings.TrimSuffix(members.String(), ",") + `}]}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f := &form{}
		o, err := wire.Decode(body, &f.fields)
		if f.object = o; err == nil {
			f.objects("contacts", contacts.MaxBulk)
			f.list("recipients", messaging.MaxRecipients)
		}
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 20 {
			t.Errorf("%s: %d MB for %d MB", name, took, len(body)>>20)
		}
	}
}

// Scans of large bodies take turns. Small bodies are scanned at once.
func TestScans_largeBodiesTakeTurns(t *testing.T) {
	s, inside, goOn, second := make(scans, 1), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go s.do(moneyBody+1, func() { close(inside); <-goOn })
	<-inside
	small := false
	s.do(moneyBody, func() { small = true })
	if !small {
		t.Error("a small body was not scanned")
	}
	go s.do(moneyBody+1, func() {
		select {
		case <-goOn:
		default:
			t.Error("two large bodies were scanned at once")
		}
		close(second)
	})
	close(goOn)
	<-second
	if len(newScans()) != 0 || cap(newScans()) < 1 || cap(newScans()) > max(1, runtime.GOMAXPROCS(0)/2) {
		t.Errorf("%d turns on %d processors", cap(newScans()), runtime.GOMAXPROCS(0))
	}
}
