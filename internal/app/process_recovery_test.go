//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
)

// lost is the number of requests in each of three phases: before the backup, after it, and after it with other routes.
const lost = 24

// runbook returns the commands of the page for a restore, a block a step.
func runbook(t testing.TB) (blocks [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbooks/restore.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		var lines []string
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, strings.TrimPrefix(line, "makola "))
			}
		}
		blocks = append(blocks, lines)
	}
	return blocks
}

// words splits a line as a shell does, for quotes without escapes.
func words(line string) (all []string) {
	for _, word := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1) {
		all = append(all, strings.Trim(word, `"`))
	}
	return all
}

// errand is a request that a client repeats until it is answered.
type errand struct {
	*product
	reference string
	n         int
}

// sendAll makes requests, some at once, each until it is answered.
func sendAll(t testing.TB, api *client, errands []errand) {
	t.Helper()
	c := crowd[errand]{t: t}
	c.target.Store(api)
	var next atomic.Int64
	for range 4 {
		c.done.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(errands)); i = next.Add(1) - 1 {
				one := errands[i]
				if a := c.insist(one.path, one.body(one.reference, one.n)); !slices.Contains([]int{http.StatusOK, http.StatusBadRequest, http.StatusUnprocessableEntity}, a.status) {
					t.Errorf("%s %s: %d %s", one.name, one.reference, a.status, a.message)
				}
			}
		})
	}
	c.done.Wait()
}

// floats returns the difference between the ledger and the simulator by provider.
func floats(t testing.TB, where site, sim *process, api *client) map[string]float64 {
	t.Helper()
	var ours []struct{ Asset, Account, Held string }
	decode(t, where.command(t, "float", "show", "-o", "json"), &ours)
	var theirs []struct {
		Provider string
		Amount   float64
	}
	(&client{base: sim.ready.SimURL, http: api.http}).get(t, "/float", &theirs)
	gap := map[string]float64{}
	for _, f := range theirs {
		gap[f.Provider] = math.Round(f.Amount * 100)
	}
	for _, f := range ours {
		held, err := strconv.ParseFloat(f.Held, 64)
		if name, _, _ := strings.Cut(strings.TrimPrefix(f.Account, "float/"), "/"); err == nil && f.Asset != "GHS" {
			gap[name] -= math.Round(held * 100)
		}
	}
	return gap
}

// The test follows the page for a restore, word by word. Its mixed load is partly sent after the backup. Then all requests are sent
// again in another order and with other routes. Everything is paid once, nothing is lost, and the floats agree as before.
func TestRestore_runbookPaysOnce(t *testing.T) {
	t.Parallel()
	steps := runbook(t)
	if len(steps) != 3 {
		t.Fatalf("the page has %d blocks of commands, want those of the restore, of the closed phase and of the end", len(steps))
	}
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			sim, where := startSim(t), newSite(t, engine)
			where.environment = []string{"MAKOLA_MASTER_KEY=" + strings.Repeat("6e", 32)}
			server := where.serve(t, "makola", sim)
			key, tenant := server.ready.APIKey, server.ready.TenantID
			api := newClient(server.ready.APIURL, key)
			route := func(at site, providers ...string) {
				t.Helper()
				at.command(t, append(append([]string{"providers", "route", "disburse_wallet", "MTN"}, providers...), "--reason", "test")...)
			}
			before := floats(t, where, sim, api)
			kinds := slices.DeleteFunc(products(t, server), func(p product) bool { return p.name == "data package" }) // these are found by another reference
			kinds = append(kinds, product{"payout", "/payment-api/send/mobilemoney", "/payment-api/checkstatus/", 0, 0, func(reference string, n int) map[string]any {
				return map[string]any{"amount": "0.50", "channel": "MTN", "account_number": outcomes[n%8], "client_reference": reference}
			}})
			var errands []errand
			for n := range 3 * lost {
				errands = append(errands, errand{&kinds[n%len(kinds)], fmt.Sprintf("restored-%06d", n), n / len(kinds) % 4}) // no failing payments, because a refused one waits for VisibleAfter
			}
			sendAll(t, api, errands[:lost])
			var made struct {
				File string `json:"file"`
			}
			decode(t, where.command(t, "backup", "create", "--folder", filepath.Join(t.TempDir(), "backups"), "-o", "json"), &made)
			where.command(t, "wallet", "fund", tenant, "77.00", "--reason", "after the backup", "--reference", "forgotten")
			route(where, "mtn", "hubtel")
			sendAll(t, api, errands[lost:2*lost])
			route(where, "hubtel", "mtn")
			where.command(t, "providers", "pause", "mtn", "--mode", "test", "--operation", "disburse_wallet", "--reason", "an outage")
			sendAll(t, api, errands[2*lost:])
			server.kill()

			after := where.beside(t)
			acts, err := os.ReadFile(filepath.Join(where.data, "acts.jsonl"))
			if err == nil {
				err = os.WriteFile(filepath.Join(after.data, "acts.jsonl"), acts, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			step := func(lines []string) (printed string) {
				t.Helper()
				for _, line := range lines {
					printed += string(after.command(t, words(strings.ReplaceAll(line, "FILE", made.File))...))
				}
				return printed
			}
			step(steps[0])
			server = after.serve(t, "the restored one", sim)
			api = newClient(server.ready.APIURL, key)
			if a, err := api.call(http.MethodGet, "/account-api/balance", nil); err != nil || a.status != http.StatusServiceUnavailable {
				t.Errorf("a customer got in before operators had done their acts again: %d %v", a.status, err)
			}
			if printed := step(steps[1]); !strings.Contains(printed, "after the backup") || !strings.Contains(printed, "an outage") {
				t.Errorf("what the backup has forgotten is not listed: %s", printed)
			}
			route(after, "mtn", "hubtel")
			random := rand.New(rand.NewPCG(4, uint64(engine)))
			random.Shuffle(len(errands), func(i, j int) { errands[i], errands[j] = errands[j], errands[i] })
			sendAll(t, api, errands)
			hasten(t, []*process{server}, "every payment to be settled", func() bool {
				pause(100 * time.Millisecond) // each check starts a process
				return alive(t, after) == 0
			})
			statuses := map[string]int{}
			for _, one := range errands {
				statuses[api.settledOnce(t, sim, one.status+one.reference)]++
			}
			t.Logf("%d requests: %v", len(errands), statuses)
			if gap := floats(t, after, sim, api); !maps.Equal(gap, before) {
				t.Errorf("the floats differ by %v, before by %v", gap, before)
			}
			step(steps[2])
			after.command(t, "ledger", "check")
		})
	}
}

// alive returns the number of open payments.
func alive(t testing.TB, where site) (n int64) {
	t.Helper()
	var depths []struct {
		Kind  string
		Alive int64
	}
	decode(t, where.command(t, "jobs", "depth", "-o", "json"), &depths)
	for _, d := range depths {
		if d.Kind == "payment" {
			n += d.Alive
		}
	}
	return n
}

// settledOnce checks a settled payment against the simulator's book. A successful payment is there once, a failed payment
// never.
func (c *client) settledOnce(t testing.TB, sim *process, path string) string {
	t.Helper()
	status, rows := c.paidOnce(t, sim, path)
	if status != "success" && status != "failed" || rows != 1 {
		t.Errorf("%s is %s, with %d rows in the provider's book", path, status, rows)
	}
	return status
}

// paidOnce checks a payment against the simulator's book: paid once if it succeeded, otherwise never. rows is the number of the
// payment's rows in the book.
func (c *client) paidOnce(t testing.TB, sim *process, path string) (status string, rows int) {
	t.Helper()
	var seen struct {
		Status   string `json:"status"`
		External string `json:"ext_transaction_id"`
	}
	c.get(t, path, &seen)
	var all []struct {
		Provider string `json:"provider"`
		Status   string `json:"status"`
	}
	(&client{base: sim.ready.SimURL, http: c.http}).get(t, "/transactions?reference="+seen.External, &all)
	paid := 0
	for _, r := range all {
		if r.Status == "success" {
			paid++
		}
	}
	if want := map[string]int{"success": 1}[seen.Status]; paid != want {
		t.Errorf("%s is %s, and was paid %d times: %+v", path, seen.Status, paid, all)
	}
	return seen.Status, len(all)
}
