package app

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/sim"
)

// textRow is a message in its table at the end, with its campaign.
type textRow struct {
	tenant, campaign, kind, text, state, recipient, status, why string
	no, segments, credits, accepted, open                       int64
}

const allTexts = `SELECT c.tenant, c.id, c.kind, c.message, c.status, m.recipient, m.status, m.error, m.no, c.segments, c.credits, m.accepted, m.open
	FROM campaigns c JOIN messages m ON m.tenant = c.tenant AND m.campaign = c.id ORDER BY c.tenant, c.id, m.no`

func (s *texting) texts() []textRow {
	s.t.Helper()
	var all []textRow
	err := s.nodes[0].db.ReadWhole(context.Background(), func(tx *db.Tx) error {
		all = nil
		return tx.Query(allTexts, nil, func(r *db.Row) error {
			var m textRow
			err := r.Scan(&m.tenant, &m.campaign, &m.kind, &m.text, &m.state, &m.recipient, &m.status, &m.why, &m.no, &m.segments, &m.credits, &m.accepted, &m.open)
			all = append(all, m)
			return err
		})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// lost is a message that was submitted and got no receipt. Its credits were refunded after the receipt window.
const lost = "no receipt came"

// refunded reports whether the credits of a message were refunded.
func (m *textRow) refunded() bool {
	return m.accepted == 0 && (m.status == "failed" || m.status == "rejected")
}

// outcome returns the name of a message's end in the table of outcomes.
func (m *textRow) outcome() string {
	switch {
	case m.why == lost:
		return "lost"
	case m.status == "failed" && m.accepted == 0 && m.state == "stopped":
		return "stopped"
	}
	return m.status
}

// textPair is an outcome of a message under a fault. An empty fault stands for any fault.
type textPair struct{ outcome, weather string }

// textTable returns every outcome that a run must reach, with the fault under which it must occur.
func textTable() []textPair {
	all := []textPair{{"rejected", string(sim.RefuseOutright)}, {"failed", string(sim.FailLater)}, {"lost", string(sim.RequestLost)},
		{"submitted", string(sim.CallbackMissing)}, {"stopped", ""}, {"expired", ""}, {"invalid", ""}}
	for _, f := range []string{"fair", "database_lost_before", "database_lost_after", "database_conflict"} {
		all = append(all, textPair{"delivered", f})
	}
	for _, f := range textFaults {
		all = append(all, textPair{"delivered", string(f.Kind)})
	}
	return all
}

// cover continues until every outcome of the table has occurred. It chooses faults that can cause the missing outcomes.
func (s *texting) cover() {
	if s.storms < len(textFaults) {
		s.t.Logf("a run of %d rounds is too short for the table of outcomes", s.rounds)
		return
	}
	for more := 0; ; {
		missing, shown := s.missing()
		if len(missing) == 0 || s.t.Failed() {
			s.t.Logf("outcomes by weather: %v", shown)
			return
		}
		if more >= moreTextRounds {
			s.t.Errorf("no message had these outcomes in these weathers: %v", missing)
			return
		}
		s.t.Logf("after %d rounds these are missing: %v", s.rounds, missing)
		for _, p := range missing {
			s.blow(weatherCalled(p.weather))
			s.round()
			more++
		}
		s.clearUp()
	}
}

func (s *texting) missing() (missing []textPair, shown []string) {
	weather := s.weathers()
	seen := map[textPair]int{}
	for _, row := range s.texts() {
		seen[textPair{row.outcome(), weather[row.text]}]++
		seen[textPair{row.outcome(), ""}]++
	}
	for p, n := range seen {
		if p.weather != "" {
			shown = append(shown, p.outcome+" x "+p.weather+": "+strconv.Itoa(n))
		}
	}
	sort.Strings(shown)
	return slices.DeleteFunc(textTable(), func(p textPair) bool { return seen[p] > 0 }), shown
}

// verify compares answers, rows, handsets, credits and webhooks with each other.
func (s *texting) verify() {
	s.t.Helper()
	rows := s.texts()
	s.checkSends(rows)
	s.checkCentre(rows)
	s.checkReceipts(rows)
	s.checkClocks()
	s.checkCredits(rows)
	ctx, n := context.Background(), s.nodes[0]
	if report, err := n.messaging.Check(ctx); err != nil || !report.OK() {
		s.t.Errorf("the messages: %v %v", err, report.Problems)
	}
	if report, err := n.ledger.Check(ctx); err != nil || !report.OK() {
		s.t.Errorf("the ledger: %v %v", err, report.Problems)
	}
	depth, err := n.jobs.Depth(ctx)
	if err != nil {
		s.t.Error(err)
	}
	for _, d := range depth {
		if d.Dead > 0 || d.Alive > 0 {
			s.t.Errorf("jobs are left: %+v", d)
		}
	}
	outcome := map[string]int{}
	for i := range rows {
		outcome[rows[i].kind+" "+rows[i].outcome()]++
	}
	s.t.Logf("%d requests in %d rounds on %v: %v; %d codes were entered; the message centre: %+v", s.asked, s.rounds, s.engine, outcome, s.checked, s.sim.Centre.Totals())
}

// checkSends compares the requests of customers and their answers with the rows.
func (s *texting) checkSends(rows []textRow) {
	byText := map[string][]*textRow{}
	for i := range rows {
		byText[rows[i].text] = append(byText[rows[i].text], &rows[i])
	}
	for _, m := range s.sends {
		of := byText[m.text]
		if m.status != http.StatusOK {
			if len(of) > 0 && !m.unclear {
				s.t.Errorf("%s was answered with %d %s and has %d messages (%s)", m.id, m.status, m.message, len(of), m.weather)
			}
			if len(of) == 0 {
				continue
			}
		}
		to, invalid := map[string]int{}, 0
		for _, row := range of {
			if row.no < 0 {
				invalid++
			} else {
				to[row.recipient]++
			}
			if row.tenant != m.from.id || m.status == http.StatusOK && row.campaign != m.campaign {
				s.t.Errorf("%s, the campaign %s of %s, has a message in %s of %s", m.id, m.campaign, m.from.id, row.campaign, row.tenant)
			}
		}
		if len(to) != len(m.to) || invalid != m.invalid {
			s.t.Errorf("%s has messages to %d numbers and %d invalid ones, want %d and %d (%s)", m.id, len(to), invalid, len(m.to), m.invalid, m.weather)
		}
		for n := range m.to {
			if to[n] != 1 {
				s.t.Errorf("%s has %d messages to %s (%s)", m.id, to[n], n, m.weather)
			}
		}
		if m.status == http.StatusOK && !m.otp && len(of) > 0 && m.cost != of[0].credits*int64(len(m.to)) {
			s.t.Errorf("%s was said to cost %d, it is %d for each of %d", m.id, m.cost, of[0].credits, len(m.to))
		}
		delete(byText, m.text)
	}
	for text, of := range byText {
		s.t.Errorf("nobody asked for the %d messages of %q", len(of), text)
	}
}

var textID = regexp.MustCompile(`m\d+-\d+x`)

// sentTo returns the submissions of one message that the message centre accepted.
type sentTo struct{ id, number string }

// checkCentre compares the rows with the messages that the message centre accepted. A message is accepted once, except where a
// campaign may be sent again. An accepted message is refunded only if it got no receipt. A delivered message was accepted.
func (s *texting) checkCentre(rows []textRow) {
	took := map[sentTo]int64{} // segments
	resent := 0
	for _, g := range s.sim.Centre.Segments() {
		took[sentTo{textID.FindString(g.Text), g.To}]++
		if g.Accepted == 1 {
			continue
		}
		resent++
		if !s.cfg.SMPP.Resend || sixDigits.MatchString(g.Text) {
			s.t.Errorf("%s got %q %d times", g.To, g.Text, g.Accepted)
		}
	}
	type sum struct{ known, taken, lost int64 } // numbers of segments to one phone number
	numbers := map[string]*sum{}
	for i := range rows {
		m := &rows[i]
		if m.no < 0 {
			continue
		}
		n := took[sentTo{textID.FindString(m.text), m.recipient}]
		delete(took, sentTo{textID.FindString(m.text), m.recipient})
		if numbers[m.recipient] == nil {
			numbers[m.recipient] = &sum{}
		}
		of := numbers[m.recipient]
		of.taken += n
		of.known += m.accepted
		of.lost += m.segments - m.accepted
		switch {
		case m.refunded() && m.why != lost && n > 0 && !(s.cfg.SMPP.Resend && m.kind == "campaign"): // a second try may have been refused
			s.t.Errorf("the message of %s to %s is %s (%s) and was given back; the message centre took %d segments", m.text, m.recipient, m.status, m.why, n)
		case m.accepted > m.segments || m.open > m.accepted:
			s.t.Errorf("the message of %s to %s has %d segments, %d accepted, %d open", m.text, m.recipient, m.segments, m.accepted, m.open)
		case m.status == "queued" || m.status == "sending" || m.status == "unknown" && m.accepted == 0:
			s.t.Errorf("the message of %s to %s is still %s at the end", m.text, m.recipient, m.status)
		}
	}
	for to, n := range took {
		s.t.Errorf("the message centre took %d segments of %s for %s, and nobody knows of it", n, to.id, to.number)
	}
	// A receipt with an unknown id is assigned to one of the unknown messages to its number, perhaps to the wrong one. So only
	// the sum over these messages is checked.
	for number, of := range numbers {
		if of.known > of.taken || of.taken > of.known+of.lost {
			s.t.Errorf("%s: the message centre took %d segments, the rows say %d and know nothing of %d", number, of.taken, of.known, of.lost)
		}
	}
	s.t.Logf("%d segments came again", resent)
}

// noReceipt is the end of the numbers for which the message centre sends no receipt.
const noReceipt = "0000003"

// checkReceipts checks that the message centre sent every receipt and Makola acknowledged it, and that a message without a
// receipt went to a number without receipts.
func (s *texting) checkReceipts(rows []textRow) {
	c := s.sim.Centre.Totals()
	if c.Receipts-c.Repeated != c.Confirmed || c.Dropped != 0 {
		s.t.Errorf("of %d receipts %d were sent again, %d acknowledged, %d dropped", c.Receipts, c.Repeated, c.Confirmed, c.Dropped)
	}
	weather, waiting := s.weathers(), map[string]int{}
	for i := range rows {
		if m := &rows[i]; m.status == "submitted" && weather[m.text] != string(sim.CallbackMissing) && !strings.HasSuffix(m.recipient, noReceipt) {
			waiting[weather[m.text]]++
		}
	}
	if len(waiting) > 0 {
		s.t.Errorf("messages wait for their receipt at the end, by weather: %v", waiting)
	}
}

// weathers returns the faults of the texts.
func (s *texting) weathers() map[string]string {
	weather := map[string]string{}
	for _, m := range s.sends {
		weather[m.text] = m.weather
	}
	return weather
}

// checkCredits computes the remaining credits of each customer from the rows.
func (s *texting) checkCredits(rows []textRow) {
	spent := map[string]int64{}
	for i := range rows {
		if m := &rows[i]; m.no >= 0 && !m.refunded() {
			spent[m.tenant] += m.credits
		}
	}
	all := int64(0)
	balance := func(id ledger.AccountID) int64 {
		n, err := s.nodes[0].ledger.Balance(context.Background(), ledger.Key{Asset: ledger.TestSMS, ID: id})
		if err != nil {
			s.t.Fatal(err)
		}
		return n
	}
	for _, x := range s.texters {
		if got := balance(ledger.Credits(x.id)); got != x.credits-spent[x.id] {
			s.t.Errorf("%s has %d credits, of %d its messages took %d", x.id, got, x.credits, spent[x.id])
		}
		all += spent[x.id]
	}
	if got := balance(ledger.Used); got != all {
		s.t.Errorf("%d credits are used, the messages took %d", got, all)
	}
}

// checkStrangers checks that a repeated receipt is counted once, and that every stored unmatched receipt has an unknown id.
func (s *texting) checkStrangers() {
	s.t.Helper()
	err := s.nodes[0].db.Read(context.Background(), func(tx *db.Tx) error {
		return tx.Query(`SELECT e.upstream_id, e.recipient FROM early_receipts e
			JOIN (SELECT upstream_id, recipient FROM parts UNION ALL SELECT upstream_id, recipient FROM messages WHERE upstream_id <> '') p ON p.upstream_id = e.upstream_id AND p.recipient = e.recipient`, nil, func(r *db.Row) error {
			var id, recipient string
			err := r.Scan(&id, &recipient)
			s.t.Errorf("a receipt %s for %s is kept for later, and its message is known", id, recipient)
			return err
		})
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
