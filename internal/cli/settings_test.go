package cli

import (
	"io"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// A variable that is set but empty counts as unset, for every setting.
func TestVariable_emptyIsUnset(t *testing.T) {
	parsed := func() (serve serveCommand, variables []string) {
		var root commands
		parser, err := newParser(&root, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse([]string{"serve"}); err != nil {
			t.Fatal(err)
		}
		_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
			if f, is := node.(*kong.Flag); is {
				variables = append(variables, f.Envs...)
			}
			return next(nil)
		})
		return root.Serve, variables
	}
	_, variables := parsed()
	if len(variables) < 60 {
		t.Fatalf("only %d flags have variables", len(variables))
	}
	for _, name := range variables {
		t.Setenv(name, "") // restores the variable at the end
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := parsed()
	for _, name := range variables {
		t.Setenv(name, "")
	}
	if got, _ := parsed(); !reflect.DeepEqual(got, want) {
		t.Errorf("with empty variables the settings are\n%+v, without any\n%+v", got, want)
	}
}

// A single address is accepted as a proxy, without a range.
func TestTrustedProxy_oneAddress(t *testing.T) {
	t.Parallel()
	var root commands
	parser, err := newParser(&root, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"serve", "--trusted-proxy=10.0.0.5,fd00::/8", "--trusted-proxy", "::1"}); err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.5/32"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("::1/128")}
	if got := root.Serve.TrustedProxies; !slices.Equal(got, want) {
		t.Errorf("the proxies are %v", got)
	}
	for text, want := range map[string]string{"10.0.0.0/8,proxy.example": "neither an IP address nor a CIDR", "10.1.2.3/8": "Did you mean 10.0.0.0/8?"} {
		if _, err := parser.Parse([]string{"serve", "--trusted-proxy=" + text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// An empty folder would mean the current folder.
func TestData_emptyIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, command := range []string{"serve", "sim", "migrate status", "jobs list"} {
		w := where{t: t, flags: []string{"--data="}}
		if _, errs := w.run(exitUsage, strings.Fields(command)...); !strings.Contains(errs, "--data must not be empty") {
			t.Errorf("makola %s --data= says %q", command, errs)
		}
	}
	t.Setenv("MAKOLA_DATA", "")
	if _, errs := (where{t: t}).run(exitUnavailable, "jobs", "list"); !strings.Contains(errs, "No database in ./makola-data.") {
		t.Errorf("without a folder a command says %q", errs)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("the current folder has %v, %v", left, err)
	}
}
