package hubtel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// plainHubtel is a client of Hubtel that is written only from the page about testing.
type plainHubtel struct {
	t        *testing.T
	page     string
	url      string // URL of the simulated Hubtel
	callback *httptest.Server
	mu       sync.Mutex
	codes    map[string][]string // codes of callbacks, by reference
}

func newPlainHubtel(t *testing.T, s *sim.Sim) *plainHubtel {
	t.Helper()
	page, err := os.ReadFile("../../guides/pages/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "## Clients of Hubtel\n")
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	h := &plainHubtel{t: t, page: part, url: server.URL + "/hubtel", codes: map[string][]string{}}
	h.callback = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b struct {
			ResponseCode string
			Data         struct{ ClientReference string }
		}
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil || r.Method != http.MethodPost {
			t.Errorf("callback: %s, %v", r.Method, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.codes[b.Data.ClientReference] = append(h.codes[b.Data.ClientReference], b.ResponseCode)
	}))
	t.Cleanup(h.callback.Close)
	return h
}

// value returns the page's value of a credential.
func (h *plainHubtel) value(name string) string {
	h.t.Helper()
	m := regexp.MustCompile(`(?m)^\| ` + name + `[^|]*\| ` + "`([^`]+)`").FindStringSubmatch(h.page)
	if m == nil {
		h.t.Fatalf("the page has no %s", name)
	}
	return m[1]
}

// ask returns a summary of the answer: its code if it has one, else its HTTP status, "lost" or "unreadable".
func (h *plainHubtel) ask(path, body string) (word, text string) {
	h.t.Helper()
	method, path, _ := strings.Cut(path, " ")
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.SetBasicAuth(h.value("Client ID"), h.value("Client secret"))
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return "lost", ""
	}
	defer a.Body.Close()
	raw, _ := io.ReadAll(a.Body)
	var b struct{ ResponseCode string }
	err = json.Unmarshal(raw, &b)
	switch {
	case a.StatusCode == http.StatusServiceUnavailable:
		return "503", ""
	case err != nil:
		return "unreadable", ""
	}
	return b.ResponseCode, string(raw)
}

var statusWord = regexp.MustCompile(`"(?:status|transactionStatus)":"([A-Za-z]+)"`)

// status returns Hubtel's status of a reference, or the code of the answer.
func (h *plainHubtel) status(name, reference string) string {
	h.t.Helper()
	code, text := h.ask(strings.Replace(h.value(name), "...", reference, 1), "")
	if m := statusWord.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return code
}

// called returns the codes of the callbacks about a reference.
func (h *plainHubtel) called(reference string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.codes[reference]) == 0 {
		return "none"
	}
	return strings.Join(h.codes[reference], ", then ")
}

// order sends a request to receive or send money.
func (h *plainHubtel) order(name, party, reference string) string {
	h.t.Helper()
	side := "Customer"
	if name != "Receive money" {
		side = "Recipient"
	}
	code, _ := h.ask(h.value(name), fmt.Sprintf(`{"%sName":"Ama","%sMsisdn":"%s","Channel":"vodafone-gh","Amount":2.5,"PrimaryCallbackUrl":"%s","Description":"Dues","ClientReference":"%s"}`,
		side, side, party, h.callback.URL, reference))
	return code
}

// Each row of the page's table states what a plain client sees a minute after its request.
func TestHubtelPage_testNumbers(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	h := newPlainHubtel(t, s)
	rows := regexp.MustCompile("(?m)^\\| `(\\d{3})` \\|.*$").FindAllStringSubmatch(h.page, -1)
	if len(rows) < 20 {
		t.Fatalf("the page has %d rows", len(rows))
	}
	for _, row := range rows {
		code := row[1]
		party, in, out := "233200000"+code, "in"+code, "out"+code
		received, sent := h.order("Receive money", party, in), h.order("Send to a wallet", party, out)
		for range 60 {
			clock.Advance(time.Second)
			if err := s.Quiet(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s | %s |", code, received, h.called(in), h.status("Its status", in), sent, h.called(out), h.status("Their status", out))
		if got != row[0] {
			t.Errorf("the page has\n%s\nand the client sees\n%s", row[0], got)
		}
	}
}

// The hosts, paths and refusals are those that the page states.
func TestHubtelPage_statements(t *testing.T) {
	s, clock := simtest.New(t, sim.Options{}, New(Options{}))
	h := newPlainHubtel(t, s)
	hosts := regexp.MustCompile("(?m)^\\| `https://([a-z-]+)\\.hubtel\\.com` \\| `@hubtel@/([a-z-]+)` \\|").FindAllStringSubmatch(h.page, -1)
	if len(hosts) != 7 {
		t.Errorf("the page has %d hosts", len(hosts))
	}
	for _, host := range hosts {
		if host[1] != host[2] || !strings.Contains(h.page, " /"+host[1]+"/") {
			t.Errorf("%s is at %s, or no path begins with it", host[1], host[2])
		}
	}
	wants := func(what, want, path, body string) {
		t.Helper()
		if got, text := h.ask(path, body); got != want {
			t.Errorf("%s: %s %s, want %s", what, got, text, want)
		}
	}
	for _, name := range []string{"Name of a wallet", "Name of a bank account", "Name of a number", "Data offered to a number"} {
		wants(name, "0000", h.value(name), "")
	}
	for _, path := range regexp.MustCompile("`(GET /trnf/[^`]+)`").FindAllStringSubmatch(h.page, -1) {
		wants("balance", "0000", path[1], "")
	}
	wants("a wallet without a name", "3000", strings.Replace(h.value("Name of a wallet"), "0244123456", "0240000027", 1), "")
	sells := strings.Replace(h.value("Airtime, data"), "{service id}", "fdd76c884e614b1c8f669a3207b09a98", 1)
	wants("airtime", "0001", sells, `{"Destination":"233244123456","Amount":1,"CallbackUrl":"`+h.callback.URL+`","ClientReference":"top1"}`)
	bank := `{"Amount":2.5,"PrimaryCallbackUrl":"` + h.callback.URL + `","Description":"Dues","BankAccountNumber":"0012345678901","ClientReference":"bank1"}`
	wants("to a bank", "0001", h.value("Send to a bank"), bank)
	wants("to a bank again", "4000", h.value("Send to a bank"), bank)
	clock.Advance(3 * time.Second)
	if got := h.status("Their status", "bank1") + " " + h.status("Its status", "top1") + " " + h.status("Its status", "nobody"); got != "success Paid 3000" {
		t.Errorf("the statuses are %s", got)
	}
	if err := s.SetFloat(Name, 1); err != nil {
		t.Fatal(err)
	}
	if got := h.order("Send to a wallet", "233200010000", "poor"); got != "4075" {
		t.Errorf("a payout without a float: %s", got)
	}
	if err := s.Quiet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.called("top1") + " " + h.called("bank1"); got != "0000 0000" {
		t.Errorf("the callbacks are %s", got)
	}
}
