// Package msisdn holds Ghanaian mobile numbers and the networks that serve them. Every number has one form inside
// Makola: "233" and nine digits. Interfaces and pages convert it to their own form. All names of networks are in one
// table. The prefix of a number only suggests its network, because numbers have been portable since 2011. A network
// in the request takes precedence.
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

// Local returns the number in the form for dialling, 0XXXXXXXXX.
func (m MSISDN) Local() string {
	if !m.whole() {
		return string(m)
	}
	return "0" + string(m[len(country):])
}

// International returns the number with its country code and without a plus.
func (m MSISDN) International() string { return string(m) }

// Masked returns the number with its middle hidden, for logs and for people who may not see it.
func (m MSISDN) Masked() string {
	if !m.whole() {
		return "****"
	}
	return country + "****" + string(m[len(m)-4:])
}

// LogValue masks the number in logs.
func (m MSISDN) LogValue() slog.Value { return slog.StringValue(m.Masked()) }

func (m MSISDN) whole() bool {
	return len(m) == len(country)+nationalLen && strings.HasPrefix(string(m), country)
}

// Network is a mobile network. Its text is the code that programs use.
type Network string

// The networks of Ghana.
const (
	MTN        Network = "MTN"
	Telecel    Network = "TELECEL"
	AirtelTigo Network = "AIRTELTIGO"
)

// ErrNetwork is returned for a text that is not the name of a network. Its text follows the name of a field.
var ErrNetwork = errors.New("must be one of MTN, TELECEL, AIRTELTIGO")

// Name returns the name that people know, such as Telecel.
func (n Network) Name() string {
	switch n {
	case Telecel:
		return "Telecel"
	case AirtelTigo:
		return "AirtelTigo"
	}
	return string(n)
}

// Networks returns all networks in the order in which lists show them.
func Networks() []Network { return []Network{MTN, Telecel, AirtelTigo} }

// aliases has all names under which client programs know a network, including the names of former companies.
var aliases = map[string]Network{
	"MTN":     MTN,
	"TELECEL": Telecel, "VDF": Telecel, "VOD": Telecel, "VODAFONE": Telecel,
	"AIRTELTIGO": AirtelTigo, "ATL": AirtelTigo, "AT": AirtelTigo, "AIRTEL": AirtelTigo, "TIGO": AirtelTigo,
}

// ParseNetwork returns the network with a name, in upper or lower case.
func ParseNetwork(alias string) (Network, bool) {
	n, ok := aliases[strings.ToUpper(strings.TrimSpace(alias))]
	return n, ok
}

// prefixes maps prefixes of numbers to the networks to which they were assigned. It omits 023 (Glo) and 028
// (Expresso), whose networks are closed.
var prefixes = map[string]Network{
	"24": MTN, "25": MTN, "53": MTN, "54": MTN, "55": MTN, "59": MTN,
	"20": Telecel, "50": Telecel,
	"26": AirtelTigo, "27": AirtelTigo, "56": AirtelTigo, "57": AirtelTigo,
}

// LikelyNetwork returns the network that the number's prefix suggests. It is wrong for a number that moved to another
// network, so callers must not refuse anything because of it.
func (m MSISDN) LikelyNetwork() (Network, bool) {
	if !m.whole() {
		return "", false
	}
	n, ok := prefixes[string(m[len(country):len(country)+2])]
	return n, ok
}

// NetworkLabel returns the likely network as the label of a metric or report. It returns OTHER for an unknown prefix.
func (m MSISDN) NetworkLabel() string {
	if n, ok := m.LikelyNetwork(); ok {
		return string(n)
	}
	return "OTHER"
}
