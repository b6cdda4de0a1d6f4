// Package msisdn holds Ghanaian mobile numbers and the networks that serve them. Every number has one form inside
// Makola: "233" and nine digits. Transports convert it to the form that they show. Network names come from one alias
// table for the whole program. The prefix of a number only suggests its network, because numbers have been portable
// since 2011. A network in the request takes precedence.
package msisdn

import (
	"errors"
	"log/slog"
	"strings"
)

// MSISDN is a mobile number, always "233" and nine digits.
type MSISDN string

const (
	country     = "233"
	nationalLen = 9
)

// Local gives the number as people dial it, 0XXXXXXXXX.
func (m MSISDN) Local() string {
	if !m.whole() {
		return string(m)
	}
	return "0" + string(m[len(country):])
}

// International gives the number with its country code and no plus.
func (m MSISDN) International() string { return string(m) }

// Masked gives the number for a log or a screen without the right to see it.
func (m MSISDN) Masked() string {
	if !m.whole() {
		return "****"
	}
	return country + "****" + string(m[len(m)-4:])
}

// LogValue masks the number in every log line.
func (m MSISDN) LogValue() slog.Value { return slog.StringValue(m.Masked()) }

func (m MSISDN) whole() bool {
	return len(m) == len(country)+nationalLen && strings.HasPrefix(string(m), country)
}

// Network is a mobile network, in the form that Makola shows.
type Network string

// The networks of Ghana.
const (
	MTN        Network = "MTN"
	Telecel    Network = "TELECEL"
	AirtelTigo Network = "AIRTELTIGO"
)

// ErrNetwork means that a text names no network. Its message follows the name of a field.
var ErrNetwork = errors.New("must be one of MTN, TELECEL, AIRTELTIGO")

// Networks gives every network, in the order in which lists show them.
func Networks() []Network { return []Network{MTN, Telecel, AirtelTigo} }

// aliases holds every name under which client programs know a network; the
// old companies' names live on in them.
var aliases = map[string]Network{
	"MTN":     MTN,
	"TELECEL": Telecel, "VDF": Telecel, "VOD": Telecel, "VODAFONE": Telecel,
	"AIRTELTIGO": AirtelTigo, "ATL": AirtelTigo, "AT": AirtelTigo, "AIRTEL": AirtelTigo, "TIGO": AirtelTigo,
}

// ParseNetwork finds a network by any of its names, in any case.
func ParseNetwork(alias string) (Network, bool) {
	n, ok := aliases[strings.ToUpper(strings.TrimSpace(alias))]
	return n, ok
}

// prefixes maps ranges of numbers to the network that they were assigned to. 023 (Glo) and 028 (Expresso) are closed.
var prefixes = map[string]Network{
	"24": MTN, "25": MTN, "53": MTN, "54": MTN, "55": MTN, "59": MTN,
	"20": Telecel, "50": Telecel,
	"26": AirtelTigo, "27": AirtelTigo, "56": AirtelTigo, "57": AirtelTigo,
}

// LikelyNetwork guesses the network from the number's range. It may be wrong
// for a ported number, so nothing may be refused because of it.
func (m MSISDN) LikelyNetwork() (Network, bool) {
	if !m.whole() {
		return "", false
	}
	n, ok := prefixes[string(m[len(country):len(country)+2])]
	return n, ok
}

// NetworkLabel returns the likely network as the label of a metric or a report: OTHER where the number's range has none.
func (m MSISDN) NetworkLabel() string {
	if n, ok := m.LikelyNetwork(); ok {
		return string(n)
	}
	return "OTHER"
}
