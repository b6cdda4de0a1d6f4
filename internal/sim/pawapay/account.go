package pawapay

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
)

// Name is pawaPay's name, as in paths, faults and the book.
const Name = "pawapay"

// Options are the settings of an account, which a business makes in pawaPay's dashboard.
type Options struct {
	CallbackURL string // address of callbacks; empty: no callbacks are sent
	// RejectRepeats makes pawaPay reject an id that was used before, as its guide describes. Otherwise it
	// ignores the request.
	RejectRepeats bool
	Unsigned      bool // callbacks have no signature
}

const (
	token    = "pawapay-sandbox-token-000000000000000000005"
	country  = "GHA"
	currency = "GHS"
	jsonType = "application/json"
	maxBody  = 64 << 10
)

// visibleAfter is the time after which every payment is visible. The simulated pawaPay shows them at once.
const visibleAfter = time.Minute

// Config is the configuration of an adapter that talks to the pawaPay of a simulator reached at base, such as
// http://127.0.0.1:8080.
func Config(base string) config.PawaPay {
	return config.PawaPay{Token: token, URL: strings.TrimSuffix(base, "/") + "/" + Name, SignedCallbacks: true, VisibleAfter: visibleAfter}
}

// networks are pawaPay's names of the networks.
var networks = map[string]msisdn.Network{"MTN_MOMO_GHA": msisdn.MTN, "VODAFONE_GHA": msisdn.Telecel, "AIRTELTIGO_GHA": msisdn.AirtelTigo}

// neverEnds is the plan of a payment that stays pending.
var neverEnds = sim.Plan{Wait: true}

// failing returns the plan of a documented test number whose payments fail.
func failing(why sim.Reason) sim.Plan {
	return sim.Plan{Delay: sim.SettleSoon, Then: sim.Failed, Reason: why}
}

// Reasons of failures that occur only with pawaPay's test numbers.
const (
	unspecified   sim.Reason = "unspecified"
	notReceiving  sim.Reason = "not_receiving"
	payerNotFound            = sim.NotRegistered
)

// testDeposits and testPayouts have the documented test numbers whose payments do not complete. The keys are
// the numbers without 233.
var (
	testDeposits = map[string]sim.Plan{
		"593456019": failing(sim.OverLimit), "593456029": failing(payerNotFound), "593456039": failing(sim.Declined), "593456069": failing(unspecified), "593456129": neverEnds,
		"273456069": failing(unspecified), "273456129": neverEnds,
		"503456039": failing(sim.Declined), "503456049": failing(sim.NoFunds), "503456069": failing(unspecified), "503456129": neverEnds,
	}
	testPayouts = map[string]sim.Plan{
		"593456089": failing(sim.NotRegistered), "593456119": failing(unspecified), "593456129": neverEnds,
		"273456089": failing(sim.NotRegistered), "273456099": failing(notReceiving), "273456119": failing(unspecified), "273456129": neverEnds,
		"503456089": failing(sim.NotRegistered), "503456099": failing(notReceiving), "503456119": failing(unspecified), "503456129": neverEnds,
	}
)

// failureCodes are pawaPay's codes of the reasons.
var failureCodes = map[sim.Kind]map[sim.Reason]string{
	sim.Collection: {
		sim.Declined: "PAYMENT_NOT_APPROVED", sim.Expired: "PAYMENT_NOT_APPROVED", sim.WrongPIN: "PAYMENT_NOT_APPROVED", sim.NoFunds: "INSUFFICIENT_BALANCE",
		sim.NotRegistered: "PAYER_NOT_FOUND", sim.OverLimit: "PAYER_LIMIT_REACHED",
	},
	sim.Payout: {
		sim.NotRegistered: "RECIPIENT_NOT_FOUND", sim.OverLimit: "WALLET_LIMIT_REACHED", sim.FloatLow: "PAWAPAY_WALLET_OUT_OF_FUNDS", notReceiving: "RECIPIENT_NOT_ALLOWED_TO_RECEIVE",
		sim.OverRefunded: "AMOUNT_TOO_LARGE",
	},
}

// failureCode is pawaPay's code of a failed payment.
func failureCode(e sim.Entry) string {
	if code := failureCodes[e.Kind][e.Reason]; code != "" {
		return code
	}
	return "UNSPECIFIED_FAILURE"
}
