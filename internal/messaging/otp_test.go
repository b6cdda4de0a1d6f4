package messaging

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

const ama = msisdn.MSISDN("233241234567")

// The promised limits of one-time passwords.
const (
	otpTries      = 5
	otpSends      = 5
	otpSendWindow = 10 * time.Minute
	otpFails      = 20
	otpFailWindow = time.Hour
)

func (h *fixture) otp(o OTP) (OTPSent, error) {
	if o.SenderID == "" {
		o.SenderID = h.sender.ID
	}
	if o.Message == "" {
		o.Message = "Your code is " + otp.Placeholder + ", tell nobody."
	}
	if o.Phone == "" {
		o.Phone = ama
	}
	sent, _, err := h.SendOTP(h.t.Context(), h.caller(), o)
	h.Quiet()
	return sent, err
}

func (h *fixture) mustOTP(o OTP) (sent OTPSent, code string) {
	h.t.Helper()
	sent, err := h.otp(o)
	if err != nil {
		h.t.Fatal(err)
	}
	return sent, h.lastCode()
}

var digits = regexp.MustCompile(`\d+`)

func (h *fixture) lastCode() string {
	h.t.Helper()
	all := h.operator.All()
	if len(all) == 0 {
		h.t.Fatal("nothing was sent")
	}
	return digits.FindString(all[len(all)-1].Text)
}

// codeOf returns the code of a request, even if it was not sent.
func (h *fixture) codeOf(sent OTPSent) string {
	h.t.Helper()
	var code otp.Code
	if err := h.d.Read(h.t.Context(), func(tx *db.Tx) error { return tx.Gather(code.Find(h.Tenant.ID, sent.RequestID)) }); err != nil {
		h.t.Fatal(err)
	}
	digits, known := h.Codes.Text(otp.Placeholder, &code)
	if !known {
		h.t.Fatal("the code has no row")
	}
	return digits
}

func (h *fixture) verify(sent OTPSent, code string) error {
	_, err := h.Codes.Verify(h.t.Context(), idempotency.Caller{Tenant: h.Tenant.ID}, sent.RequestID, ama, code)
	return err
}

func (h *fixture) wantVerify(sent OTPSent, code string, want problem.Kind) {
	h.t.Helper()
	err := h.verify(sent, code)
	if want == "" && err != nil || want != "" && !problem.Is(err, want) {
		h.t.Errorf("the code %s: %v, expected %q", code, err, want)
	}
}

func TestOTP_sentAndVerified(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		sent, code := h.mustOTP(OTP{})
		if len(code) != 4 || !regexp.MustCompile(`^[A-Z]{3}$`).MatchString(sent.Prefix) {
			t.Errorf("code %q, prefix %q", code, sent.Prefix)
		}
		if got := h.operator.All()[0]; got.Text != "Your code is "+code+", tell nobody." || got.To != string(ama) {
			t.Errorf("sent %+v", got)
		}
		h.WantBalance(9)
		h.wantVerify(sent, wrong(code), problem.Invalid)
		h.wantVerify(sent, code, "")
		h.wantVerify(sent, code, problem.Unauthenticated) // the code was used
		h.wantVerify(OTPSent{RequestID: "nonsense"}, code, problem.Unauthenticated)
		h.wantVerify(OTPSent{RequestID: "019f0000-0000-7000-8000-000000000000"}, code, problem.Unauthenticated)
		h.sound()
	})
}

// wrong returns a code that differs from the given one.
func wrong(code string) string {
	return strings.Map(func(r rune) rune { return '0' + (r-'0'+1)%10 }, code)
}

func TestVerify_otherNumberOrTenant(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 10})
	h.customer("other", 0, "Bantama")
	sent, code := h.mustOTP(OTP{})
	if _, err := h.Codes.Verify(t.Context(), idempotency.Caller{Tenant: "shop"}, sent.RequestID, "233501234567", code); !problem.Is(err, problem.Unauthenticated) {
		t.Errorf("another number: %v", err)
	}
	if _, err := h.Codes.Verify(t.Context(), idempotency.Caller{Tenant: "other"}, sent.RequestID, ama, code); !problem.Is(err, problem.Unauthenticated) {
		t.Errorf("another tenant: %v", err)
	}
	h.wantVerify(sent, code, "")
}

func TestVerify_fiveTries(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		sent, code := h.mustOTP(OTP{Length: 10})
		var wait sync.WaitGroup
		var mu sync.Mutex
		kinds := map[problem.Kind]int{}
		for i := range 40 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				var p *problem.Error
				if err := h.verify(sent, fmt.Sprintf("%010d", i)); !errors.As(err, &p) {
					t.Errorf("a guess: %v", err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				kinds[p.Kind]++
			}()
		}
		wait.Wait()
		if kinds[problem.Invalid] != otpTries || kinds[problem.Unauthenticated] != 40-otpTries {
			t.Errorf("40 guesses at once: %v", kinds)
		}
		h.wantVerify(sent, code, problem.Unauthenticated)
	})
}

func TestVerify_codeIsUsedOnce(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		sent, code := h.mustOTP(OTP{})
		var wait sync.WaitGroup
		var mu sync.Mutex
		right := 0
		for range 4 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				if err := h.verify(sent, code); err == nil {
					mu.Lock()
					defer mu.Unlock()
					right++
				}
			}()
		}
		wait.Wait()
		if right != 1 {
			t.Errorf("one code was right %d times", right)
		}
	})
}

func TestVerify_expiredCode(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		sent, code := h.mustOTP(OTP{Expiry: 2 * time.Minute})
		h.Pass(2*time.Minute - time.Second)
		h.wantVerify(sent, wrong(code), problem.Invalid)
		h.Pass(time.Second)
		h.wantVerify(sent, code, problem.Unauthenticated)
	})
}

func TestOTP_voidedByNewer(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		first, code1 := h.mustOTP(OTP{Length: 6})
		second, code2 := h.mustOTP(OTP{Length: 6})
		third, err := h.otp(OTP{Phone: "233501234567"})
		if err != nil {
			t.Fatal(err)
		}
		h.wantVerify(first, code1, problem.Unauthenticated)
		h.wantVerify(second, code2, "")
		if _, err := h.Codes.Verify(t.Context(), idempotency.Caller{Tenant: "shop"}, third.RequestID, "233501234567", h.lastCode()); err != nil {
			t.Errorf("another number's: %v", err)
		}
	})
}

func TestOTP_sendLimit(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 7})
		// Refused requests do not count against the limit.
		for range 10 {
			_, err := h.otp(OTP{Message: strings.Repeat("a", 1_300) + otp.Placeholder})
			wantKind(t, err, problem.InsufficientCredits)
		}
		var wait sync.WaitGroup
		results := make([]error, 12)
		for i := range results {
			wait.Add(1)
			go func() {
				defer wait.Done()
				_, _, results[i] = h.SendOTP(t.Context(), h.caller(), OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: ama})
			}()
		}
		wait.Wait()
		h.Quiet()
		sent := 0
		for _, err := range results {
			if err == nil {
				sent++
				continue
			}
			if p := wantKind(t, err, problem.RateLimited); p.RetryAfter <= 0 || p.RetryAfter > otpSendWindow {
				t.Errorf("come again in %v", p.RetryAfter)
			}
		}
		if sent != otpSends {
			t.Errorf("%d of 12 were sent", sent)
		}
		h.Pass(otpSendWindow)
		h.mustOTP(OTP{})
		h.WantBalance(1)
		h.sound()
	})
}

func TestVerify_failureLimit(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 100})
	failures := 0
	for failures < otpFails {
		sent, code := h.mustOTP(OTP{Expiry: time.Hour})
		for i := 0; i < otpTries && failures < otpFails; i++ {
			h.wantVerify(sent, wrong(code), problem.Invalid)
			failures++
		}
	}
	h.Pass(otpSendWindow)
	sent, code := h.mustOTP(OTP{Expiry: 2 * time.Hour})
	h.wantVerify(sent, code, problem.RateLimited)
	h.Pass(otpFailWindow)
	h.wantVerify(sent, code, "")
}

func TestOTP_badRequests(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 10})
	for name, each := range map[string]struct {
		o    OTP
		want string
	}{
		"no placeholder": {OTP{Message: "Your code is <%otp%>"}, "message"},
		"too short":      {OTP{Length: 3}, "length"},
		"negative":       {OTP{Length: -1}, "length"},
		"too long":       {OTP{Length: 11}, "length"},
		"too soon":       {OTP{Expiry: time.Minute}, "expiry"},
		"too late":       {OTP{Expiry: 1441 * time.Minute}, "expiry"},
		"bad sender":     {OTP{SenderID: "Kejetia"}, "senderId"},
		"all":            {OTP{SenderID: "x", Message: "x", Length: 3, Expiry: time.Second}, "expiry length message senderId"},
	} {
		_, err := h.otp(each.o)
		if p := wantKind(t, err, problem.Invalid); strings.Join(p.FieldNames(), " ") != each.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := h.SendOTP(t.Context(), h.caller(), OTP{SenderID: h.sender.ID, Message: otp.Placeholder}); !problem.Is(err, problem.Invalid) {
		t.Errorf("no number: %v", err)
	}
	h.WantBalance(10)
}

func TestOTP_codeIsStoredNowhere(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.SetReady(fmt.Errorf("no operator")) // the job and the chunk stay in their tables
		sent, err := h.otp(OTP{Length: 10})
		if err != nil {
			t.Fatal(err)
		}
		code := h.codeOf(sent)
		h.findNowhere(code)
		h.operator.SetReady(nil)
		h.Pass(2 * time.Second)
		if got := h.lastCode(); got != code {
			t.Fatalf("sent %s instead of %s", got, code)
		}
		h.findNowhere(code)
		h.wantVerify(sent, wrong(code), problem.Invalid)
		h.wantVerify(sent, code, "")
		h.findNowhere(code)
		if n := h.Count("SELECT count(*) FROM campaigns WHERE message LIKE '%" + otp.Placeholder + "%'"); n != 1 {
			t.Errorf("the template is stored %d times: the search above would find nothing anyway", n)
		}
	})
}

// findNowhere fails the test if any column of any table contains needle.
func (h *fixture) findNowhere(needle string) {
	h.t.Helper()
	if found := dbtest.Holding(h.t, h.d, needle); len(found) > 0 {
		h.t.Errorf("the code is in %v", found)
	}
}

func TestOTP_expiredBeforeSendIsRefunded(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.SetReady(fmt.Errorf("no operator"))
		_, err := h.otp(OTP{})
		if err != nil {
			t.Fatal(err)
		}
		h.Pass(otp.DefaultExpiry - time.Second)
		h.WantBalance(9)
		h.Pass(time.Minute)
		h.WantBalance(10)
		h.operator.SetReady(nil)
		h.Pass(time.Hour)
		if n := len(h.operator.All()); n != 0 {
			t.Error("an expired code was sent")
		}
		h.sound()
	})
}

func TestOTP_neverSentTwice(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10, resend: true})
		begun, goOn := make(chan struct{}), make(chan struct{})
		h.operator.Script(func(int, provider.Segment) provider.Outcome {
			close(begun)
			<-goOn
			return h.operator.Accept()
		})
		sent, _, err := h.SendOTP(t.Context(), h.caller(), OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: ama, Expiry: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		kill(t, d, "one")
		other := node(t, d, options{node: "two", resend: true, at: h.clock})
		other.Quiet()
		other.Pass(10 * time.Minute)
		close(goOn)
		h.Quiet()
		if n := len(other.operator.All()); n != 0 {
			t.Errorf("the code was sent again %d times", n)
		}
		if code := h.lastCode(); h.verify(sent, code) != nil {
			t.Error("the code that did arrive is refused")
		}
		h.sound()
	})
}

func TestOTP_takenOverFromDeadNode(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.SetReady(fmt.Errorf("no operator"))
		sent, err := h.otp(OTP{Expiry: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		kill(t, d, "one")
		other := node(t, d, options{node: "two", at: h.clock})
		other.Quiet()
		if n := len(other.operator.All()); n != 1 {
			t.Fatalf("the code was sent %d times", n)
		}
		h.wantVerify(sent, other.lastCode(), "")
		h.sound()
	})
}

func TestOTP_idempotencyKey(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		caller := h.caller()
		caller.IdempotencyKey, caller.BodyHash = "key", "body"
		var first OTPSent
		for i := range 8 { // more than the limit of sends
			sent, replayed, err := h.SendOTP(t.Context(), caller, OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: ama})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = sent
			} else if !replayed || sent != first {
				t.Errorf("again: %+v, %v; first %+v", sent, replayed, first)
			}
		}
		h.Quiet()
		h.WantBalance(9)
		// A repeated request does not count against the limit.
		for i := range otpSends - 1 {
			caller.IdempotencyKey = fmt.Sprint("another ", i)
			if _, _, err := h.SendOTP(t.Context(), caller, OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: ama}); err != nil {
				t.Fatal(err)
			}
		}
		caller.IdempotencyKey = "key"
		sent, replayed, err := h.SendOTP(t.Context(), caller, OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: ama})
		if err != nil || !replayed || sent != first {
			t.Errorf("after all that may be sent: %+v, %v, %v", sent, replayed, err)
		}
		caller.BodyHash = "another body"
		_, _, err = h.SendOTP(t.Context(), caller, OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: ama})
		if p := wantKind(t, err, problem.Invalid); p.Code != "idempotency_key_mismatch" {
			t.Errorf("another body is refused as %s", p.Code)
		}
	})
}

func TestOTP_sameKeyConcurrently(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		caller := h.caller()
		caller.IdempotencyKey, caller.BodyHash = "key", "body"
		var sent [4 * otpSends]OTPSent
		var group sync.WaitGroup
		for i := range sent {
			group.Go(func() {
				var err error
				if sent[i], _, err = h.SendOTP(t.Context(), caller, OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: ama}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for _, s := range sent {
			if s != sent[0] {
				t.Errorf("%+v and %+v", s, sent[0])
			}
		}
		h.Quiet()
		h.WantBalance(9)
		h.sound()
	})
}

// If a window began in the future, because the clock was set back since, it does not block a number until then.
func TestOTP_limitsAfterClockSetBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		h.clock.Set(24 * time.Hour)
		var sent OTPSent
		for range otpSends {
			var code string
			sent, code = h.mustOTP(OTP{})
			for range otpFails / otpSends {
				h.wantVerify(sent, wrong(code), problem.Invalid)
			}
		}
		_, err := h.otp(OTP{})
		wantKind(t, err, problem.RateLimited)
		h.clock.Set(-time.Minute) // by less than a window, so no window begins anew
		_, err = h.otp(OTP{})
		wantKind(t, err, problem.RateLimited)
		h.wantVerify(sent, "0000", problem.RateLimited)
		h.clock.Set(time.Minute - 24*time.Hour)
		sent, code := h.mustOTP(OTP{})
		h.wantVerify(sent, wrong(code), problem.Invalid)
		h.wantVerify(sent, code, "")
		h.sound()
	})
}

// If the clock is set back, a code is not valid for longer.
func TestVerifyOTP_clockSetBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		sent, code := h.mustOTP(OTP{})
		h.clock.Set(-30 * time.Second) // the allowed difference between nodes
		h.wantVerify(sent, wrong(code), problem.Invalid)
		h.clock.Set(-time.Hour)
		h.wantVerify(sent, code, problem.Unauthenticated)
		h.sound()
	})
}
