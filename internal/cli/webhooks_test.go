package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/webhook"
)

const testMasterKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// server has the job queue of a server with the handlers of a test, and its webhooks, on one database.
func (w where) server(handlers ...jobs.Handler) (*jobs.Queue, *webhook.Webhooks) {
	w.t.Helper()
	secret, err := config.ParseSecret(testMasterKey)
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	// Long enough that the server does not look dead on a busy machine.
	q := jobs.New(w.db, clock.Real(), log, jobs.Options{Node: "server", LeaseFor: time.Hour})
	for _, h := range handlers {
		q.Register(h)
	}
	hooks := webhook.New(w.db, q, clock.Real(), log, webhook.Options{Secret: secret, Development: true})
	if err := q.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := q.Stop(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	return q, hooks
}

func (w where) quiet(q *jobs.Queue) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := q.Quiet(ctx); err != nil {
		w.t.Fatal(err)
	}
}

func TestWebhooks_listedAndReplayed(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		q, hooks := w.server()
		calls := make(chan struct{}, 2)
		var status atomic.Int32
		status.Store(http.StatusGone)
		receiver := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			calls <- struct{}{}
			out.WriteHeader(int(status.Load()))
			_, _ = out.Write([]byte("we closed"))
		}))
		defer receiver.Close()
		event := webhook.Event{
			ID: "0192-event", Tenant: id, Mode: "live", Subject: "0192-payment", Kind: webhook.Payout, URL: receiver.URL,
			Amount: 1000, Charges: 10, Status: "success", Reference: "order-000000001", ProviderReference: "ext", First: true,
		}
		if err := w.db.Write(t.Context(), func(tx *db.Tx) error { return hooks.Queue(tx, event) }); err != nil {
			t.Fatal(err)
		}
		w.quiet(q)
		<-calls
		failed := w.list("webhooks", "list", "--state", "failed")
		if len(failed) != 1 {
			t.Fatalf("failed: %v", failed)
		}
		has(t, failed[0], map[string]any{"id": "0192-event", "tenant": id, "state": "failed", "attempts": 1, "status": 410, "error": "answered 410"})
		attempts := w.list("webhooks", "attempts", "--tenant", id, "0192-event")
		if len(attempts) != 1 {
			t.Fatalf("attempts: %v", attempts)
		}
		has(t, attempts[0], map[string]any{"number": 1, "status": 410, "answer": "we closed"})

		status.Store(http.StatusOK)
		has(t, w.object("webhooks", "replay", "--tenant", id, "0192-event", "--reason", "they are back"), map[string]any{"replayed": 1})
		select {
		case <-calls:
		case <-time.After(patience):
			t.Fatal("the server never took the replay")
		}
		w.quiet(q)
		list := w.list("webhooks", "list", "--tenant", id)
		if len(list) != 1 || list[0]["state"] != "delivered" || !strings.Contains(list[0]["body"].(string), "order-000000001") {
			t.Errorf("%v", list)
		}
		has(t, w.object("webhooks", "replay", "--tenant", id, "--failed"), map[string]any{"replayed": 0})
		w.run(exitNotFound, "webhooks", "replay", "--tenant", id, "nothing")
		w.run(exitUsage, "webhooks", "replay", "--tenant", id)
		w.run(exitUsage, "webhooks", "list")
		w.run(exitNotFound, "webhooks", "secret", "nobody")

		before := w.object("webhooks", "secret", id)
		after := w.object("webhooks", "secret", id, "--rotate", "--reason", "leaked")
		if s := before["secret"].(string); !strings.HasPrefix(s, "whsec_") || after["former"] != s || after["secret"] == s {
			t.Errorf("%v became %v", before, after)
		}
		if s, err := hooks.Secret(t.Context(), id); err != nil || s.Current != after["secret"] {
			t.Errorf("the server signs with %v, %v", s, err)
		}
		log := w.list("audit", "list", "--tenant", id)
		var actions []string
		for _, l := range log {
			actions = append(actions, l["action"].(string))
		}
		if got := strings.Join(actions, " "); got != "webhook.rotate webhook.read_secret webhook.replay webhook.replay tenant.create" {
			t.Errorf("the log has %s", got)
		}
		if strings.Contains(strings.Join(strings.Fields(must(w.run(exitOK, "audit", "list", "-o", "json"))), ""), "whsec_") {
			t.Error("a secret is in the audit log")
		}
	})
}

func must(stdout, _ string) string { return stdout }

func TestSecrets_needTheMasterKey(t *testing.T) {
	t.Setenv(config.EnvMasterKey, "too short")
	eachAlone(t, func(t *testing.T, w where) {
		_, errs := w.run(exitUsage, "webhooks", "secret", w.tenant())
		if !strings.Contains(errs, config.EnvMasterKey) || strings.Contains(errs, "too short") {
			t.Errorf("%s", errs)
		}
	})
}

// With another key than the servers', a command would print wrong references, and seal a secret that no server can open.
func TestMasterKey_isTheServers(t *testing.T) {
	eachAlone(t, func(t *testing.T, w where) {
		id := w.tenant()
		refused := func(args ...string) {
			t.Helper()
			if out, errs := w.run(exitUsage, args...); out != "" || !strings.Contains(errs, "not the one this database was made with") || !strings.Contains(errs, config.EnvMasterKey) {
				t.Errorf("%v: %s%s", args, out, errs)
			}
		}
		servers, err := config.NewSecret([]byte(strings.Repeat("x", config.SecretBytes)))
		if err != nil {
			t.Fatal(err)
		}
		if err := installation.New(w.db, clock.Real()).Check(t.Context(), servers); err != nil {
			t.Fatal(err)
		}
		t.Setenv(config.EnvMasterKey, testMasterKey)
		refused("payouts", "references", id, "order-000000001")
		refused("webhooks", "secret", id)
		refused("webhooks", "secret", id, "--rotate", "--reason", "leaked")
		if log := w.list("audit", "list", "--action", "webhook.rotate"); len(log) != 0 {
			t.Errorf("audited: %v", log)
		}
		t.Setenv(config.EnvMasterKey, strings.Repeat("78", config.SecretBytes)) // x
		w.run(exitOK, "payouts", "references", id, "order-000000001")
		w.run(exitOK, "webhooks", "secret", id, "--rotate", "--reason", "leaked")
	})
}

func TestJobs_deadOnesRerun(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		rerun := make(chan struct{}, 1)
		q, _ := w.server(jobs.Handler{Kind: "hopeless", Run: func(_ context.Context, j jobs.Job) jobs.Outcome {
			if j.Adopted {
				rerun <- struct{}{}
				return jobs.Later(time.Hour)
			}
			return jobs.Dead(errors.New("no use"))
		}})
		err := w.db.Write(t.Context(), func(tx *db.Tx) error {
			q.Add(tx, jobs.Job{ID: "0192-a", Kind: "hopeless", Subject: "s", Payload: []byte(`{"v":1}`)},
				jobs.Job{ID: "0192-b", Kind: "hopeless", RunAt: time.Now().Add(time.Hour)})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.quiet(q)
		dead := w.list("jobs", "dead")
		if len(dead) != 1 {
			t.Fatalf("dead: %v", dead)
		}
		has(t, dead[0], map[string]any{"id": "0192-a", "subject": "s", "tries": 1, "error": "no use", "node": "", "payload": map[string]any{"v": 1}})
		alive := w.list("jobs", "list", "--kind", "hopeless")
		if len(alive) != 1 || alive[0]["id"] != "0192-b" || !strings.HasPrefix(alive[0]["node"].(string), "server/") {
			t.Errorf("alive: %v", alive)
		}
		w.run(exitConflict, "jobs", "rerun", "0192-b")
		w.run(exitNotFound, "jobs", "rerun", "nothing")
		has(t, w.object("jobs", "rerun", "0192-a", "--reason", "mended"), map[string]any{"rerun": "0192-a"})
		select {
		case <-rerun:
		case <-time.After(patience):
			t.Fatal("the server never took the rerun")
		}
		w.quiet(q)
		if left := w.list("jobs", "dead"); len(left) != 0 {
			t.Errorf("dead: %v", left)
		}
		depth := w.list("jobs", "depth")
		if len(depth) != 1 {
			t.Fatalf("depth: %v", depth)
		}
		has(t, depth[0], map[string]any{"kind": "hopeless", "alive": 2, "dead": 0})
		if log := w.list("audit", "list", "--action", "job.rerun"); len(log) != 1 || log[0]["changes"].([]any)[0] != "job 0192-a: dead letter → waits;" || log[0]["reason"] != "mended" {
			t.Errorf("the log is %v", log)
		}
	})
}

// A command wakes the job of the server that has it, so a waiting event is sent at once.
func TestWebhooksReplay_pendingEvent(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		q, hooks := w.server()
		calls := make(chan struct{}, 3)
		var status atomic.Int32
		status.Store(http.StatusInternalServerError)
		receiver := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			out.WriteHeader(int(status.Load()))
			calls <- struct{}{}
		}))
		defer receiver.Close()
		event := webhook.Event{ID: "0192-event", Tenant: id, Mode: "live", Subject: "0192-payment", Kind: webhook.Payout, URL: receiver.URL,
			Amount: 1000, Status: "success", Reference: "order-000000001", ProviderReference: "ext", First: true}
		if err := w.db.Write(t.Context(), func(tx *db.Tx) error { return hooks.Queue(tx, event) }); err != nil {
			t.Fatal(err)
		}
		sent := func(n int) {
			t.Helper()
			select {
			case <-calls:
			case <-time.After(patience):
				t.Fatalf("attempt %d never came", n)
			}
			w.quiet(q)
		}
		replay := func() {
			t.Helper()
			has(t, w.object("webhooks", "replay", "--tenant", id, "0192-event", "--reason", "they are back"), map[string]any{"replayed": 1})
		}
		sent(1)
		replay()
		sent(2) // the next attempt is five minutes away, longer than this test waits
		status.Store(http.StatusOK)
		replay()
		sent(3)
		if list := w.list("webhooks", "list", "--tenant", id); list[0]["state"] != "delivered" || list[0]["attempts"] != 3.0 {
			t.Errorf("%v", list)
		}
	})
}
