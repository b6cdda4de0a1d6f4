package moolre

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
)

// Name is Moolre's name, as in paths, faults and the book.
const Name = "moolre"

// Options are the settings of an account.
type Options struct {
	CallbackURL string // address of callbacks; empty: no callbacks are sent
	Confirm     bool   // whether a payer confirms the number by a code before the first collection
	Sandbox     bool   // whether requests need only the user name, as at the sandbox
}

// The account that the simulated Moolre knows.
const (
	user           = "makola"
	account        = "100000510006"
	privateKey     = "moolre-private-key-00000000000000000000000006"
	publicKey      = "moolre-public-key-000000000000000000000000006"
	callbackSecret = "00000000-0000-4000-8000-000000000006"
	currency       = "GHS"
	jsonType       = "application/json"
	maxBody        = 64 << 10
)

// goodCode is the code that confirms a payer; Moolre documents no test value.
const goodCode = "123456"

// visibleAfter is the time after which every payout is visible. The simulated Moolre shows them at once.
const visibleAfter = time.Minute

// Config is the configuration of an adapter that talks to the Moolre of a simulator reached at base, such as
// http://127.0.0.1:8080.
func Config(base string) config.Moolre {
	return config.Moolre{User: user, AccountNumber: account, PrivateKey: privateKey, PublicKey: publicKey, CallbackSecret: callbackSecret, VisibleAfter: visibleAfter,
		URL: strings.TrimSuffix(base, "/") + "/" + Name, TransferNotKnown: []config.Reply{{Status: 200, Code: codeNotFound}}}
}

// bankChannel is the channel of payouts to banks.
const bankChannel = "2"

// payers and channels are the networks of collections and those of payouts.
var (
	payers   = map[string]msisdn.Network{"13": msisdn.MTN, "6": msisdn.Telecel, "7": msisdn.AirtelTigo}
	channels = map[string]msisdn.Network{"1": msisdn.MTN, "6": msisdn.Telecel, "7": msisdn.AirtelTigo}
)

// The codes of answers. Those after codeBanks are inventions, because Moolre documents no codes for them.
const (
	codePrompted  = "TR099"
	codeConfirm   = "TP14"
	codeConfirmed = "TP17" // one client
	codeUsed      = "TP13"
	codePaidOut   = "OBGH01"
	codeFound     = "SS01"
	codeNotFound  = "SS07"
	codeName      = "AVD01"
	codeNoName    = "AVD02"
	codeBalance   = "SW01"
	codeList      = "ST08"
	codeUpdated   = "WCU02"
	codeBanks     = "SD01"

	codePending   = "SS02"
	codeFailed    = "SS03"
	codeWrong     = "TP15"
	codeInvalid   = "INP01"
	codeNotPaid   = "OBGH02"
	codeNoBalance = "OBGH03"
)

// bank is a row of the list of banks.
type bank struct {
	Name string `json:"name"`
	Code string `json:"code"`
}

// banks are the three rows of Moolre's sample, and one that is an invention.
var banks = []bank{{"ABSA BANK GHANA LTD", "030100"}, {"ACCESS BANK GHANA LTD", "030402"}, {"ADB BANK GHANA LTD", "030301"}, {"GCB BANK LTD", "030501"}}

// knownBank reports whether the list has a code.
func knownBank(code string) bool {
	for _, b := range banks {
		if b.Code == code {
			return true
		}
	}
	return false
}
