package paystack

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
)

// Name is Paystack's name, as in paths, faults and the book.
const Name = "paystack"

// Options configure the behaviour of the simulated Paystack.
type Options struct {
	// EventURL is the address to which Paystack sends events. A business sets it in the dashboard. If it is
	// empty, no events are sent.
	EventURL string
	// OTP makes transfers wait for an OTP. A business switches it off in the dashboard.
	OTP bool
}

// The key that the simulated Paystack knows, and the number of its business.
const (
	secretKey   = "sk_test_51a0c0ffee000000000000000000000000000004"
	integration = 510004
	currency    = "GHS"
	maxBody     = 64 << 10
)

// goodOTP is the OTP that the simulated Paystack accepts; its documents have no test value.
const goodOTP = "123456"

// visibleAfter is the time after which every transfer is visible. The simulated Paystack shows them at once.
const visibleAfter = time.Minute

// Config is the configuration of an adapter that talks to the Paystack of a simulator reached at base, such as
// http://127.0.0.1:8080.
func Config(base string) config.Paystack {
	return config.Paystack{SecretKey: secretKey, URL: strings.TrimSuffix(base, "/") + "/" + Name, VisibleAfter: visibleAfter}
}

// bank is a row of the list of banks.
type bank struct {
	id               int
	name, slug, code string
	kind             string // mobile_money or ghipss
}

// banks are the wallets and banks that can be paid. The ids of the banks are inventions.
var banks = []bank{
	{29, "AirtelTigo", "atl-mobile-money", "ATL", mobileMoney},
	{28, "MTN", "mtn-mobile-money", "MTN", mobileMoney},
	{66, "Vodafone", "vod-mobile-money", "VOD", mobileMoney},
	{301, "Bank of Ghana", "bank-of-ghana", "010100", ghipss},
	{302, "Standard Chartered Bank", "standard-chartered-bank-gh", "020100", ghipss},
	{303, "Absa Bank Ghana Ltd", "absa-bank-ghana-ltd", "030100", ghipss},
	{304, "GCB Bank Limited", "gcb-bank-limited", "040100", ghipss},
	{305, "National Investment Bank Limited", "national-investment-bank-limited", "050100", ghipss},
	{306, "United Bank for Africa Ghana Limited", "united-bank-for-africa-gh", "060100", ghipss},
	{307, "ARB Apex Bank", "arb-apex-bank", "070101", ghipss},
	{308, "Agricultural Development Bank Limited", "agricultural-development-bank", "080100", ghipss},
	{309, "Société Générale Ghana Limited", "societe-generale-ghana", "090100", ghipss},
	{310, "Universal Merchant Bank Ghana Limited", "universal-merchant-bank", "100100", ghipss},
	{311, "Republic Bank (GH) Limited", "republic-bank-gh", "110100", ghipss},
	{312, "Zenith Bank Ghana", "zenith-bank-ghana", "120100", ghipss},
	{313, "Ecobank Ghana Limited", "ecobank-ghana", "130100", ghipss},
	{314, "CAL Bank Limited", "cal-bank-limited", "140100", ghipss},
	{315, "First Atlantic Bank Limited", "first-atlantic-bank", "170100", ghipss},
	{316, "Prudential Bank Limited", "prudential-bank-limited", "180100", ghipss},
	{317, "Stanbic Bank Ghana Limited", "stanbic-bank-ghana", "190100", ghipss},
	{318, "FBNBank Ghana Limited", "fbnbank-ghana", "200100", ghipss},
	{319, "Bank of Africa Ghana", "bank-of-africa-ghana", "210100", ghipss},
	{320, "Guaranty Trust Bank (Ghana) Limited", "guaranty-trust-bank-gh", "230100", ghipss},
	{321, "Fidelity Bank Ghana Limited", "fidelity-bank-ghana", "240100", ghipss},
	{322, "Access Bank", "access-bank-gh", "280100", ghipss},
	{323, "First National Bank Ghana Limited", "first-national-bank-gh", "330100", ghipss},
	{324, "Consolidated Bank Ghana Limited", "consolidated-bank-ghana", "340100", ghipss},
	{325, "OmniBSIC Bank", "omnibsic-bank", "360100", ghipss},
}

// The types of banks and recipients.
const (
	mobileMoney = "mobile_money"
	ghipss      = "ghipss"
)

// recipient is an account that transfers may go to.
type recipient struct {
	code, kind, name, account, bank string
}

// bankOf finds a bank by its code.
func bankOf(code string) (bank, bool) {
	for _, b := range banks {
		if b.code == code {
			return b, true
		}
	}
	return bank{}, false
}

// wallets are the networks of charges, with their names in authorizations.
var wallets = map[string]string{"mtn": "MTN Mobile Money", "vod": "Vodafone Cash", "atl": "AirtelTigo Money"}
