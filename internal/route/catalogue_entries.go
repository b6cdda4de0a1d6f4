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

// AirtimeNetwork is a network that airtime can be sent to.
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

// Bank is a bank that accounts are held at.
type Bank struct {
	Code   string // sort code, ours for ever
	ID     string // what clients send as bank_id
	Name   string
	Status string
	// Codes are the providers' own codes by provider; a provider that is
	// missing does not reach this bank.
	Codes map[string]string
}

// Catalogue is one reading of all catalogues, inactive entries among them.
type Catalogue struct {
	Networks []AirtimeNetwork
	Services []Service
	Banks    []Bank                    // by name
	Prefixes map[string]msisdn.Network // first digits of local numbers
}

// catalogue is a Catalogue as kept.
type catalogue struct {
	Catalogue
	// bankCodes is, by provider, its code for each of our bank ids.
	bankCodes map[string]map[string]string
}

func noEntry(key string) error {
	return problem.New(problem.NotFound, "catalogue_entry_not_found", "There is no entry "+key+" in the catalogue")
}
