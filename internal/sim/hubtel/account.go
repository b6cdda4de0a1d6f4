package hubtel

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
)

// Name is Hubtel's name, as in paths, faults and the book.
const Name = "hubtel"

// Options configure the behaviour of the simulated Hubtel.
type Options struct {
	// Allowed are the addresses that may call. Empty means all.
	Allowed []netip.Prefix
}

// The account and credentials that the simulated Hubtel accepts.
const (
	clientID     = "51abcd01"
	clientSecret = "51a0c0ffee0000000000000000000003"
	posSales     = "2018001"
	prepaid      = "2018002"
	maxBody      = 64 << 10
)

// Config returns the configuration of an adapter for the simulated Hubtel at base, such as http://127.0.0.1:8080.
func Config(base string) config.Hubtel {
	base = strings.TrimSuffix(base, "/") + "/" + Name
	return config.Hubtel{
		ClientID: clientID, ClientSecret: clientSecret, POSSales: posSales, Prepaid: prepaid, Commission: prepaid,
		ReceiveURL: base + "/rmp", StatusURL: base + "/api-txnstatus", SendURL: base + "/smp", SendStatusURL: base + "/smrsc",
		VerifyURL: base + "/rnv", ServicesURL: base + "/cs", BalanceURL: base + "/trnf",
		UnpaidAfter:    10 * time.Minute,
		StatusNotKnown: notKnownReplies, SendStatusNotKnown: notKnownReplies,
		ServiceIDs: map[string]string{"mtn_broadband": broadband},
	}
}

// notKnownReplies is the response of the simulated status hosts to an unknown reference. Hubtel documents none. This
// invention has the wording of Hubtel's verification interface.
var notKnownReplies = []config.Reply{{Status: http.StatusNotFound, Code: "3000"}}

// channels maps Hubtel's names of networks to ours.
var channels = map[string]msisdn.Network{"mtn-gh": msisdn.MTN, "vodafone-gh": msisdn.Telecel, "tigo-gh": msisdn.AirtelTigo}

// banks are the GIP codes of the banks that can be paid.
var banks = map[string]bool{
	"300302": true, "300303": true, "300304": true, "300305": true, "300306": true, "300307": true, "300309": true, "300310": true,
	"300311": true, "300312": true, "300313": true, "300316": true, "300317": true, "300318": true, "300319": true, "300320": true,
	"300322": true, "300323": true, "300324": true, "300325": true, "300329": true, "300331": true, "300334": true, "300362": true,
}

// The ids of the services. They are from Hubtel's public documents, except for broadband, whose id is our own.
const (
	simNameService = "3e0841e70afc42fb97d13d19abd36384"
	broadband      = "51a0b70adba4d00000000000000000a1"
)
