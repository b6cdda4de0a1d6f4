package app

import (
	"os"
	"strings"
	"testing"

	"github.com/makola/makola/internal/sim"
)

// Whoever reads the page can make the simulator misbehave in every way that it knows.
func TestThePageExplainsEveryFault(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../api/testing.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range sim.FaultKinds() {
		if !strings.Contains(string(page), "<tr><td><code>"+string(kind)+"</code></td><td>") {
			t.Errorf("the page does not explain %s", kind)
		}
	}
	for _, path := range []string{"/sim/v1/faults", "/sim/v1/clock", "/sim/v1/transactions", "/sim/v1/statement", "/sim/v1/float"} {
		if !strings.Contains(string(page), path) {
			t.Errorf("the page does not name %s", path)
		}
	}
}
