package msisdn

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestMSISDN_forms(t *testing.T) {
	m := MSISDN("233241234567")
	if m.Local() != "0241234567" || m.International() != "233241234567" || m.Masked() != "233****4567" {
		t.Errorf("%s %s %s", m.Local(), m.International(), m.Masked())
	}
	if MSISDN("12").Masked() != "****" || MSISDN("").Local() != "" {
		t.Error("a broken number is not kept safe")
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "phone", m)
	if strings.Contains(out.String(), "241234567") || !strings.Contains(out.String(), "233****4567") {
		t.Errorf("the log line is %q", out.String())
	}
}

func TestNetwork_aliases(t *testing.T) {
	for alias, want := range map[string]Network{
		"mtn": MTN, "MTN": MTN, "Telecel": Telecel, "vdf": Telecel, "VOD": Telecel, "Vodafone": Telecel,
		"AirtelTigo": AirtelTigo, "ATL": AirtelTigo, "at": AirtelTigo, "AIRTEL": AirtelTigo, "tigo": AirtelTigo, " MTN ": MTN,
	} {
		if got, ok := ParseNetwork(alias); !ok || got != want {
			t.Errorf("ParseNetwork(%q) = %q, %v", alias, got, ok)
		}
	}
	for _, alias := range []string{"", "GLO", "BANK", "MTN Ghana", "MT"} {
		if got, ok := ParseNetwork(alias); ok {
			t.Errorf("ParseNetwork(%q) = %q", alias, got)
		}
	}
	for _, n := range Networks() {
		if got, ok := ParseNetwork(string(n)); !ok || got != n {
			t.Errorf("%q is not its own alias", n)
		}
	}
	if n, ok := MSISDN("233200000000").LikelyNetwork(); !ok || n != Telecel {
		t.Errorf("020 is %q", n)
	}
	if n, ok := MSISDN("233230000000").LikelyNetwork(); ok {
		t.Errorf("023 is %q", n)
	}
}

// People see the names of networks, and every name is read as its network.
func TestNetwork_names(t *testing.T) {
	for network, name := range map[Network]string{MTN: "MTN", Telecel: "Telecel", AirtelTigo: "AirtelTigo", "": ""} {
		if network.Name() != name {
			t.Errorf("%q is %q, want %q", network, network.Name(), name)
		}
		if read, ok := ParseNetwork(name); network != "" && (!ok || read != network) {
			t.Errorf("%q is read as %q", name, read)
		}
	}
}
