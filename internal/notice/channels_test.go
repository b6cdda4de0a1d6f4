package notice

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/mailtest"
	"github.com/makola/makola/internal/webhook"
)

// hookServer is a receiver of the hook's requests.
type hookServer struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
}

func receiver(t *testing.T) *hookServer {
	t.Helper()
	h := &hookServer{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.bodies, h.heads = append(h.bodies, string(body)), append(h.heads, r.Header)
	}))
	t.Cleanup(h.Close)
	return h
}

// got returns the requests so far.
func (h *hookServer) got() ([]string, []http.Header) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bodies, h.heads
}

var hookKey = []byte("a key of thirty-two made-up bytes")

// hooked returns a node a hook.
func (f *fixture) hooked(url, form string, development bool) *fixture {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "hook")
	if err := os.WriteFile(path, fmt.Appendf(nil, "%s\nwhsec_%s\n", url, base64.StdEncoding.EncodeToString(hookKey)), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.Ways, f.Poster = config.Notices{HookFile: path, HookForm: form}, webhook.NewPoster(webhook.Options{Development: development})
	return f
}

// Ten thousand payments cause one mail to each person, and one signed request to the hook.
func TestHook_floodIsOneSignedRequest(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		to := receiver(t)
		f := node(t, d, mailtest.Start(t, nil), clock.Real()).hooked(to.URL+"/x?secret", config.HookSigned, true).start()
		f.person("ama@pay.example", roles.Owner)
		if err := f.Report(t.Context(), PaymentUnknown, "", doubts(0, 10_000)); err != nil {
			t.Fatal(err)
		}
		f.work()
		f.work()
		f.until("the messages", func() bool { return f.states()[Sent] == 2 })
		bodies, heads := to.got()
		if len(bodies) != 1 || len(f.server.Mails()) != 1 {
			t.Fatalf("%d requests and %d mails", len(bodies), len(f.server.Mails()))
		}
		var b hookBody
		if err := json.Unmarshal([]byte(bodies[0]), &b); err != nil || b.Type != "notice" || b.Data.Topic != Money || b.Data.Title != "Makola: The outcome of 10000 payments is unknown" {
			t.Errorf("%+v, %v", b, err)
		}
		if strings.Contains(bodies[0], "0241234567") || len(bodies[0]) > 4000 {
			t.Error("a whole number, or a long body: " + bodies[0])
		}
		mac := hmac.New(sha256.New, hookKey)
		fmt.Fprintf(mac, "%s.%s.%s", heads[0].Get("Webhook-Id"), heads[0].Get("Webhook-Timestamp"), bodies[0])
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); heads[0].Get("Webhook-Signature") != want || heads[0].Get("Webhook-Id") != b.ID {
			t.Errorf("%v, not %s", heads[0], want)
		}
		list, err := f.Messages(t.Context(), "", 10)
		if err != nil || strings.Contains(fmt.Sprint(list), "secret") {
			t.Errorf("the list of messages has the URL: %v, %v", list, err)
		}
	})
}

// In Slack's form the text cannot mention people, and there is no signature.
func TestHook_slackText(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		to := receiver(t)
		f := node(t, d, mailtest.Start(t, nil), clock.Real()).hooked(to.URL, config.HookSlack, true).start()
		f.write(Fact{Event: BooksWrong, Lines: []string{"ledger <!channel> & more"}})
		f.work()
		f.until("the request", func() bool { return f.states()[Sent] == 1 })
		bodies, heads := to.got()
		var b map[string]string
		if err := json.Unmarshal([]byte(bodies[0]), &b); err != nil || len(b) != 1 || !strings.Contains(b["text"], "*Makola: A book does not balance*\n") || !strings.Contains(b["text"], "&lt;!channel&gt; &amp; more") {
			t.Errorf("%v, %v", b, err)
		}
		if heads[0].Get("Webhook-Signature") != "" {
			t.Error("a signature")
		}
	})
}

// The address rules of webhooks apply to the hook: in production no request goes to this machine.
func TestHook_privateAddressIsRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		to := receiver(t)
		f := quick(node(t, d, mailtest.Start(t, nil), clock.Real()).hooked(strings.Replace(to.URL, "http:", "https:", 1), config.HookSigned, false)).start()
		f.write(Fact{Event: BooksWrong})
		f.work()
		f.until("the failure", func() bool {
			health, err := f.Health(t.Context())
			return err == nil && len(health) == 2 && health[1].Channel == Hook && strings.Contains(health[1].Error, "private network")
		})
		if bodies, _ := to.got(); len(bodies) != 0 {
			t.Error(bodies)
		}
	})
}

// If mail fails, notices about money and security reach the person by SMS and the operators by the hook, once for each message.
func TestUndelivered_otherChannelsCarryMoney(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		to := receiver(t)
		server := mailtest.Start(t, func(step mailtest.Step, _ int) mailtest.Fault {
			if step == mailtest.Recipient {
				return mailtest.Fault{Answer: "550 5.1.1 no such user"}
			}
			return mailtest.Fault{}
		})
		f := node(t, d, server, clock.Real()).hooked(to.URL, config.HookSlack, true)
		var mu sync.Mutex
		texts := map[string]string{}
		f.Ways.SMSAccount, f.Ways.SMSSender = "operator", "MAKOLA"
		f.Audit = audit.New(d, f.Clock)
		f.Text = func(_ context.Context, id, number, text string) error {
			mu.Lock()
			defer mu.Unlock()
			if _, again := texts[id]; again || number != "0241234567" {
				t.Errorf("again, or to %s", number)
			}
			texts[id] = text
			return nil
		}
		f.start()
		ama := f.person("ama@pay.example", roles.Owner)
		f.phone(ama, "0241234567")
		f.report(1)
		f.until("the refusal", func() bool { return f.states()[Failed] == 1 })
		f.work()
		f.work()
		f.until("the SMS and both requests", func() bool { return f.states()[Sent] == 3 })
		bodies, _ := to.got()
		all := strings.Join(bodies, "\n")
		if len(bodies) != 2 || !strings.Contains(all, "was not delivered by mail") || !strings.Contains(all, "To ama@pay.example") {
			t.Error(bodies)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, text := range texts {
			if text != "Makola: The outcome of a payment is unknown. Sign in for details." {
				t.Error(text)
			}
		}
		if len(texts) != 1 {
			t.Errorf("%d SMS", len(texts))
		}
	})
}

// phone stores a person's phone number.
func (f *fixture) phone(person, number string) {
	f.t.Helper()
	if err := f.DB.Write(f.t.Context(), func(tx *db.Tx) error {
		tx.Defer(storePhone, 1, person, number, f.Clock.Now())
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

// A channel that is not configured cannot be tested.
func TestSendTest_needsTheChannel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := node(t, d, mailtest.Start(t, nil), clock.Real())
		for _, c := range []Channel{Hook, SMS} {
			if err := f.SendTest(t.Context(), visitor(f.person("ama@pay.example", roles.Owner), roles.Owner).Person, c); !problem.Is(err, problem.Refused) {
				t.Errorf("%s: %v", c, err)
			}
		}
	})
}

// Texts with a link are counted and sealed again under another master key. Afterwards only that key opens them.
func TestSealed_rotation(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ring := func(fills ...string) config.Secret {
			var keys []string
			for _, fill := range fills {
				keys = append(keys, strings.Repeat(fill, config.SecretBytes))
			}
			s, err := config.ParseSecret(strings.Join(keys, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		f := node(t, d, mailtest.Start(t, nil), clock.Real()) // its queue delivers nothing
		f.Seal = Sealer(ring("aa"))
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return f.Invite(tx, "ama@pay.example", "the-token") }); err != nil {
			t.Fatal(err)
		}
		table := Sealed(d, ring("bb", "aa"))
		moved := int64(0)
		if err := table.Reseal(t.Context(), func(n int64) { moved += n }); err != nil || moved != 1 {
			t.Fatalf("%d moved, %v", moved, err)
		}
		counts, err := table.Under(t.Context())
		if err != nil || counts[ring("bb").Active()] != 1 || len(counts) != 1 {
			t.Errorf("%v, %v", counts, err)
		}
		f.Seal = Sealer(ring("bb"))
		list, err := f.Messages(t.Context(), "", 1)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		m, _, err := f.message(t.Context(), list[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := f.open(m.id, m.body); err != nil || !strings.Contains(text, "the-token") {
			t.Errorf("%q, %v", text, err)
		}
	})
}
