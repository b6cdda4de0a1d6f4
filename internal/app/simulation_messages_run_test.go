package app

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// keep checks that an answer is allowed, and stores an accepted request.
func (s *texting) keep(m *send) {
	lost := s.weather.database != db.FaultNone
	refused := m.status >= 400 && m.status < 500
	switch {
	case m.status == http.StatusOK && m.wrong == "":
	case refused && m.wrong != "":
	case m.status == http.StatusPaymentRequired && m.from == s.texters[2]: // a customer whose credits are used up
	case m.status == http.StatusForbidden && m.vanishes:
	case m.status == http.StatusTooManyRequests && m.otp:
	case m.status == http.StatusConflict && m.first != nil: // while the same request is in progress
	case m.status == http.StatusServiceUnavailable && lost:
		m.unclear = true
	default:
		s.t.Errorf("%s was answered with %d %s (wrong: %q, weather %s)", m.id, m.status, m.message, m.wrong, m.weather)
	}
	if m.first == nil {
		s.sends = append(s.sends, m)
		if m.key != "" && (m.status == http.StatusOK || m.unclear) {
			s.keyed = append(s.keyed, m)
		}
		return
	}
	if m.status != http.StatusOK {
		return
	}
	if first := m.first; first.status == http.StatusOK && first.campaign != m.campaign {
		s.t.Errorf("%s was accepted twice under one Idempotency-Key: %s and %s", m.id, first.campaign, m.campaign)
	}
	m.first.status, m.first.campaign, m.first.cost = m.status, m.campaign, m.cost
}

// stop stops a running campaign, as an operator does.
func (s *texting) stop(sends []*send) {
	if s.weather.database != db.FaultNone {
		return
	}
	large := slices.IndexFunc(sends, func(m *send) bool { return m.status == http.StatusOK && len(m.to) > 100 })
	if large < 0 || s.random.IntN(2) == 0 {
		return
	}
	n := s.node()
	err := n.db.Write(context.Background(), func(tx *db.Tx) error {
		_, err := n.messaging.StopCampaign(tx, sends[large].campaign)
		return err
	})
	if err != nil && !problem.Is(err, problem.Duplicate) { // the campaign has ended already
		s.t.Errorf("stop a campaign: %v", err)
	}
}

// change adds or removes an opt-out, as an operator does at the request of a person.
func (s *texting) change() {
	x, n := s.texters[s.random.IntN(len(s.texters))], s.node()
	number, again := international(s.number()), s.random.IntN(4) == 0
	s.act(n, func(tx *db.Tx) error {
		if again {
			_, err := n.contacts.OptIn(tx, x.id, msisdn.MSISDN(number))
			return err
		}
		n.contacts.OptOut(tx, x.id, "asked us", msisdn.MSISDN(number))
		return nil
	})
	if x.optedOut[number] = !again; again {
		delete(x.optedOut, number)
	}
	// A request with an unknown outcome is not repeated, because the repeat may have another result.
	s.keyed = slices.DeleteFunc(s.keyed, func(m *send) bool { return m.status != http.StatusOK })
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// enter verifies the codes that arrived on handsets. A correct code is accepted once.
func (s *texting) enter(sends []*send) {
	for _, m := range sends {
		if !m.otp || m.status != http.StatusOK || m.first != nil || m.to["233240000001"] {
			continue
		}
		for number := range m.to {
			for _, g := range s.sim.Centre.SegmentsTo(number) {
				if textID.FindString(g.Text) != m.id {
					continue
				}
				code := sixDigits.FindString(g.Text)
				body := fmt.Sprintf(`{"requestId":%q,"phoneNumber":%q,"code":%q}`, m.campaign, number, code)
				for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
					if answer := call(s.node(), m.from.key, http.MethodPost, "/sms-api/otp/verify", body); answer.Code != want {
						s.t.Errorf("the code of %s was answered with %d %s, want %d", m.id, answer.Code, answer.Body, want)
					}
				}
				s.checked++
			}
		}
	}
}

// connected reports whether a node is connected.
func (s *texting) connected() bool {
	return slices.ContainsFunc(s.nodes, func(n *App) bool { return n.sms[len(n.sms)-1].Ready("") == nil })
}

// still reports whether a node is connected and every goroutine is idle.
func (s *texting) still() bool {
	if !s.connected() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	for range 2 { // the end of one piece of work may start another
		for _, n := range s.nodes {
			if n.jobs.Quiet(ctx) != nil {
				return false
			}
		}
		if s.sim.Quiet(ctx) != nil {
			return false
		}
	}
	return true
}

// rest waits until no goroutine has work. Running work may itself wait for the clock.
func (s *texting) rest() {
	s.t.Helper()
	for until := time.Now().Add(simulationPatience); !s.still(); s.wait(100 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("round %d: no rest: %+v", s.rounds, s.nodes[0].jobs.Counts())
		}
	}
}

// wait lets a little time pass. Connections use the machine's clock, so without a connection it also lets real time pass.
func (s *texting) wait(d time.Duration) {
	if !s.connected() {
		<-s.look.C
	}
	s.advance(d)
}

// undelivered counts the unfinished chunks, also those without a separate row. It returns -1 if the database does not answer.
func (s *texting) undelivered() (n int64) {
	if s.nodes[0].db.Read(context.Background(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT CAST(coalesce(sum(left_over), 0) AS INTEGER) + (SELECT count(*) FROM campaigns c WHERE c.numbers <> ''
			AND c.recipients > (SELECT count(*) FROM messages m WHERE m.tenant = c.tenant AND m.campaign = c.id AND m.no >= 0
				AND m.status NOT IN ('queued', 'sending'))) FROM campaigns`, nil, &n)
		return err
	}) != nil {
		return -1
	}
	return n
}

// deliver waits until every message was sent or given up. A chunk that changes its node is visible only in its row.
func (s *texting) deliver() {
	s.t.Helper()
	s.rest()
	for until := time.Now().Add(simulationPatience); s.undelivered() != 0; s.rest() {
		if time.Now().After(until) {
			s.t.Fatalf("round %d: %d chunks are not delivered: %+v", s.rounds, s.undelivered(), s.nodes[0].jobs.Counts())
		}
		<-s.look.C
		s.advance(200 * time.Millisecond)
	}
}

// passing lets time pass until the returned function is called, for work that this goroutine waits for.
func (s *texting) passing() func() {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.advance(100 * time.Millisecond)
			case <-end:
				return
			}
		}
	}()
	return func() { close(end); <-ended }
}

// clearUp waits for every late receipt and for the end of the receipt window of unknown messages.
func (s *texting) clearUp() {
	s.calm()
	s.deliver()
	for _, step := range []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 11 * time.Minute} {
		s.rest()
		s.advance(step)
	}
	s.rest()
	s.checkStrangers()
	for range 5 {
		s.advance(12 * time.Hour)
		s.rest()
	}
	s.keyed = nil
}
