package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
)

// A credential on the command line of a production server can be read in the list of processes. The server and the doctor refuse it
// and name the variable. Development accepts it.
func TestCredentialFlags_areRefusedInProduction(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"metrics-token", "mtn-collection-key", "mtn-collection-api-key", "mtn-disbursement-key", "mtn-disbursement-api-key",
		"hubtel-client-secret", "hubtel-sms-client-secret", "arkesel-api-key", "paystack-secret-key", "pawapay-token", "moolre-private-key", "moolre-public-key", "moolre-callback-secret", "smpp-password", "proxy"} {
		variable := "MAKOLA_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		value := "hunter2"
		if flag == "proxy" {
			value = "http://ama:hunter2@127.0.0.1:1"
		}
		for _, command := range []string{"serve", "doctor"} {
			for _, given := range [][]string{{"--" + flag, value}, {"--" + flag + "=" + value}} {
				_, errs := where{t: t}.run(exitUsage, append([]string{command, "--env", "production", "--data", t.TempDir()}, given...)...)
				if !strings.Contains(errs, "list of processes") || !strings.Contains(errs, variable) || strings.Contains(errs, "hunter2") {
					t.Errorf("%s %v: %q", command, given, errs)
				}
			}
		}
	}
}

// The test of refusals covers every setting of the credential type.
func TestCredentialFlags_areAllRefused(t *testing.T) {
	t.Parallel()
	var root commands
	parser, err := newParser(&root, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Children {
		if node.Name != "serve" {
			continue
		}
		n := 0
		for _, f := range slices.Concat(node.AllFlags(false)...) {
			if _, is := f.Target.Interface().(config.Credential); is {
				n++
			}
		}
		if n != 15 {
			t.Errorf("%d settings are credentials, 15 are tested", n)
		}
	}
}
