//go:build !race

// The program under test is built as it ships, as in process_sms_test.go.

package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// incomingNumber is the short code to which handsets send texts. STOP to it has no answer, whose receipt would count as an
// acknowledged text. STOP to answeringNumber has one.
const incomingNumber, answeringNumber = "1400", "1500"

// received are the events sms.received that an account got, by the text.
type received struct {
	server *httptest.Server
	mu     sync.Mutex
	ids    map[string][]string // ids of the events of a handset's text
}

func newReceived(t testing.TB) *received {
	r := &received{ids: map[string][]string{}}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var e struct{ ID, From, Text string }
		body, err := io.ReadAll(io.LimitReader(q.Body, 1<<20))
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if key := e.From + " " + e.Text; !slices.Contains(r.ids[key], e.ID) {
			r.ids[key] = append(r.ids[key], e.ID)
		}
	}))
	t.Cleanup(r.server.Close)
	return r
}

// of returns the ids of the events of a handset's text.
func (r *received) of(from, text string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids[from+" "+text])
}

// stored returns the number of texts from handsets, the number of their answers, and the numbers that opted out.
func (s site) stored(t *testing.T) (texts, answers int64, stopped map[string]bool) {
	t.Helper()
	stopped = map[string]bool{}
	d := s.left(t)
	if err := d.Read(t.Context(), func(tx *db.Tx) error {
		if _, err := tx.One(`SELECT count(*), count(CASE WHEN answer <> '' THEN 1 END) FROM inbox_texts`, nil, &texts, &answers); err != nil {
			return err
		}
		return tx.Query(`SELECT msisdn FROM opt_outs`, nil, func(r *db.Row) error {
			var number string
			err := r.Scan(&number)
			stopped[number] = true
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return texts, answers, stopped
}

// The server is killed while handsets send texts. Every text that it acknowledged is stored at that moment. In the end each text
// is stored once, its receiver has its event, and each STOP counts. The handset of an auto-responder, which answers each answer
// by STOP, gets one answer.
func TestKilled_whileReceiving(t *testing.T) {
	t.Parallel()
	for _, run := range []struct {
		engine db.Engine
		kills  int
	}{{db.SQLite, 4}, {db.Postgres, smsKillsPostgres}} {
		t.Run(run.engine.String(), func(t *testing.T) {
			t.Parallel()
			sim, where, events := startSim(t), newSite(t, run.engine), newReceived(t)
			centre := messageCentre(t, sim)
			server := where.serve(t, "makola", sim, "--node", "one")
			tenant := server.ready.TenantID
			where.command(t, "change", "incoming.assign", "--set", "tenant="+tenant, "--set", "number="+incomingNumber, "--set", "answers=off", "--reason", "test")
			where.command(t, "change", "incoming.assign", "--set", "tenant="+tenant, "--set", "number="+answeringNumber, "--reason", "test")
			where.command(t, "change", "tenant.set", "--set", "tenant="+tenant, "--set", "sms_url="+events.server.URL, "--reason", "test")
			random := rand.New(rand.NewPCG(5, uint64(run.engine)))
			type handset struct{ local, text string }
			var sent []handset
			sends := func(from, to, text string) {
				t.Helper()
				if a, err := centre.control.call(http.MethodPost, "/smsc/texts", map[string]any{"from": "233" + from[1:], "to": to, "text": text}); err != nil || a.status != http.StatusOK {
					t.Fatalf("%s: %v %+v", from, err, a)
				}
			}
			burst := func(count int) {
				t.Helper()
				for range count {
					h := handset{fmt.Sprintf("02451%05d", len(sent)), fmt.Sprintf("order %d", len(sent))}
					if len(sent)%3 == 0 {
						h.text = "STOP"
					}
					sent = append(sent, h)
					sends(h.local, incomingNumber, h.text)
				}
			}
			for n := range run.kills {
				before := centre.totals(t).Confirmed
				burst(60)
				clocktest.Await(t, "texts to be acknowledged", func() bool { return centre.totals(t).Confirmed >= before+int64(10+random.IntN(30)) })
				server.kill()
				acknowledged := centre.totals(t).Confirmed
				if texts, _, _ := where.stored(t); texts < acknowledged {
					t.Errorf("kill %d: %d texts were acknowledged, and %d are stored", n+1, acknowledged, texts)
				}
				server = where.serve(t, fmt.Sprintf("makola %d", n+2), sim, "--node", "one")
			}
			burst(20)
			hasten(t, []*process{server}, "the events of all texts", func() bool {
				return !slices.ContainsFunc(sent, func(h handset) bool { return len(events.of(h.local, h.text)) == 0 })
			})
			const auto = "0245200001"
			var answers []struct{ From, Text string }
			replied := 0
			sends(auto, answeringNumber, "STOP")
			hasten(t, []*process{server}, "the answer to STOP", func() bool {
				centre.control.get(t, "/handsets/233"+auto[1:]+"/messages", &answers)
				return len(answers) > 0
			})
			for range 5 {
				for ; replied < len(answers); replied++ {
					sends(auto, answeringNumber, "STOP")
				}
				hasten(t, []*process{server}, "the events of the auto-responder's texts", func() bool { return len(events.of(auto, "STOP")) > replied })
				pause(100 * time.Millisecond)
				centre.control.get(t, "/handsets/233"+auto[1:]+"/messages", &answers)
			}
			server.kill()
			_, answered, stopped := where.stored(t)
			if len(answers) != 1 || answered != 1 {
				t.Errorf("an auto-responder got %d answers, and %d are stored: %v", len(answers), answered, answers)
			}
			for _, h := range sent {
				if ids := events.of(h.local, h.text); len(ids) != 1 {
					t.Errorf("%s %q came as %d events", h.local, h.text, len(ids))
				}
				if stopped["233"+h.local[1:]] != (h.text == "STOP") {
					t.Errorf("%s %q: opted out %v", h.local, h.text, stopped["233"+h.local[1:]])
				}
			}
			where.command(t, "ledger", "check")
		})
	}
}
