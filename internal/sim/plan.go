package sim

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
)

// Kind is the type of an entry of the book.
type Kind string

// The kinds. A payout goes to a wallet or a bank account.
const (
	Collection Kind = "collection"
	Payout     Kind = "payout"
	TopUp      Kind = "topup"
	Bundle     Kind = "bundle"
)

// Status is the state of an entry.
type Status string

// The statuses.
const (
	Pending Status = "pending"
	Success Status = "success"
	Failed  Status = "failed"
)

// Reason is the cause of a failed entry. It is the same for all providers; each provider's package translates it.
type Reason string

// The reasons.
const (
	Declined      Reason = "declined"
	Expired       Reason = "expired"
	NoFunds       Reason = "no_funds"
	WrongPIN      Reason = "wrong_pin"
	NotRegistered Reason = "not_registered"
	OverLimit     Reason = "over_limit"
	Barred        Reason = "barred"
	Refused       Reason = "refused"   // refused at once
	Internal      Reason = "internal"  // the provider's own failure
	FloatLow      Reason = "float_low" // our float does not cover the amount
	ReversedLater Reason = "reversed"
	OverRefunded  Reason = "over_refunded" // more than can still be refunded
	NoWord        Reason = "no_word"       // the message centre does not know the outcome of a message
)

// Plan is the outcome of an order, fixed when the order is accepted.
type Plan struct {
	// Refuse, if not empty, rejects the order at once, and nothing is entered.
	Refuse Reason `json:"-"`
	// Down returns 503 without entering the order, for 60 s from the first request for this number.
	Down bool `json:"-"`

	// Delay is the time until the order settles. Zero means at once or, if Wait is set, never by itself.
	Delay time.Duration `json:"-"`
	// Then is the final status; empty means Success.
	Then   Status `json:"then,omitempty"`
	Reason Reason `json:"why,omitempty"` // of a failure
	// Wait leaves the order to the handset. Delay is then the maximum time.
	Wait bool `json:"wait,omitempty"`

	Lost    bool `json:"-"` // the response never arrives, but the order is entered
	Garbled bool `json:"-"` // the response is unreadable, but the order is entered

	NoCallback bool          `json:"no_callback,omitempty"`
	Twice      bool          `json:"twice,omitempty"`
	Stale      bool          `json:"stale,omitempty"`  // a contradicting callback follows the true one
	Forged     bool          `json:"forged,omitempty"` // a contradicting callback precedes the true one
	Early      bool          `json:"-"`                // settles and sends its callback before the response
	CallAfter  time.Duration `json:"call_after,omitempty"`

	// FlipAfter, if not zero, is the time after which a settled entry changes to the opposite status, Flips times in
	// all. A success is reversed, and a failure is paid after all.
	FlipAfter time.Duration `json:"flip_after,omitempty"`
	Flips     int           `json:"flips,omitempty"`

	Omit bool          `json:"omit,omitempty"` // absent from the statement
	Off  money.Pesewas `json:"off,omitempty"`  // added to the amount in the statement
	Line string        `json:"line,omitempty"` // the fault that changes its lines in the statement
}

// SettleSoon is the time until an order settles if its number has no other plan.
const SettleSoon = 2 * time.Second

// Magic returns the code of a magic number: a wallet or account that ends in 0000 and three digits.
func Magic(party string) (code string, ok bool) {
	n := len(party)
	if n < 7 || party[n-7:n-3] != "0000" || strings.Trim(party[n-3:], "0123456789") != "" {
		return "", false
	}
	return party[n-3:], true
}

// failing returns the plan with a failure for this reason as its outcome.
func (p Plan) failing(r Reason) Plan {
	p.Then, p.Reason = Failed, r
	return p
}

// planOf returns the plan of a code that has the same meaning for orders and messages. For any other code the plan
// succeeds after SettleSoon.
func planOf(code string) Plan {
	p := Plan{Delay: SettleSoon, Then: Success}
	switch code {
	case "001":
		p.Delay = 0
	case "002":
		p.Delay = 45 * time.Second
	case "004":
		p.Twice = true
	case "006":
		p.Lost, p.Delay = true, 3*time.Second
	case "007":
		p.Lost, p.Delay = true, 3*time.Second
		return p.failing(Internal)
	case "008":
		p.Stale = true
	case "024":
		return p.failing(NotRegistered)
	case "026":
		return p.failing(Barred)
	case "031":
		p.Down = true
	case "032":
		p.Garbled = true
	}
	return p
}

// PlanFor returns the plan of an order of a kind with a party.
func PlanFor(kind Kind, party string) Plan {
	code, _ := Magic(party)
	p := planOf(code)
	collecting := kind == Collection
	switch code {
	case "003":
		p.Delay, p.Wait = 0, true
	case "005":
		p.NoCallback = true
	case "009":
		p.Omit = true
	case "010":
		p.Off = 1
	case "025":
		return p.failing(OverLimit)
	case "027":
		return p.failing(NotRegistered)
	}
	switch {
	case !collecting && code == "030":
		p.Refuse = Refused
	case !collecting:
	case code == "020":
		return p.failing(Declined)
	case code == "021":
		p.Delay = 10 * time.Second
		return p.failing(Expired)
	case code == "022":
		return p.failing(NoFunds)
	case code == "023":
		return p.failing(WrongPIN)
	case code == "040":
		p.Delay, p.Wait = 5*time.Minute, true
		return p.failing(Expired)
	}
	return p
}

// Names of the simulated people. A number always gets the same name.
var (
	givenNames  = []string{"KWAME", "AMA", "KOFI", "ABENA", "YAW", "AKOSUA", "KWESI", "EFUA", "KOJO", "ADWOA", "FIIFI", "ESI", "NII", "NAA", "SELORM", "DZIFA"}
	familyNames = []string{"MENSAH", "OWUSU", "BOATENG", "ASANTE", "TETTEH", "AGYEMANG", "ADDO", "OFORI", "QUAYE", "AMOAH", "DARKO", "LARYEA", "ABDULAI", "IDDRISU", "KPODO", "ANSAH"}
)

// Name returns the registered name of a wallet or bank account. The magic code 027 has no name. The name of any other
// magic number contains its code.
func Name(party string) (given, family string, ok bool) {
	if code, magic := Magic(party); magic {
		return "KWAME", "TEST " + code, code != "027"
	}
	h := uint32(2166136261)
	for i := 0; i < len(party); i++ {
		h = (h ^ uint32(party[i])) * 16777619
	}
	return givenNames[(h>>8)%16], familyNames[(h>>16)%16], true
}

// Party returns a number in the form of the book. It returns a bank account unchanged.
func Party(number string) string {
	if m, err := msisdn.Parse(number); err == nil {
		return m.International()
	}
	return strings.TrimSpace(number)
}

// Others returns a reference or party that differs from s in its last character, and so belongs to somebody else.
func Others(s string) string {
	if s == "" {
		return s
	}
	last := byte('0')
	if s[len(s)-1] == last {
		last = '1'
	}
	return s[:len(s)-1] + string(last)
}
