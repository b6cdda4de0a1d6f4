package route

import (
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// The states of a catalogue entry.
const (
	Active   = "active"
	Inactive = "inactive"
)

// AirtimeNetwork is a network to which airtime can be sent.
type AirtimeNetwork struct {
	ID      string // what clients send as network_id
	Network msisdn.Network
	Name    string
	Status  string // Active or Inactive
}

// Service is a kind of data package, bought for a number of one network.
type Service struct {
	Key     string // ours for ever, and what adapters know it by: "mtn_data"
	ID      string // what clients send as service_id
	Name    string
	Network msisdn.Network
	Status  string
}

// Bank is a bank whose accounts can be paid.
type Bank struct {
	Code   string // our permanent key of the bank
	ID     string // what clients send as bank_id
	Name   string
	Status string
	// Codes has the providers' own codes of the bank, by provider. A provider without a code does not reach the bank.
	Codes map[string]string
}

// Catalogue has all catalogues, including inactive entries.
type Catalogue struct {
	Networks []AirtimeNetwork
	Services []Service
	Banks    []Bank                    // by name
	Prefixes map[string]msisdn.Network // prefixes of local numbers
}

// catalogue is a Catalogue as it is cached.
type catalogue struct {
	Catalogue
	// bankCodes has each provider's codes by our bank ids.
	bankCodes map[string]map[string]string
}

func noEntry(key string) error {
	return problem.New(problem.NotFound, "catalogue_entry_not_found", "There is no entry "+key+" in the catalogue")
}
