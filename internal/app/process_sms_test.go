//go:build !race

// The program under test is built without the race detector, which would make it ten times slower. Other tests run the same code
// with it.

package app_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

const (
	// smsKills is the number of kills under a load of messages.
	smsKills = 5
	// fewer on PostgreSQL, because each start waits for the end of the previous lease
	smsKillsPostgres = 2
	// smsCallers is the number of clients that send at the same time.
	smsCallers = 4
	// smsDelay is the delay of an octet on the way to the message centre, and on the way back.
	smsDelay = 20 * time.Millisecond
	// bulkEvery and bulkSize describe the load's large campaigns, which have several slices.
	bulkEvery, bulkSize = 50, 150
	otpEvery            = 9
)

// smsOutcomes has the recipients by the outcome of their messages in the simulator.
var smsOutcomes = []string{
	"0240000001", "0240000001", "0240000000", "0240000004", // delivered: at once, after two seconds, reported twice
	"0240000020", "0240000024", // refused, reported as failed
}

// farAway forwards connections to an address with a delay, as a distant network does. So bytes that a killed program had
// written still arrive.
func farAway(t testing.TB, address string, delay time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-over
	})
	go func() {
		defer close(over)
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				t.Errorf("the way to %s: %v", address, err)
				_ = near.Close()
				continue
			}
			go late(near, far, delay)
			go late(far, near, delay)
		}
	}()
	return listener.Addr().String()
}

// late copies bytes from one connection to another with a delay, including the end of the connection.
func late(from, to net.Conn, delay time.Duration) {
	type parcel struct {
		octets []byte
		due    time.Time
	}
	road := make(chan parcel, 4096)
	go func() {
		defer close(road)
		for {
			octets := make([]byte, 16<<10)
			n, err := from.Read(octets)
			road <- parcel{octets[:n], time.Now().Add(delay)}
			if err != nil {
				return
			}
		}
	}()
	for p := range road {
		pause(time.Until(p.due))
		_, _ = to.Write(p.octets) // the reader has disconnected, so the rest is lost
	}
	_ = to.Close()
}

// text is one message or one-time password that was answered with 200, as its client knows it.
type text struct {
	id       string // part of its text, repeated in a long text
	campaign string // empty: a one-time password
	to       []string
	cost     int64 // credits
}

// smsLoad is a pool of callers that send messages and one-time passwords, each with an Idempotency-Key.
type smsLoad struct {
	crowd[text]
	name   string
	sender string
}

func startSMSLoad(t testing.TB, name, sender string, target *client) *smsLoad {
	l := &smsLoad{crowd: crowd[text]{t: t}, name: name, sender: sender}
	l.begin(smsCallers, target, l.send)
	return l
}

// send makes the n-th request of a caller.
func (l *smsLoad) send(caller, n int) {
	m := text{id: fmt.Sprintf("%s-%02d-%06d", l.name, caller, n), to: []string{smsOutcomes[(caller+n)%len(smsOutcomes)]}}
	path, body := "/sms-api/send", map[string]any{"sender_id": l.sender, "message": "Order #" + m.id + "."}
	switch {
	case n%bulkEvery == bulkEvery-1:
		m.to = m.to[:0]
		for i := range bulkSize {
			m.to = append(m.to, fmt.Sprintf("0245550%03d", i))
		}
	case n%otpEvery == otpEvery-1:
		m.to = []string{fmt.Sprintf("02466%05d", n/otpEvery*smsCallers+caller)} // only a few may be sent to one number
		path, body = "/sms-api/otp/send", map[string]any{"senderId": l.sender, "phoneNumber": m.to[0], "message": "<%otp_code%> for #" + m.id + "."}
	case n%7 == 6: // two segments
		body["message"] = strings.Repeat("#"+m.id+". ", 240/len(m.id))
	}
	if path == "/sms-api/send" {
		body["recipients"] = m.to
	}
	a := l.insist(path, body, "Idempotency-Key", m.id)
	var sent struct {
		Campaign string `json:"campaignId"`
		Cost     int64  `json:"smsCost"`
	}
	if a.status != http.StatusOK {
		l.t.Errorf("%s: %d %s", m.id, a.status, a.message)
		return
	}
	if err := json.Unmarshal(a.data, &sent); err != nil {
		l.t.Errorf("%s: %v", m.id, err)
		return
	}
	if m.campaign, m.cost = sent.Campaign, sent.Cost; m.campaign == "" {
		m.cost = 1 // a one-time password of one segment
	}
	l.keep(m)
}

// The server is killed while submits are open. No accepted message is lost or charged wrongly. A handset receives a message
// twice only if the installation allows it, and a one-time password never twice.
func TestKilled_whileSending(t *testing.T) {
	t.Parallel()
	for _, run := range []struct {
		name   string
		engine db.Engine
		resend bool
	}{{"sqlite", db.SQLite, false}, {"postgres", db.Postgres, false}, {"sqlite-resend", db.SQLite, true}} {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			sim, where := startSim(t), newSite(t, run.engine)
			centre := messageCentre(t, sim)
			centre.counts(t)
			// All starts use one node name: on SQLite each start takes over from the previous one without waiting for its
			// lease.
			centre.Address = farAway(t, centre.Address, smsDelay)
			where.live(t)
			args := centre.flags("--node", "one", "--smpp-window", "100", fmt.Sprintf("--smpp-resend=%v", run.resend))
			server := where.serve(t, "makola", sim, args...)
			key, sender := smsTenant(t, where, server)
			l := startSMSLoad(t, run.name, sender, newClient(server.ready.APIURL, key))
			random := rand.New(rand.NewPCG(2, uint64(run.engine)))
			kills := smsKills
			if run.engine == db.Postgres {
				kills = smsKillsPostgres
			}
			for n := range kills {
				// Waits for enough answers that submits are certainly in progress, and then for a random time.
				before, accepted := l.sent.Load(), centre.totals(t).Accepted
				clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= before+20*smsCallers })
				clocktest.Await(t, "messages to go out", func() bool { return centre.totals(t).Accepted > accepted })
				pause(time.Duration(random.IntN(200)) * time.Millisecond)
				server.kill()
				server = where.serve(t, fmt.Sprintf("makola %d", n+2), sim, args...)
				l.target.Store(newClient(server.ready.APIURL, key))
			}
			texts := l.end()
			v := smsVerification{t: t, resend: run.resend, centre: centre, api: newClient(server.ready.APIURL, key)}
			v.verify(texts)
			where.command(t, "ledger", "check")
		})
	}
}

// smsVerification has the sources with which a run of messages is compared.
type smsVerification struct {
	t      testing.TB
	resend bool
	centre *centre
	api    *client

	taken map[string]map[string]map[int]int // id -> number -> part -> how often it was accepted
	asked map[string]bool                   // numbers whose messages were read
}

// smsRow is a message as the interface returns it.
type smsRow struct {
	Recipient string `json:"recipient"`
	Status    string `json:"status"`
	Segments  int    `json:"segments"`
	Credits   int64  `json:"credits"`
}

// verify waits until every message is final. It then compares each message with the handsets, and their sum with the credits.
func (v *smsVerification) verify(texts []text) {
	v.t.Helper()
	if len(texts) < smsKills*smsCallers {
		v.t.Fatalf("only %d requests were answered", len(texts))
	}
	v.taken, v.asked = map[string]map[string]map[int]int{}, map[string]bool{}
	rows := make([][]smsRow, len(texts))
	for i, m := range texts {
		if m.campaign != "" {
			clocktest.Await(v.t, "the end of "+m.id, func() bool { rows[i] = v.rows(m); return over(rows[i]) })
		}
	}
	counts := map[string]int{}
	charged, twice := int64(0), 0
	for i, m := range texts {
		if m.campaign == "" {
			charged += m.cost
			twice += v.password(m)
			continue
		}
		if len(rows[i]) != len(m.to) {
			v.t.Errorf("%s went to %d numbers and has %d rows", m.id, len(m.to), len(rows[i]))
		}
		for _, r := range rows[i] {
			counts[r.Status]++
			charged += r.Credits
			twice += v.message(m, r)
		}
	}
	var b struct {
		Credits int64 `json:"sms_balance"`
	}
	v.api.get(v.t, "/account-api/balance", &b)
	if b.Credits != smsCredits-charged {
		v.t.Errorf("%d credits are left, the messages leave %d", b.Credits, smsCredits-charged)
	}
	smsc := v.centre.totals(v.t)
	if smsc.Again > 0 && !v.resend || smsc.Lost > 0 {
		v.t.Errorf("the handsets got %d segments again, %d were not counted", smsc.Again, smsc.Lost)
	}
	v.t.Logf("%d requests: %v; segments that came again: %d (%d)", len(texts), counts, smsc.Again, twice)
}

func over(rows []smsRow) bool {
	for _, r := range rows {
		if r.Status == "queued" || r.Status == "submitted" {
			return false
		}
	}
	return len(rows) > 0
}

// rows reads all messages of a campaign from the interface.
func (v *smsVerification) rows(m text) (rows []smsRow) {
	v.t.Helper()
	for page := 1; len(rows) < len(m.to); page++ {
		var some []smsRow
		v.api.get(v.t, fmt.Sprintf("/sms-api/campaignMessages/%s?page_size=100&page=%d", m.campaign, page), &some)
		if len(some) == 0 {
			break
		}
		rows = append(rows, some...)
	}
	return rows
}

// message compares one message with its handset, and returns how many of its segments arrived more than once.
func (v *smsVerification) message(m text, r smsRow) (again int) {
	v.t.Helper()
	parts := v.received(m.id, r.Recipient)
	for _, n := range parts {
		again += n - 1
	}
	whole := len(parts) == r.Segments
	right := false
	switch r.Status {
	case "delivered":
		right = whole && r.Credits > 0
	case "failed": // the handset's network reported it
		right = whole && r.Credits > 0 && strings.HasSuffix(r.Recipient, "0000024")
	case "rejected":
		right = len(parts) == 0 && r.Credits == 0 && strings.HasSuffix(r.Recipient, "0000020")
	case "unknown": // it may have been accepted, and is not sent again
		right = !v.resend
	}
	if !right {
		v.t.Errorf("%s to %s is %s at %d credits, and its handset took %v of %d segments", m.id, r.Recipient, r.Status, r.Credits, parts, r.Segments)
	}
	return again
}

// password compares a one-time password with its handset. A password is never sent twice.
func (v *smsVerification) password(m text) (again int) {
	v.t.Helper()
	for _, n := range v.received(m.id, m.to[0]) {
		again += n - 1
	}
	if again > 0 {
		v.t.Errorf("the one-time password %s came %d times again", m.id, again)
	}
	return again
}

var idInText = regexp.MustCompile(`#([a-z0-9-]+)\.`)

// received returns the parts of a text that the handset of a number received, and how often.
func (v *smsVerification) received(id, number string) map[int]int {
	v.t.Helper()
	if !v.asked[number] {
		v.asked[number] = true
		var segments []struct {
			Part     int    `json:"part"`
			Text     string `json:"text"`
			Accepted int    `json:"accepted"`
		}
		v.centre.control.get(v.t, "/smsc/segments?to="+url.QueryEscape(number), &segments)
		for _, s := range segments {
			m := idInText.FindStringSubmatch(s.Text)
			if m == nil {
				v.t.Fatalf("%s got %q, which nobody sent", number, s.Text)
			}
			found := m[1]
			if v.taken[found] == nil {
				v.taken[found] = map[string]map[int]int{}
			}
			if v.taken[found][number] == nil {
				v.taken[found][number] = map[int]int{}
			}
			v.taken[found][number][s.Part] += s.Accepted
		}
	}
	return v.taken[id][number]
}
