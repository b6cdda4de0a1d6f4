package route_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/hubtel"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// TestNotKnown_checkedBeforeUse: each status interface is queried for a reference that no payment has. If its answer is not
// recognised, the log names the setting.
func TestNotKnown_checkedBeforeUse(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		answer := `{"message":"Not found","responseCode":"3000","data":null}`
		status := http.StatusNotFound
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, answer)
		}))
		defer server.Close()
		account := config.Hubtel{ClientID: "x", POSSales: "1", Prepaid: "2", StatusURL: server.URL, SendStatusURL: server.URL}
		c := clock.NewManual(start)
		ask := func(account config.Hubtel) (map[route.Operation]route.NotKnown, string) {
			t.Helper()
			adapter := hubtel.New(account, provider.ClientOptions{Mode: "test", Clock: c})
			defer adapter.Close()
			var log bytes.Buffer
			table := route.New(d, c, slog.New(slog.NewTextHandler(&log, nil)), []string{"hubtel"}, []provider.Rail{adapter.Rail()})
			if err := table.Seed(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := table.AskNotKnown(t.Context()); err != nil {
				t.Fatal(err)
			}
			list, err := table.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			said := map[route.Operation]route.NotKnown{}
			for _, s := range list {
				if s.NotKnown != nil {
					said[s.Operation] = *s.NotKnown
				}
			}
			return said, log.String()
		}
		all := []route.Operation{route.Collect, route.DisburseWallet, route.DisburseBank, route.TopUp, route.Bundle}
		check := func(said map[route.Operation]route.NotKnown, state, answer string) {
			t.Helper()
			if len(said) != len(all) {
				t.Errorf("said by %d operations: %v", len(said), said)
			}
			for _, op := range all {
				if k := said[op]; k.State != state || k.Answer != answer || !k.At.Equal(c.Now()) {
					t.Errorf("%s: %+v, want %s %q", op, k, state, answer)
				}
			}
		}

		said, log := ask(account)
		check(said, route.NotUnderstood, "404:3000")
		for _, setting := range []string{"MAKOLA_HUBTEL_STATUS_NOT_KNOWN=404:3000", "MAKOLA_HUBTEL_SEND_STATUS_NOT_KNOWN=404:3000"} {
			if !strings.Contains(log, setting) || !strings.Contains(log, "level=WARN") {
				t.Errorf("the log does not say to set %s:\n%s", setting, log)
			}
		}

		c.Advance(24 * time.Hour)
		taught := account
		taught.StatusNotKnown = []config.Reply{{Status: 404, Code: "3000"}}
		taught.SendStatusNotKnown = taught.StatusNotKnown
		said, log = ask(taught)
		check(said, route.Understood, "3000")
		if strings.Contains(log, "level=WARN") {
			t.Errorf("a warning about what is understood:\n%s", log)
		}

		answer = `<html>`
		said, log = ask(taught)
		check(said, route.NotUnderstood, "404")
		if strings.Contains(log, "=404,") {
			t.Errorf("a page of a gateway is to be taught:\n%s", log)
		}
		status = http.StatusForbidden
		said, _ = ask(taught)
		check(said, route.NoAnswer, "403")
		server.Close()
		said, _ = ask(taught)
		check(said, route.NoAnswer, "")
	})
}

// TestNotKnown_interruptedQueryIsNoAnswer: a query that is interrupted, as at a shutdown, gives no result.
func TestNotKnown_interruptedQueryIsNoAnswer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		table := route.New(d, c, slog.New(slog.DiscardHandler), []string{"hubtel", "mtn"}, rails(c))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := table.AskNotKnown(ctx); err == nil {
			t.Error("no word of having been given up")
		}
		list, err := table.List(t.Context())
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		for _, s := range list {
			if s.NotKnown != nil {
				t.Errorf("%s %s: %+v", s.Provider, s.Operation, s.NotKnown)
			}
		}
	})
}
