package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// smpp returns the configuration of a command line.
func smpp(t *testing.T, flags ...string) SMPP {
	t.Helper()
	var server Server
	parser, err := kong.New(&server)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return server.SMPP
}

func TestBinds_fromVariablesAndFile(t *testing.T) {
	if none := smpp(t); none.Enabled() {
		t.Error("a bind is there that was not configured")
	}
	t.Setenv("MAKOLA_SMPP_PASSWORD", "hunter2")
	t.Setenv("MAKOLA_SMPP_NETWORKS", "MTN,TELECEL")
	path := filepath.Join(t.TempDir(), "binds.json")
	list := `[{"name":"at","address":"smsc.example:2776","tls":true,"system_id":"shop","password":"sword-fi","networks":["AIRTELTIGO"],
		"mode":"transmitter","window":50,"rate":100,"submit_ids":"hex","receipt_ids":"decimal","concatenation":"sar"},
		{"address":"other.example:1","system_id":"x"}]`
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	binds, err := smpp(t, "--smpp-address", "10.1.1.1:2775", "--smpp-system-id", "me", "--smpp-file", path).Binds()
	if err != nil || len(binds) != 3 {
		t.Fatalf("%v %v", binds, err)
	}
	first, second, third := binds[0], binds[1], binds[2]
	if first.Name != "operator" || first.Password.Reveal() != "hunter2" || !slices.Equal(first.Networks, []string{"MTN", "TELECEL"}) || first.Window != 10 || first.Mode != "transceiver" {
		t.Errorf("the bind of the flags is %+v", first)
	}
	if second.Password.Reveal() != "sword-fi" || !second.TLS || second.Rate != 100 || second.SubmitIDs != "hex" || second.Concatenation != "sar" || second.Mode != "transmitter" {
		t.Errorf("the first of the file is %+v", second)
	}
	if third.Name != "other.example:1" || third.Mode != "transceiver" || third.SubmitIDs != "text" || third.Concatenation != "udh" {
		t.Errorf("the second of the file is %+v", third)
	}
	if text := fmt.Sprintf("%+v %#v", binds, binds); strings.Contains(text, "hunter2") || strings.Contains(text, "sword-fi") {
		t.Errorf("a password shows in %s", text)
	}
}

func TestBinds_refusesInvalid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "binds.json")
	for text, want := range map[string]string{
		`{}`:                  "parse the SMPP binds",
		`[{"adress":"x"}]`:    "adress",
		`[{"system_id":"x"}]`: "address",
		`[{"address":"smsc.example","system_id":"x"}]`:                                                               "address",
		`[{"address":"smsc.example:1"}]`:                                                                             "system id",
		`[{"address":"a.example:1","system_id":"0123456789abcdef"}]`:                                                 "system id",
		`[{"address":"a.example:1","system_id":"x","password":"123456789"}]`:                                         "a password of more than 8",
		`[{"address":"a.example:1","system_id":"x","system_type":"0123456789abc"}]`:                                  "system type",
		`[{"address":"a.example:1","system_id":"x","service_type":"abcdef"}]`:                                        "service type",
		`[{"address":"a.example:1","system_id":"x","mode":"receiver"}]`:                                              "mode",
		`[{"address":"a.example:1","system_id":"x","submit_ids":"octal"}]`:                                           "form",
		`[{"address":"a.example:1","system_id":"x","concatenation":"payload"}]`:                                      "concatenation",
		`[{"address":"a.example:1","system_id":"x","networks":["MTN","GLO"]}]`:                                       "network",
		`[{"address":"a.example:1","system_id":"x","window":-1}]`:                                                    "negative",
		`[{"address":"a.example:1","system_id":"x"},{"name":"a.example:1","address":"b.example:1","system_id":"x"}]`: "two",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Server{SMPP: SMPP{File: path}}
		if _, err := s.SMPP.Binds(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is answered %v, want %q", text, err, want)
		}
		if all := strings.Join(s.Missing(), "\n"); !strings.Contains(all, want) {
			t.Errorf("production does not miss %q: %s", want, all)
		}
	}
	bind := SMPPBind{Address: "a.example:1", SystemID: "x"}
	for want, s := range map[string]SMPP{
		"validity":         {SMPPBind: bind, Validity: time.Second},
		"48h0m0s":          {SMPPBind: bind, Validity: 49 * time.Hour},
		"does not use TLS": {SMPPBind: SMPPBind{Address: "a.example:1", SystemID: "x", TLSServerName: "b.example"}},
		"cannot be read":   {SMPPBind: SMPPBind{Address: "a.example:1", SystemID: "x", TLS: true, TLSCA: path + "x"}},
		"without a certif": {SMPPBind: SMPPBind{Address: "a.example:1", SystemID: "x", TLS: true, TLSCA: path}},
	} {
		if _, err := s.Binds(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("answered %v, want %q", err, want)
		}
	}
	longest := SMPPBind{Address: "a.example:1", SystemID: "0123456789abcde", Password: "12345678", SystemType: "0123456789ab", ServiceType: "abcde"}
	if _, err := (SMPP{SMPPBind: longest}).Binds(); err != nil {
		t.Errorf("what SMPP allows is refused: %v", err)
	}
	if _, err := (SMPP{File: path + "x"}).Binds(); err == nil {
		t.Error("a missing file was no error")
	}
}
