package app

import (
	"os"
	"strings"
	"testing"

	"github.com/makola/makola/internal/guides"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/hubtel"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/openapi"
)

// The page offers every fault of the simulator.
func TestSimulatorPage_explainsEveryFault(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../guides/pages/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range sim.FaultKinds() {
		if !strings.Contains(string(page), "| `"+string(kind)+"` | ") {
			t.Errorf("the page does not explain %s", kind)
		}
	}
	for _, path := range []string{"/sim/v1/faults", "/sim/v1/clock", "/sim/v1/transactions", "/sim/v1/statement", "/sim/v1/float"} {
		if !strings.Contains(string(page), path) {
			t.Errorf("the page does not name %s", path)
		}
	}
}

// TestScreen_hubtelAsOnThePage: with the page or the first screen, a reader can connect a client of Hubtel to the simulator.
func TestScreen_hubtelAsOnThePage(t *testing.T) {
	t.Parallel()
	page, err := guides.New(guides.Values{Document: openapi.For("", "", ""), MTN: "http://127.0.0.1:8191/mtn"}).Page("/docs/testing")
	if err != nil {
		t.Fatal(err)
	}
	screen := strings.Join(hubtelSandbox("http://127.0.0.1:8191"), "\n")
	c := hubtel.Config("http://127.0.0.1:8191")
	for where, text := range map[string]string{"the page": string(page.Text), "the screen": screen} {
		for _, word := range []string{"http://127.0.0.1:8191/hubtel", c.ClientID, c.ClientSecret.Reveal(), c.POSSales, c.Prepaid} {
			if !strings.Contains(text, word) {
				t.Errorf("%s does not contain %s", where, word)
			}
		}
	}
}

// With the page or the first screen, a reader can connect a client of MTN's sandbox to the simulator.
func TestSimulatorPage_hasMTNCredentials(t *testing.T) {
	t.Parallel()
	page, err := guides.New(guides.Values{Document: openapi.For("", "", ""), MTN: "http://127.0.0.1:8191/mtn"}).Page("/docs/testing")
	if err != nil {
		t.Fatal(err)
	}
	screen := strings.Join(mtnSandbox("http://127.0.0.1:8191"), "\n")
	for where, text := range map[string]string{"the page": string(page.Text), "the screen": screen} {
		if !strings.Contains(text, "http://127.0.0.1:8191/mtn") {
			t.Errorf("%s does not name the base URL", where)
		}
		for _, c := range mtn.Credentials() {
			for _, word := range []string{c.Product, c.SubscriptionKey, c.User, c.APIKey} {
				if !strings.Contains(text, word) {
					t.Errorf("%s does not name %s of %s", where, word, c.Product)
				}
			}
		}
	}
}
