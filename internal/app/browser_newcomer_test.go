package app_test

import (
	"regexp"
	"testing"

	"github.com/makola/makola/internal/test/browsertest"
	"github.com/makola/makola/internal/test/clocktest"
)

// firstLoad is the maximum transfer size of the first page, in bytes.
const firstLoad = 100 << 10

var printedLink = regexp.MustCompile(`Sign in\s+(http://[^/\s]+)(/first\?t=\S+)`)

// A newcomer starts the built program, opens the printed link and follows the instructions on the pages. The newcomer then sees
// a collection that is approved on a handset, its webhook, the balance and the history of the payment.
func TestBrowser_newcomer(t *testing.T) {
	t.Parallel()
	p := start(t, "makola", "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir())
	var link []string
	clocktest.Await(t, "the link, which is printed once the server is ready", func() bool {
		link = printedLink.FindStringSubmatch(p.log.String())
		return link != nil
	})
	b := browsertest.Open(t, link[1])
	b.Goto(link[2])
	b.Click("#sign-in")
	b.See(".sites")
	weight := b.Weight()
	t.Logf("two pages with everything that they need weigh %d bytes", weight)
	if weight > firstLoad {
		t.Errorf("the first pages weigh %d bytes", weight)
	}
	b.Click(`a[href="/sim"]`)
	b.Click("#collect button")
	b.Click("#phone-0240000040 .prompt button[value=approve]")
	b.Reads("#hooks", "Signature valid")
	b.Reads("#balance", "GHS 5,012.37")
	b.Click("#money tbody a")
	b.Reads("#story", "Final status: success")
	b.Reads("#story", "Webhook delivered")
	b.Obeys()
}
