package app

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromiumEnvironment is the variable with the path of the browser (scripts/chromium.sh prints it).
const chromiumEnvironment = "MAKOLA_TEST_CHROMIUM"

//go:embed testdata/axe/axe.min.js
var axe string

// browserTime bounds one test with a browser.
const browserTime = 90 * time.Second

// tab is one tab of a real browser.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu     sync.Mutex
	faults []string // requests elsewhere, violations of the policy, errors of scripts
	bytes  float64  // that came over the wire since the last reset
}

// watch notes violations of the content security policy in the page itself.
const watch = `window.violations = []; document.addEventListener("securitypolicyviolation", e => violations.push(e.violatedDirective + " " + e.blockedURI));`

// openBrowser starts a browser with one tab.
func openBrowser(t *testing.T, base string) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is slow")
	}
	binary := os.Getenv(chromiumEnvironment)
	if binary == "" {
		t.Fatalf("%s is not set; run: export %s=$(scripts/chromium.sh)", chromiumEnvironment, chromiumEnvironment)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(binary), chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(browserTime))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses root otherwise
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, browserTime)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, base: base}
	chromedp.ListenTarget(ctx, b.hear)
	b.run(network.Enable(), runtime.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdp.AddScriptToEvaluateOnNewDocument(watch).Do(ctx)
		return err
	}))
	t.Cleanup(b.check)
	return b
}

// hear takes the browser's events.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "about" && u.Scheme != "data" && !strings.HasPrefix(e.Request.URL, b.base) {
			b.faults = append(b.faults, "asked another host: "+e.Request.URL)
		}
	case *network.EventLoadingFinished:
		b.bytes += e.EncodedDataLength
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, "a script failed: "+e.ExceptionDetails.Error())
	}
}

// check fails the test on what the browser saw.
func (b *tab) check() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.t.Error(fault)
	}
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		var at, text string
		_ = chromedp.Run(b.ctx, chromedp.Location(&at), chromedp.Text("body", &text, chromedp.ByQuery))
		b.t.Fatalf("the browser at %s: %v\n%s", at, err, text)
	}
}

// open goes to a page and holds it to the content security policy.
func (b *tab) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.base + path))
	b.obeys()
}

// obeys fails the test if the page broke the policy.
func (b *tab) obeys() {
	b.t.Helper()
	var violations []string
	b.run(chromedp.Evaluate("window.violations", &violations))
	if len(violations) > 0 {
		b.t.Errorf("the policy was broken: %v", violations)
	}
}

// click clicks as a mouse does, and waits for the page that follows.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.run(chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.Click(selector, chromedp.ByQuery))
}

// see waits until an element is there.
func (b *tab) see(selector string) {
	b.t.Helper()
	b.run(chromedp.WaitVisible(selector, chromedp.ByQuery))
}

// reads waits until an element has a text.
func (b *tab) reads(selector, text string) {
	b.t.Helper()
	q, _ := json.Marshal(selector) // a string marshals
	want, _ := json.Marshal(text)
	b.run(chromedp.Poll(fmt.Sprintf("document.querySelector(%s)?.textContent.includes(%s)", q, want), nil, chromedp.WithPollingInterval(50*time.Millisecond)))
}

// look sets the size and the colours.
func (b *tab) look(width int64, theme string) {
	b.t.Helper()
	b.run(emulation.SetDeviceMetricsOverride(width, 900, 1, width < 700),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}))
}

// audit holds a page to the rules of axe-core: nothing serious or critical.
func (b *tab) audit(what string) {
	b.t.Helper()
	var report struct {
		Violations []struct {
			ID, Impact, Help string
			Nodes            []struct{ HTML, FailureSummary string }
		}
	}
	b.run(chromedp.Evaluate(axe, nil), chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"]})`, &report,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, v := range report.Violations {
		if v.Impact == "serious" || v.Impact == "critical" {
			b.t.Errorf("%s: %s (%s): %s\n%s\n%s", what, v.ID, v.Impact, v.Help, v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
		}
	}
	var wide bool
	b.run(chromedp.Evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &wide))
	if wide {
		b.t.Errorf("%s: the page scrolls sideways", what)
	}
}

// picture writes what the tab shows, the whole page.
func (b *tab) picture(file string) {
	b.t.Helper()
	var png []byte
	b.run(chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(file, png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// visitor is a browser that is signed in by the link of the first screen.
func visitor(t *testing.T) (*browsed, *tab) {
	b := browse(t)
	tab := openBrowser(t, b.base)
	tab.open(strings.TrimPrefix(b.ready.SignInURL, b.base))
	tab.click("#sign-in")
	tab.see(".sites")
	return b, tab
}
