//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// killsOfHeld is the number of kills while people decide about payouts, on each engine.
const killsOfHeld = 5

// A desk is a person's browser at the console of a server, which may be another one after each kill.
type desk struct {
	t    testing.TB
	base atomic.Pointer[string]
	http *http.Client
}

func newDesk(t testing.TB, base string) *desk {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, http: &http.Client{Jar: jar, Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	d.base.Store(&base)
	return d
}

// ask submits a form, or requests a page if there is no form, until a server answers.
func (d *desk) ask(path string, form url.Values) (status int, to, text string) {
	for begun := time.Now(); ; {
		var response *http.Response
		var err error
		if form == nil {
			response, err = d.http.Get(*d.base.Load() + path)
		} else {
			response, err = d.http.PostForm(*d.base.Load()+path, form)
		}
		if err == nil {
			body, readErr := io.ReadAll(io.LimitReader(response.Body, 4<<20))
			_ = response.Body.Close()
			if readErr == nil && response.StatusCode < 500 {
				return response.StatusCode, response.Header.Get("Location"), string(body)
			}
		}
		giveUp(d.t, begun, path, err)
		pause(20 * time.Millisecond)
	}
}

var (
	codeOfLink   = regexp.MustCompile(`\b([0-9]{8})\b`)
	linkOfPerson = regexp.MustCompile(`/first\?t=([A-Za-z0-9_-]+)`)
	hiddenID     = regexp.MustCompile(`name="id" value="([^"]+)"`)
	hiddenDigest = regexp.MustCompile(`name="digest" value="([^"]+)"`)
)

// signs signs a person in by a link.
func (d *desk) signs(link string, form url.Values) {
	d.t.Helper()
	found := linkOfPerson.FindStringSubmatch(link)
	if found == nil {
		d.t.Fatalf("no link in %s", link)
	}
	form.Set("t", found[1])
	if code := codeOfLink.FindStringSubmatch(link); code != nil {
		form.Set("code", code[1])
	}
	if status, _, text := d.ask("/first", form); status != http.StatusSeeOther {
		d.t.Fatalf("signing in: %d %s", status, text)
	}
}

// decides approves or rejects the payout of a reference, until its request no longer waits.
func (d *desk) decides(tenant, reference string, approve bool) {
	app := "/app/" + tenant
	_, to, text := d.ask(app+"/search?q="+url.QueryEscape(reference), nil)
	id, is := strings.CutPrefix(to, app+"/payments/")
	if !is {
		d.t.Errorf("%s is not found: %s", reference, text)
		return
	}
	request := app + "/acts/" + id
	for {
		status, _, text := d.ask(request, nil)
		digest := hiddenDigest.FindStringSubmatch(text)
		if digest == nil {
			if status != http.StatusOK {
				d.t.Errorf("%s: %d %s", request, status, text)
			}
			return
		}
		if approve {
			d.ask(request+"/approve", url.Values{"digest": {digest[1]}})
		} else {
			d.ask(request+"/reject", url.Values{"digest": {digest[1]}, "note": {"not agreed"}})
		}
	}
}

// Payouts await approval. People approve every other payout and reject the rest, while the server is killed repeatedly. Each
// payout is paid once or refunded, and its request shows which.
func TestKilled_duringApprovals(t *testing.T) {
	t.Parallel()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			sim, in, where := startSim(t), newInbox(t), newSite(t, engine)
			server := where.serve(t, "makola", sim)
			key, tenant := server.ready.APIKey, server.ready.TenantID
			base := strings.TrimSuffix(server.ready.APIURL, "/api/v1")
			where.command(t, "wallet", "fund", tenant, "10000.00", "--reason", "load", "--reference", "load")
			owner, signatory := newDesk(t, base), newDesk(t, base)
			owner.signs(server.ready.SignInURL, url.Values{})
			invited := where.command(t, "people", "invite", "signatory@adom.example", "--role", "signatory", "--tenant", tenant, "--reason", "checks payouts")
			signatory.signs(string(invited), url.Values{"password": {"a green orchard by the gate"}})
			_, _, policy := owner.ask("/app/"+tenant+"/policy", nil)
			owner.ask("/app/"+tenant+"/policy", url.Values{"id": {hiddenID.FindStringSubmatch(policy)[1]}, "kind": {"payout.send"}, "amount": {"0.50"}, "approvers": {"1"}, "reason": {"as agreed"}})
			clocktest.Await(t, "the line to hold", func() bool {
				_, _, text := owner.ask("/app/"+tenant+"/policy", nil)
				return strings.Contains(text, "This account")
			})
			restart := func(n int) {
				server.kill()
				server = where.serve(t, fmt.Sprintf("makola %d", n), sim)
				base := strings.TrimSuffix(server.ready.APIURL, "/api/v1")
				signatory.base.Store(&base)
			}
			restart(2) // a server that has just started has no older policy in its cache

			opening := balance(t, newClient(server.ready.APIURL, key))
			l := &load{crowd: crowd[payout]{t: t}, callback: in.server.URL}
			approved := func(reference string) bool { return strings.HasSuffix(reference, "0") }
			const deciders = 4
			l.begin(deciders, newClient(server.ready.APIURL, key), func(caller, n int) {
				reference := fmt.Sprintf("held-%s-%03d-%05d%d", engine, caller, n, n%2)
				l.send(payout{reference: reference, payee: "0240000001"})
				signatory.decides(tenant, reference, approved(reference))
			})
			random := rand.New(rand.NewPCG(2, uint64(engine)))
			for n := range killsOfHeld {
				before := l.sent.Load()
				clocktest.Await(t, "people to decide", func() bool { return l.sent.Load() >= before+2*deciders })
				pause(time.Duration(random.IntN(200)) * time.Millisecond)
				restart(n + 3)
				l.target.Store(newClient(server.ready.APIURL, key))
			}
			payouts := l.end()
			v := verification{site: where, sim: sim, servers: []*process{server}, api: newClient(server.ready.APIURL, key), inbox: in}
			hasten(t, v.servers, "every payout to be settled", func() bool { return openTransfers(t, v.api) == 0 })
			want := opening
			for _, p := range payouts {
				var seen struct {
					Status   string `json:"status"`
					Reason   string `json:"reason"`
					External string `json:"ext_transaction_id"`
				}
				v.api.get(t, "/payment-api/checkstatus/"+p.reference, &seen)
				switch {
				case approved(p.reference) && seen.Status == "success":
					want -= 0.60
				case !approved(p.reference) && seen.Status == "failed" && seen.Reason == "not_approved":
				default:
					t.Errorf("%s is %+v", p.reference, seen)
				}
				v.book(t, p, seen.External, seen.Status)
			}
			t.Logf("%d payouts were decided about over %d kills", len(payouts), killsOfHeld)
			if got := balance(t, v.api); got < want-0.001 || got > want+0.001 {
				t.Errorf("the wallet holds %.2f, the payouts leave %.2f", got, want)
			}
			v.told(t, payouts)
			where.command(t, "ledger", "check")
			where.command(t, "audit", "verify")
		})
	}
}
