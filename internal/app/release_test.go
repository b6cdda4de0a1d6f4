//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"archive/zip"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// previousRelease builds the previous release from its commit, which testdata/previous-release names.
func previousRelease(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/previous-release")
	if err != nil {
		t.Fatal(err)
	}
	commit, folder := strings.TrimSpace(string(text)), t.TempDir()
	source, packed, path := filepath.Join(folder, "source"), filepath.Join(folder, "source.zip"), filepath.Join(folder, "makola")
	git := func(args ...string) ([]byte, error) { // the checkout may belong to another user
		return exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", "../.."}, args...)...).CombinedOutput()
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err == nil && strings.TrimSpace(string(shallow)) == "true" {
		if out, err := git("fetch", "--quiet", "--unshallow"); err != nil {
			t.Logf("the history could not be fetched: %v\n%s", err, out)
		}
	}
	if out, err := git("archive", "--format=zip", "-o", packed, commit); err != nil {
		t.Fatalf("the release before is commit %s, which is not in this checkout: this test needs the whole history, so fetch it (git fetch --unshallow): %v\n%s",
			commit, err, out)
	}
	files, err := zip.OpenReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = files.Close() }()
	if err := os.CopyFS(source, files); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./cmd/makola") // with -trimpath, a build in another folder is identical
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the release before, %s, cannot be built: %v\n%s", commit, err, out)
	}
	return path
}

// ofTheLoad are warnings that a load with lost answers and refusals may cause on any tables, in the words of both releases.
var ofTheLoad = []string{"payment needs attention", "circuit breaker changed state", "a payment needs an operator", "provider circuit breaker"}

// ofItsStop is the log line of the previous release when it stops before it has stored all receipts.
const ofItsStop = `"a receipt could not be stored","bind":"simulator","error":"context canceled"`

// complaints returns the warnings and errors of a log, except expected ones.
func complaints(t *testing.T, p *process, but ...string) (lines []string) {
	t.Helper()
	log := p.log.String()
	if len(log) >= tailBytes {
		t.Fatalf("%s said so much that its log is not whole", p.name)
	}
	for line := range strings.Lines(log) {
		expected := slices.ContainsFunc(slices.Concat(ofTheLoad, but), func(text string) bool { return strings.Contains(line, text) })
		if (strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`)) && !expected {
			lines = append(lines, line)
		}
	}
	return lines
}

// startReaders reads everything that a customer can read from a server, until the callers are stopped.
func startReaders(t *testing.T, target *client) *crowd[string] {
	paths := []string{
		"/account-api/balance", "/payment-api/transfers/history", "/payment-api/collections/history?status=success", "/sms-api/senderIds",
		"/sms-api/contact/getGroups", "/databundle-api-v2/services",
	}
	l := &crowd[string]{t: t}
	l.begin(2, target, func(caller, n int) {
		path := paths[(caller+n)%len(paths)]
		if a, err := l.target.Load().call(http.MethodGet, path, nil); err != nil || a.status != http.StatusOK {
			t.Errorf("GET %s: %d %s %v", path, a.status, a.message, err)
		}
		l.keep(path)
	})
	t.Cleanup(func() { l.end() }) // also if the test fails early
	return l
}

// answeredAtLeast is the number of answers that each pool of callers must get from the previous release.
const answeredAtLeast = 60

// The previous release runs on the tables of this release, together with this release and without it, and reports no faults. So
// a release can be rolled out and rolled back node by node.
func TestPreviousRelease_runsOnNewTables(t *testing.T) {
	t.Parallel()
	path := previousRelease(t)
	sim, in, where := startSim(t), newInbox(t), newSite(t, db.Postgres)
	present := where.serve(t, "this release", sim) // the database has the tables of this release
	old := startIn(t, "the release before", path, nil, append([]string{"serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
		"--sim", sim.ready.SimURL}, where.args()...)...)
	where.command(t, "wallet", "fund", present.ready.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	where.command(t, "credits", "sell", present.ready.TenantID, fmt.Sprint(smsCredits), "--price", "0", "--reason", "load", "--reference", "load-sms")
	key := present.ready.APIKey
	api, before := newClient(present.ready.APIURL, key), newClient(old.ready.APIURL, key)
	opening := balance(t, api)
	await := func(what string, so func() bool) {
		t.Helper()
		clocktest.Await(t, what, func() bool {
			if said := complaints(t, old); len(said) > 0 {
				t.Fatalf("on the tables of this release, the release before says:\n%s", strings.Join(said, ""))
			}
			return so()
		})
	}

	goods := startEverything(t, "goods-old", products(t, present), before)
	payouts, others := startLoad(t, "pay-old", in.server.URL, before), startLoad(t, "pay-new", in.server.URL, api)
	texts, readers := startSMSLoad(t, "text-old", present.ready.SenderID, before), startReaders(t, before)
	await("both to answer", func() bool {
		return min(goods.sent.Load(), payouts.sent.Load(), others.sent.Load(), texts.sent.Load(), readers.sent.Load()) >= answeredAtLeast
	})
	present.kill()
	others.target.Store(before)
	await("the release before to take over", func() bool { return adopted(t, old) })
	present = where.serve(t, "this release again", sim)
	api = newClient(present.ready.APIURL, key)
	readers.end()
	texts.end()
	paid, sold := append(payouts.end(), others.end()...), goods.end()
	if out, err := exec.Command(path, append([]string{"ledger", "check"}, where.args()...)...).CombinedOutput(); err != nil {
		t.Errorf("ledger check of the release before: %v\n%s", err, out)
	}
	old.signal(syscall.SIGTERM)
	if code := old.wait(); code != 0 {
		t.Errorf("the release before ended with %d", code)
	}
	if said := complaints(t, old, ofItsStop); len(said) > 0 {
		t.Errorf("on the tables of this release, the release before says:\n%s", strings.Join(said, ""))
	}

	decide(t, where, sim, present)
	v := verification{site: where, sim: sim, api: api, inbox: in}
	for _, p := range paid {
		status, external := v.status(t, p)
		if v.book(t, p, external, status); status == "success" {
			opening -= 0.60
		}
	}
	v.told(t, paid)
	judge(t, sim, api, sold, opening)
	where.command(t, "ledger", "check")
}
