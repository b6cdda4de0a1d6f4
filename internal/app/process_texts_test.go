//go:build !race

// The program under test is built as it ships, as in process_sms_test.go.

package app_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/sim/arkesel"
	"github.com/makola/makola/internal/test/clocktest"
)

// webTexts are the texts that the simulated Arkesel accepted, by number and by the id in the text.
func webTexts(t testing.TB, control *client) (taken map[string]map[string]int, total int) {
	t.Helper()
	var list []struct{ To, Text string }
	control.get(t, "/arkesel/texts", &list)
	taken = map[string]map[string]int{}
	for _, x := range list {
		id := idInText.FindStringSubmatch(x.Text)
		if id == nil {
			t.Fatalf("%s got %q, which nobody sent", x.To, x.Text)
		}
		if taken[id[1]] == nil {
			taken[id[1]] = map[string]int{}
		}
		taken[id[1]][x.To]++
	}
	return taken, len(list)
}

// The server is killed while it sends texts over HTTP, with lost answers, and over the binds after Arkesel refused the account. No
// handset gets a text twice, over one route or two, and nothing is charged wrongly.
func TestKilled_whileSendingOverHTTP(t *testing.T) {
	t.Parallel()
	for _, run := range []struct {
		name   string
		engine db.Engine
		kills  int
	}{{"sqlite", db.SQLite, 4}, {"postgres", db.Postgres, smsKillsPostgres}} {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			sim, where := startSim(t), newSite(t, run.engine)
			centre := messageCentre(t, sim)
			centre.counts(t)
			where.live(t)
			account := arkesel.Config(strings.TrimSuffix(sim.ready.SimURL, "/sim/v1"))
			where.environment = append(where.environment, "MAKOLA_ARKESEL_API_KEY="+account.APIKey.Reveal(), "MAKOLA_ARKESEL_URL="+account.URL)
			fault := func(kind, answer string, every int) {
				body := map[string]any{"provider": "arkesel", "operation": "text", "fault": kind, "count": 1000, "every": every, "delay_s": 0.2}
				if answer != "" {
					body["answer"], body["count"] = answer, 1
				}
				if a, err := centre.control.call(http.MethodPost, "/faults", body); err != nil || a.status != http.StatusOK {
					t.Fatalf("%s: %v %+v", kind, err, a)
				}
			}
			fault("answer_lost", "", 29)
			fault("slow", "", 2)
			args := centre.flags("--node", "one", "--sms-route", "*:*:arkesel+smpp")
			server := where.serve(t, "makola", sim, args...)
			key, sender := smsTenant(t, where, server)
			l := startSMSLoad(t, run.name, sender, newClient(server.ready.APIURL, key))
			random := rand.New(rand.NewPCG(3, uint64(run.engine)))
			took := func() int64 {
				_, n := webTexts(t, centre.control)
				return int64(n) + centre.totals(t).Accepted
			}
			for n := range run.kills {
				before, accepted := l.sent.Load(), took()
				clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= before+10*smsCallers })
				clocktest.Await(t, "messages to go out", func() bool { return took() > accepted+5 })
				pause(time.Duration(random.IntN(200)) * time.Millisecond)
				server.kill()
				server = where.serve(t, "makola", sim, args...)
				l.target.Store(newClient(server.ready.APIURL, key))
				if n == run.kills/2-1 || run.kills == 1 {
					fault("refuse", "402:x", 1)
				}
			}
			texts := l.end()
			v := smsVerification{t: t, centre: centre, api: newClient(server.ready.APIURL, key), taken: map[string]map[string]map[int]int{}, asked: map[string]bool{}}
			v.verifyRoutes(texts)
			where.command(t, "ledger", "check")
		})
	}
}

// verifyRoutes compares each message with the messages that both providers accepted.
func (v *smsVerification) verifyRoutes(texts []text) {
	v.t.Helper()
	counts, overWeb, overBinds := map[string]int{}, 0, 0
	for _, m := range texts {
		if m.campaign == "" {
			continue
		}
		var rows []smsRow
		clocktest.Await(v.t, "the end of "+m.id, func() bool {
			rows = v.rows(m)
			for _, r := range rows {
				if r.Status == "queued" {
					return false
				}
			}
			return len(rows) > 0
		})
		for _, r := range rows {
			counts[r.Status]++
		}
	}
	web, _ := webTexts(v.t, v.centre.control)
	for _, m := range texts {
		for _, to := range m.to {
			number := "233" + to[1:]
			parts := v.received(m.id, number)
			for part, n := range parts {
				if n > 1 || web[m.id][number] > 0 {
					v.t.Errorf("%s to %s: part %d came %d times over the binds, and %d times over HTTP", m.id, number, part, n, web[m.id][number])
				}
			}
			if n := web[m.id][number]; n > 1 {
				v.t.Errorf("%s came to %s %d times over HTTP", m.id, number, n)
			}
			overWeb += web[m.id][number]
			overBinds += min(len(parts), 1)
		}
	}
	if overWeb == 0 || overBinds == 0 {
		v.t.Errorf("%d over HTTP, %d over the binds", overWeb, overBinds)
	}
	v.t.Logf("%d requests: %v; %d over HTTP, %d over the binds", len(texts), counts, overWeb, overBinds)
}
