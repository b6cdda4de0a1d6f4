//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// firstDayWithin is the time that the guide promises.
const firstDayWithin = 5 * time.Minute

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// A newcomer with the built program, an empty folder and the guide has the first payout over Paystack and the first text over
// Arkesel within five minutes.
func TestGuideSamples_firstDay(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/operations/first-day.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("set -eu\ntrap 'kill $SERVER 2>/dev/null || true' EXIT\n")
	for _, block := range shellBlock.FindAllStringSubmatch(string(guide), -1) {
		script.WriteString(block[1])
	}
	path := program(t) // built before, as a newcomer has it
	run := exec.CommandContext(t.Context(), "sh", "-c", script.String())
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"), "HOME="+run.Dir, "MAKOLA_LISTEN=127.0.0.1:0", "MAKOLA_METRICS_LISTEN=off")
	run.WaitDelay = 10 * time.Second
	began := time.Now()
	out, err := run.CombinedOutput()
	took := time.Since(began)
	t.Logf("the guide took %s", took)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(run.Dir, "makola.log"))
		t.Fatalf("%v\n%s\n%s", err, out, log)
	}
	if took > firstDayWithin {
		t.Errorf("the guide took %s", took)
	}
	for _, want := range []string{"my-first-payout", "Akwaaba", "accepted: ", "1 verified, the last at", "payout of GHS 5.00 succeeded"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
