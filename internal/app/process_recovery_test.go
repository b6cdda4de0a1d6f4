//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/makola/makola/internal/clock/clocktest"
	"github.com/makola/makola/internal/db"
)

// lost is how many payouts each life of the database has.
const lost = 12

// runbook gives the commands of the page for a restore, a block a step.
func runbook(t testing.TB) (blocks [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "\n## Restore from a backup\n")
	page, _, _ = strings.Cut(page, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
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

// The page for a restore, word by word: what was sent after the backup is sent again, in another order and with other
// routes. Everything is paid once.
func TestTheRunbookOfARestorePaysNothingTwice(t *testing.T) {
	t.Parallel()
	steps := runbook(t)
	if len(steps) != 3 {
		t.Fatalf("the page has %d blocks of commands, want those of the restore, of the closed phase and of the end", len(steps))
	}
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			sim, in, where := startSim(t), newInbox(t), newSite(t, engine)
			where.environment = []string{"MAKOLA_MASTER_KEY=" + strings.Repeat("6e", 32)}
			server := where.serve(t, "makola", sim)
			key := server.ready.APIKey
			var api *client
			pay := func(reference string) bool {
				payee := outcomes[int(reference[len(reference)-1])%8] // none that is refused in the end but by the status
				a, err := api.call(http.MethodPost, "/payment-api/send/mobilemoney", map[string]any{"amount": "0.50", "account_number": payee,
					"channel": "MTN", "client_reference": reference, "callback_url": in.server.URL})
				return err == nil && (a.status == http.StatusOK || a.status == http.StatusUnprocessableEntity)
			}
			route := func(at site, providers ...string) {
				t.Helper()
				at.command(t, append(append([]string{"providers", "route", "disburse_wallet", "MTN"}, providers...), "--reason", "test")...)
			}
			send := func(references []string) {
				t.Helper()
				for _, r := range references {
					clocktest.Await(t, "an answer about "+r, func() bool { return pay(r) })
				}
			}
			api = newClient(server.ready.APIURL, key)
			var references []string
			for n := range 3 * lost {
				references = append(references, fmt.Sprintf("restored-%06d", n))
			}
			send(references[:lost])
			folder := filepath.Join(t.TempDir(), "backups")
			var made struct {
				File string `json:"file"`
			}
			decode(t, where.command(t, "backup", "create", "--folder", folder, "-o", "json"), &made)
			route(where, "mtn", "hubtel")
			send(references[lost : 2*lost])
			route(where, "hubtel", "mtn")
			where.command(t, "providers", "pause", "mtn", "--mode", "test", "--reason", "an outage")
			send(references[2*lost:])
			server.kill()

			after := where.beside(t)
			step := func(lines []string) {
				t.Helper()
				for _, line := range lines {
					after.command(t, words(strings.ReplaceAll(line, "FILE", made.File))...)
				}
			}
			step(steps[0])
			server = after.serve(t, "the restored one", sim)
			api = newClient(server.ready.APIURL, key)
			if a, err := api.call(http.MethodGet, "/account-api/balance", nil); err != nil || a.status != http.StatusServiceUnavailable {
				t.Errorf("a customer got in before operators had done their acts again: %d %v", a.status, err)
			}
			step(steps[1])
			route(after, "mtn", "hubtel")
			random := rand.New(rand.NewPCG(4, uint64(engine)))
			random.Shuffle(len(references), func(i, j int) { references[i], references[j] = references[j], references[i] })
			send(references)
			clocktest.Await(t, "every payout to be settled", func() bool { return openTransfers(t, api) == 0 })
			for _, r := range references {
				api.settledOnce(t, sim, r)
			}
			step(steps[2])
			after.command(t, "ledger", "check")
		})
	}
}

// settledOnce holds a payout against the simulator's book: paid once where it succeeded, never else.
func (c *client) settledOnce(t testing.TB, sim *process, reference string) {
	t.Helper()
	var seen struct {
		Status   string `json:"status"`
		External string `json:"ext_transaction_id"`
	}
	c.get(t, "/payment-api/checkstatus/"+reference, &seen)
	var rows []struct {
		Provider string `json:"provider"`
		Status   string `json:"status"`
	}
	(&client{base: sim.ready.SimURL, http: c.http}).get(t, "/transactions?reference="+seen.External, &rows)
	paid := 0
	for _, r := range rows {
		if r.Status == "success" {
			paid++
		}
	}
	if want := map[string]int{"success": 1}[seen.Status]; paid != want || len(rows) != 1 {
		t.Errorf("payout %s is %s, and was paid %d times: %+v", reference, seen.Status, paid, rows)
	}
}
