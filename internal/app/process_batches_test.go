//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/matrix"
)

// batchRows is the number of rows of a batch that is sent while servers are killed.
const batchRows = 240

// fileOutcomes has the last digits of payees. In this order: paid at once; paid after two seconds; two callbacks; no callback;
// the answer is lost, then paid; the answer is lost, then failed; failed after acceptance; refused at once.
var fileOutcomes = []string{"001", "000", "004", "005", "006", "007", "024", "030"}

// sentBatch is a batch with the client's data about it.
type sentBatch struct {
	round int
	name  string
	rows  []map[string]any
	id    string
}

// batchOf returns the rows of a batch with distinct amounts above GHS 0.50, which no other round has.
func batchOf(round, rows int, outcomes []string) *sentBatch {
	b := &sentBatch{round: round, name: fmt.Sprintf("Salaries %d", round)}
	for i := range rows {
		amount := fmt.Sprintf("%.2f", 0.50+float64(2*round)+float64(i/len(outcomes))/100)
		b.rows = append(b.rows, map[string]any{"account_number": "0240000" + outcomes[i%len(outcomes)], "channel": "MTN", "amount": amount})
	}
	return b
}

// orchard is the password of the signatory.
const orchard = "a green orchard by the gate"

// payroll is an account that pays batches, which another person approves, while its servers are killed.
type payroll struct {
	*testing.T
	where     site
	sim       *process
	server    *process
	other     *process // a second node; nil on SQLite
	nodes     int
	key       string
	tenant    string
	signatory *desk
	crowd     crowd[struct{}]
	opening   float64
	cost      float64 // sum of the rows that succeeded
}

func newPayroll(t *testing.T, where site) *payroll {
	t.Helper()
	p := &payroll{T: t, where: where, sim: startSim(t), crowd: crowd[struct{}]{t: t}}
	p.server = p.node()
	p.key, p.tenant = p.server.ready.APIKey, p.server.ready.TenantID
	where.command(t, "wallet", "fund", p.tenant, "100000.00", "--reason", "load", "--reference", "load")
	base := strings.TrimSuffix(p.server.ready.APIURL, "/api/v1")
	owner := newDesk(t, base)
	p.signatory = newDesk(t, base)
	owner.signs(p.server.ready.SignInURL, url.Values{})
	invited := where.command(t, "people", "invite", "signatory@adom.example", "--role", "signatory", "--tenant", p.tenant, "--reason", "checks batches")
	p.signatory.signs(string(invited), url.Values{"password": {orchard}})
	_, _, policy := owner.ask("/app/"+p.tenant+"/policy", nil)
	owner.ask("/app/"+p.tenant+"/policy", url.Values{"id": {hiddenID.FindStringSubmatch(policy)[1]}, "kind": {"batch.send"}, "amount": {"0.50"}, "approvers": {"1"}, "reason": {"as agreed"}})
	clocktest.Await(t, "the line of the policy", func() bool {
		_, _, text := owner.ask("/app/"+p.tenant+"/policy", nil)
		return strings.Contains(text, "This account")
	})
	p.restart() // a server that has just started has no older policy in its cache
	if where.engine == db.Postgres {
		p.other = p.node()
	}
	p.opening = balance(t, p.api())
	return p
}

func (p *payroll) node() *process {
	p.nodes++
	return p.where.serve(p.T, fmt.Sprintf("makola %d", p.nodes), p.sim)
}

func (p *payroll) api() *client { return newClient(p.server.ready.APIURL, p.key) }

func (p *payroll) servers() []*process {
	if p.other == nil {
		return []*process{p.server}
	}
	return []*process{p.server, p.other}
}

// use directs clients and people to a server.
func (p *payroll) use() {
	p.crowd.target.Store(p.api())
	base := strings.TrimSuffix(p.server.ready.APIURL, "/api/v1")
	p.signatory.base.Store(&base)
}

// restart kills the server. The other node or a new one replaces it.
func (p *payroll) restart() {
	p.server.kill()
	if p.other != nil {
		p.server, p.other = p.other, nil
		p.use()
		p.other = p.node()
		return
	}
	p.server = p.node()
	p.use()
}

// killed runs a step, and kills the server some time after the step began.
func (p *payroll) killed(after time.Duration, step func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		step()
	}()
	pause(after)
	p.restart()
	<-done
}

// draft makes the draft of a batch, and repeats the request until it succeeds.
func (p *payroll) draft(b *sentBatch) {
	a := p.crowd.insist("/payment-api/batches", map[string]any{"name": b.name, "rows": b.rows}, "Idempotency-Key", fmt.Sprintf("draft-%d", b.round))
	if a.status != http.StatusOK {
		p.Errorf("draft of %s: %d %s", b.name, a.status, a.message)
	}
	b.id = field(a.data, "batch_id")
}

func (p *payroll) submit(b *sentBatch) {
	if a := p.crowd.insist("/payment-api/batches/"+b.id+"/submit", map[string]any{}, "Idempotency-Key", "submit-"+b.id); a.status != http.StatusOK {
		p.Errorf("submit %s: %d %s", b.name, a.status, a.message)
	}
}

var linkOfAct = regexp.MustCompile(`/acts/([0-9a-f-]{36})"`)

// approve approves all waiting requests.
func (p *payroll) approve() {
	acts := "/app/" + p.tenant + "/acts"
	for waiting := true; waiting; {
		waiting = false
		for _, found := range linkOfAct.FindAllStringSubmatch(p.signed(acts), -1) {
			if digest := hiddenDigest.FindStringSubmatch(p.signed(acts + "/" + found[1])); digest != nil {
				waiting = true
				p.signatory.ask(acts+"/"+found[1]+"/approve", url.Values{"digest": {digest[1]}})
			}
		}
	}
}

// signed returns a page of the signatory, and signs in again if necessary: a restart sets the clock back, which ends sessions.
func (p *payroll) signed(path string) string {
	status, _, text := p.signatory.ask(path, nil)
	if status == http.StatusUnauthorized {
		p.signatory.ask("/sign-in", url.Values{"email": {"signatory@adom.example"}, "password": {orchard}})
		_, _, text = p.signatory.ask(path, nil)
	}
	return text
}

// batchState is the interface's answer about a batch.
type batchState struct {
	Status, Cause string
	Counts        map[string]int
}

// accepted returns the number of rows that have become payouts.
func (s batchState) accepted() int {
	return s.Counts["pending"] + s.Counts["success"] + s.Counts["failed"]
}

func (p *payroll) state(b *sentBatch) (s batchState) {
	p.Helper()
	p.api().get(p.T, "/payment-api/batches/"+b.id, &s)
	return s
}

// reaches waits until a share of the rows is accepted.
func (p *payroll) reaches(b *sentBatch, percent int) {
	p.Helper()
	clocktest.Await(p.T, fmt.Sprintf("%d %% of %s", percent, b.name), func() bool {
		s := p.state(b)
		return s.accepted()*100 >= percent*len(b.rows) || s.Status == "finished"
	})
}

// ends waits until each row is decided and each payout is final. If the batch pauses because a provider fails, it is resumed.
func (p *payroll) ends(b *sentBatch) {
	p.Helper()
	hasten(p.T, p.servers(), "the end of "+b.name, func() bool {
		s := p.state(b)
		if s.Status == "paused" {
			p.crowd.insist("/payment-api/batches/"+b.id+"/resume", map[string]any{})
		}
		return s.Status == "finished" && s.Counts["pending"] == 0
	})
}

// verify compares each row of a batch with its payee and with the book of the simulator.
func (p *payroll) verify(b *sentBatch) {
	p.Helper()
	api := p.api()
	var rows []struct {
		Number    string      `json:"account_number"`
		Reference string      `json:"client_reference"`
		Status    string      `json:"status"`
		Amount    json.Number `json:"amount"`
		Charges   json.Number `json:"charges"`
	}
	api.get(p.T, "/payment-api/batches/"+b.id+"/rows?page_size=1000", &rows)
	if len(rows) != len(b.rows) {
		p.Fatalf("%s has %d rows, want %d", b.name, len(rows), len(b.rows))
	}
	for _, r := range rows {
		want := "success"
		if code := r.Number[len(r.Number)-3:]; code == "007" || code == "024" || code == "030" {
			want = "failed"
		}
		if r.Status != want {
			p.Errorf("row %s to %s is %s, want %s", r.Reference, r.Number, r.Status, want)
		}
		if got, _ := api.paidOnce(p.T, p.sim, "/payment-api/checkstatus/"+r.Reference); got != r.Status {
			p.Errorf("row %s is %s, and its payout %s", r.Reference, r.Status, got)
		}
		amount, err := r.Amount.Float64()
		charges, chargesErr := r.Charges.Float64()
		if err != nil || chargesErr != nil {
			p.Fatal(err, chargesErr)
		}
		if r.Status == "success" {
			p.cost += amount + charges
		}
	}
}

// sound compares the wallet with the rows that succeeded, and checks the books.
func (p *payroll) sound() {
	p.Helper()
	if got, want := balance(p.T, p.api()), p.opening-p.cost; got < want-0.001 || got > want+0.001 {
		p.Errorf("the wallet holds %.2f, the batches leave %.2f", got, want)
	}
	p.where.command(p.T, "ledger", "check")
	p.where.command(p.T, "audit", "verify")
}

// Servers are killed while a batch is drafted, requested, approved, in the middle of its rows and at its end. Each row is paid once
// or not at all. The wallet, the reserve and the provider's book agree. On SQLite the installation then moves to PostgreSQL during
// a batch.
func TestKilled_batches(t *testing.T) {
	t.Parallel()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			p := newPayroll(t, newSite(t, engine))
			random := rand.New(rand.NewPCG(7, uint64(engine)))
			soon := func() time.Duration { return time.Duration(random.IntN(40)) * time.Millisecond }
			rounds := 1
			if matrix.Whole() {
				rounds = 5
			}
			for round := range 3 * rounds { // kills at several boundaries in each step
				b := batchOf(round, batchRows, fileOutcomes)
				at := func(turn int, step func()) {
					if round%3 == turn {
						p.killed(soon(), step)
					} else {
						step()
					}
				}
				at(0, func() { p.draft(b) })
				at(1, func() { p.submit(b) })
				at(2, p.approve)
				for _, percent := range [][]int{{40}, {10, 70}, {100}}[round%3] {
					p.reaches(b, percent)
					p.restart()
				}
				p.ends(b)
				p.verify(b)
			}
			if engine == db.SQLite {
				p.moves(batchOf(3*rounds, 4*batchRows, fileOutcomes))
			}
			p.sound()
		})
	}
}

// moves kills the server in the middle of a batch, and moves the installation to PostgreSQL, where the batch completes.
func (p *payroll) moves(b *sentBatch) {
	p.Helper()
	p.draft(b)
	p.submit(b)
	p.approve()
	p.reaches(b, 40)
	p.server.kill()
	there := site{engine: db.Postgres, data: p.where.data, url: dbtest.EmptyURL(p.T), environment: []string{"MAKOLA_MASTER_KEY_FILE=" + app.DevelopmentKey(p.where.data)}}
	command(p.T, nil, nil, "migrate", "copy", "--data", p.where.data, "--to", there.url)
	p.where = there
	p.server = p.node()
	p.use()
	p.ends(b)
	p.verify(b)
}

// Backups from four moments are restored one after the other: before the draft, between request and approval, in the middle, and
// after the end. The batch is then sent again or resumed. No restored database pays a row twice, and its floats agree with the
// provider as before.
func TestKilled_restoredBatches(t *testing.T) {
	t.Parallel()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			where := newSite(t, engine)
			where.environment = []string{"MAKOLA_MASTER_KEY=" + strings.Repeat("6e", 32)}
			p := newPayroll(t, where)
			before := floats(t, where, p.sim, p.api())
			b := batchOf(1, 800, fileOutcomes[:5])
			var files []string
			backup := func() {
				t.Helper()
				var made struct {
					File string `json:"file"`
				}
				decode(t, where.command(t, "backup", "create", "--folder", filepath.Join(t.TempDir(), "backups"), "-o", "json"), &made)
				files = append(files, made.File)
			}
			backup()
			p.draft(b)
			p.submit(b)
			backup()
			p.approve()
			p.reaches(b, 40)
			p.crowd.insist("/payment-api/batches/"+b.id+"/pause", map[string]any{})
			backup()
			p.ends(b)
			p.verify(b)
			backup()
			p.sound()
			for _, server := range p.servers() {
				server.kill()
			}
			for i, file := range files {
				t.Run([]string{"before", "requested", "running", "finished"}[i], func(t *testing.T) {
					p.restored(t, file).resends(b, i, before)
				})
			}
		})
	}
}

// restored returns the account in a database that was restored from a backup, in an open recovery.
func (p *payroll) restored(t *testing.T, file string) *payroll {
	t.Helper()
	life := &payroll{T: t, where: p.where.beside(t), sim: p.sim, key: p.key, tenant: p.tenant, signatory: p.signatory, opening: p.opening, cost: p.cost, crowd: crowd[struct{}]{t: t}}
	acts, err := os.ReadFile(filepath.Join(p.where.data, "acts.jsonl"))
	if err == nil {
		err = os.WriteFile(filepath.Join(life.where.data, "acts.jsonl"), acts, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	life.where.command(t, "restore", file)
	life.server = life.node()
	life.use()
	life.where.command(t, "recovery", "open", "--reason", "no acts are missed")
	clocktest.Await(t, "the recovery to be open", func() bool {
		a, err := life.api().call(http.MethodGet, "/account-api/balance", nil)
		return err == nil && a.status == http.StatusOK
	})
	return life
}

// resends sends the batch again or resumes it, as its client would, then compares the books.
func (p *payroll) resends(b *sentBatch, part int, before map[string]float64) {
	t := p.T
	t.Helper()
	again := &sentBatch{round: b.round, name: b.name, rows: b.rows, id: b.id}
	switch part {
	case 0, 1:
		p.draft(again)
		p.submit(again)
		p.approve()
		hasten(t, p.servers(), "the batch to begin", func() bool {
			p.approve()
			return p.state(again).Status == "running" || p.state(again).Status == "finished"
		})
	case 2:
		if s := p.state(b); s.Status != "paused" || s.Cause != "recovery" {
			t.Errorf("in the recovery the batch is %s by %q", s.Status, s.Cause)
		}
		p.where.command(t, "batch", "resume", p.tenant, b.id, "--reason", "rows are searched")
	case 3:
		a := p.crowd.insist("/payment-api/batches", map[string]any{"name": b.name, "rows": b.rows})
		var data struct {
			ID string `json:"batch_id"`
		}
		if err := json.Unmarshal(a.data, &data); err != nil || a.status != http.StatusUnprocessableEntity || data.ID != b.id {
			t.Errorf("the finished batch again: %d %s (%v)", a.status, a.message, err)
		}
	}
	hasten(t, p.servers(), "the end of the batch", func() bool {
		s := p.state(again)
		if s.Status == "paused" {
			p.where.command(t, "batch", "resume", p.tenant, again.id, "--reason", "rows are searched")
		}
		return s.Status == "finished" && s.Counts["pending"] == 0
	})
	p.cost = 0
	p.verify(again)
	if gap := floats(t, p.where, p.sim, p.api()); !maps.Equal(gap, before) {
		t.Errorf("the floats differ by %v, before by %v", gap, before)
	}
	p.where.command(t, "recovery", "end", "--reason", "all sent again", "--sign-floats", "as the simulator")
	p.sound()
	p.server.kill()
}
