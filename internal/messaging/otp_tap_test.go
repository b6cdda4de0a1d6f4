package messaging

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// tapRule closes a range of numbers after few messages.
var tapRule = config.OTPTap{Sends: 10, Within: time.Hour, Wait: 3 * time.Minute, Unverified: 90, Closed: time.Hour}

// ask sends a code to a number. If verify is set, it also verifies the code.
func (h *fixture) ask(phone msisdn.MSISDN, verify bool) error {
	sent, _, err := h.SendOTP(h.t.Context(), h.caller(), OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: phone, Expiry: time.Hour})
	if err == nil && verify {
		h.verifies(phone, sent)
	}
	return err
}

func (h *fixture) verifies(phone msisdn.MSISDN, sent OTPSent) {
	h.t.Helper()
	if _, err := h.Codes.Verify(h.t.Context(), idempotency.Caller{Tenant: h.Tenant.ID}, sent.RequestID, phone, h.codeOf(sent)); err != nil {
		h.t.Fatal(err)
	}
}

// inRange returns the nth number of a range.
func inRange(prefix string, n int) msisdn.MSISDN {
	return msisdn.MSISDN(fmt.Sprintf("%s%06d", prefix, n))
}

// pump sends codes to n numbers of a range and verifies one of every share codes.
func (h *fixture) pump(prefix string, from, n, share int) {
	h.t.Helper()
	for i := range n {
		if err := h.ask(inRange(prefix, from+i), share > 0 && i%share == 0); err != nil {
			h.t.Fatalf("code %d: %v", i, err)
		}
	}
}

func (h *fixture) wantTapClosed(phone msisdn.MSISDN, wait time.Duration) {
	h.t.Helper()
	p := wantKind(h.t, h.ask(phone, false), problem.RateLimited)
	if p.Code != "otp_range_closed" || p.RetryAfter != wait {
		h.t.Errorf("refused as %s for %v, expected otp_range_closed for %v", p.Code, p.RetryAfter, wait)
	}
}

func (h *fixture) wantTapOpen(phone msisdn.MSISDN) {
	h.t.Helper()
	if err := h.ask(phone, false); err != nil {
		h.t.Errorf("a code to %s: %v", phone, err)
	}
}

func TestTap_pumpedRangeIsClosed(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		var log bytes.Buffer
		h := open(t, d, options{credits: 100, tap: tapRule, log: slog.New(slog.NewTextHandler(&log, nil))})
		other, name := h.customer("neighbour", 100, "Neighbour")
		h.pump("233241", 0, 12, 0)
		h.Pass(tapRule.Wait - time.Second)
		h.wantTapOpen(inRange("233241", 50))
		h.Pass(time.Second)
		credits := h.Balance()
		h.wantTapClosed(inRange("233241", 51), tapRule.Closed)
		h.Pass(10 * time.Minute)
		h.wantTapClosed(inRange("233241", 0), tapRule.Closed-10*time.Minute)
		h.WantBalance(credits)

		h.wantTapOpen(inRange("233242", 0))
		own, sender := h.Tenant, h.sender
		h.Tenant, h.sender = other, name
		h.wantTapOpen(inRange("233241", 60))
		h.Tenant, h.sender = own, sender

		closed, err := h.Codes.ClosedRanges(t.Context())
		if err != nil || len(closed) != 1 || closed[0].Tenant != h.Tenant.ID || closed[0].Prefix != "233241" || closed[0].Sent != 10 || closed[0].Verified != 0 {
			t.Errorf("closed: %+v, %v", closed, err)
		}
		if n, err := h.Codes.CountClosedRanges(t.Context()); n != 1 || err != nil {
			t.Errorf("%d are counted, %v", n, err)
		}
		if text := log.String(); strings.Count(text, "closed number range") != 1 || !strings.Contains(text, "range=233241******") {
			t.Errorf("the log says %q", text)
		}
		h.Pass(tapRule.Closed)
		h.wantTapOpen(inRange("233241", 52))
		// Only batches that begin after the closure are judged.
		h.pump("233241", 100, 8, 0)
		h.Pass(tapRule.Wait)
		h.wantTapOpen(inRange("233241", 110))
		h.Pass(tapRule.Wait)
		h.wantTapClosed(inRange("233241", 111), tapRule.Closed)
		h.sound()
	})
}

func TestTap_honestRangeStaysOpen(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000, tap: tapRule})
		// Of a burst of 100 codes six in ten are verified, but minutes later.
		var sent []OTPSent
		for i := range 100 {
			s, _, err := h.SendOTP(t.Context(), h.caller(), OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: inRange("233241", i), Expiry: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, s)
		}
		h.Pass(2 * time.Minute)
		for i, s := range sent {
			if i%10 < 6 {
				h.verifies(inRange("233241", i), s)
			}
		}
		for i := range 60 {
			h.Pass(time.Minute)
			h.wantTapOpen(inRange("233241", 1_000+i))
			h.pump("233241", 2_000+10*i, 2, 1)
		}
	})
}

func TestTap_fewCodesStayOpen(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 1_000, tap: tapRule})
	for i := range 10 {
		h.pump("233241", 10*i, 9, 0)
		h.Pass(tapRule.Within)
	}
	if n, err := h.Codes.CountClosedRanges(t.Context()); n != 0 || err != nil {
		t.Errorf("%d are closed, %v", n, err)
	}
}

func TestTap_reopenedByOperator(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100, tap: tapRule})
		reopen := func() (r otp.ClosedRange, err error) {
			err = h.d.Write(t.Context(), func(tx *db.Tx) error {
				r, err = h.Codes.ReopenRange(tx, h.Tenant.ID, "233241")
				return err
			})
			return r, err
		}
		_, err := reopen()
		wantKind(t, err, problem.NotFound)
		h.pump("233241", 0, 10, 0)
		h.Pass(tapRule.Wait)
		h.wantTapClosed(inRange("233241", 50), tapRule.Closed)
		if r, err := reopen(); err != nil || r.Sent != 10 {
			t.Errorf("reopened: %+v, %v", r, err)
		}
		_, err = reopen()
		wantKind(t, err, problem.NotFound)
		h.wantTapOpen(inRange("233241", 51))
		h.Pass(tapRule.Wait)
		h.pump("233241", 100, 9, 0)
		h.wantTapOpen(inRange("233241", 120))
		h.Pass(tapRule.Wait)
		h.wantTapClosed(inRange("233241", 121), tapRule.Closed)
	})
}

func TestTap_twoNodesAgree(t *testing.T) {
	h := open(t, dbtest.Open(t, db.Postgres), options{credits: 1_000, tap: tapRule})
	other := node(t, h.d, options{node: "another", at: h.clock, tap: tapRule, rail: h.operator})
	other.Tenant, other.sender = h.Tenant, h.sender
	nodes := []*fixture{h, other}
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			if err := nodes[i%2].ask(inRange("233241", i), i%8 == 0); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	// Every code and every verification is counted once.
	if n := h.Count(`SELECT sent + full_sent FROM otp_taps`); n != 40 {
		t.Errorf("%d codes are counted", n)
	}
	if n := h.Count(`SELECT verified + full_verified FROM otp_taps`); n != 5 {
		t.Errorf("%d verifications are counted", n)
	}
	h.Pass(tapRule.Wait)
	for i, n := range nodes {
		n.pump("233242", 100*i, 5, 0)
	}
	h.Pass(tapRule.Wait)
	results := make([]error, 8)
	for i := range results {
		group.Go(func() { results[i] = nodes[i%2].ask(inRange("233242", 500+i), false) })
	}
	group.Wait()
	for i, err := range results {
		if p := wantKind(t, err, problem.RateLimited); p.Code != "otp_range_closed" {
			t.Errorf("node %d says %s", i%2, p.Code)
		}
	}
	if n := h.Count(`SELECT count(*) FROM otp_taps WHERE closed_at > 0 AND prefix = '233242'`); n != 1 {
		t.Errorf("%d rows are closed", n)
	}
	// A node that starts now reads the same state.
	late := node(t, h.d, options{node: "late", at: h.clock, tap: tapRule, rail: h.operator})
	late.Tenant, late.sender = h.Tenant, h.sender
	late.wantTapClosed(inRange("233242", 600), tapRule.Closed)
}
