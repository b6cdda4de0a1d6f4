// Package browsertest drives a real Chromium in tests: clicks are input events of the browser, and every page that it
// opens is held to three rules. It requests nothing from another host, does not violate the content security policy,
// and has no failing script. scripts/chromium.sh finds or installs the browser.
package browsertest

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
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

// Environment is the variable with the path of the browser (scripts/chromium.sh prints it).
const Environment = "MAKOLA_TEST_CHROMIUM"

//go:embed axe/axe.min.js
var axe string

// browserTime is the maximum time of one test with a browser. The longest test takes 50 s on two cores if it
// runs alone.
const browserTime = 6 * time.Minute

// Tab is one tab of a real browser.
type Tab struct {
	t    testing.TB
	ctx  context.Context
	base string

	mu     sync.Mutex
	faults []string // requests elsewhere, violations of the policy, errors of scripts
	bytes  float64  // bytes received since the last reset
}

// watch notes violations of the content security policy in the page itself.
const watch = `window.violations = []; document.addEventListener("securitypolicyviolation", e => violations.push(e.violatedDirective + " " + e.blockedURI));`

// Open starts a browser with one tab.
func Open(t testing.TB, base string) *Tab {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is slow")
	}
	binary, err := exec.LookPath(cmp.Or(os.Getenv(Environment), "chromium"))
	if err != nil {
		t.Fatalf("there is no Chromium; run: export %s=$(scripts/chromium.sh)", Environment)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(binary), chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(browserTime))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // as root, Chromium starts only without its sandbox
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	if err := chromedp.Run(ctx); err != nil { // without the time limit, so that a failed test can still show the page
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, browserTime)
	t.Cleanup(cancel)
	b := &Tab{t: t, ctx: ctx, base: base}
	chromedp.ListenTarget(ctx, b.hear)
	b.Run(network.Enable(), runtime.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdp.AddScriptToEvaluateOnNewDocument(watch).Do(ctx)
		return err
	}))
	t.Cleanup(b.check)
	return b
}

// hear handles the browser's events.
func (b *Tab) hear(event any) {
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

// Weight returns the number of bytes received since the last reset.
func (b *Tab) Weight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(b.bytes)
}

// Forgive discards the violations so far, after a test stopped the server.
func (b *Tab) Forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = nil
}

// Context returns the context of the tab, which can open another tab.
func (b *Tab) Context() context.Context { return b.ctx }

// check fails the test on violations that the browser reported.
func (b *Tab) check() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.t.Error(fault)
	}
}

// Run runs actions of chromedp, and fails the test with the text of the page.
func (b *Tab) Run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the browser shows:\n%s", err, b.shows())
	}
}

// Goto goes to a page and holds it to the content security policy.
func (b *Tab) Goto(path string) {
	b.t.Helper()
	b.Run(chromedp.Navigate(b.base + path))
	b.Obeys()
}

// Obeys fails the test if the page broke the policy.
func (b *Tab) Obeys() {
	b.t.Helper()
	var violations []string
	b.Run(chromedp.Evaluate("window.violations", &violations))
	if len(violations) > 0 {
		b.t.Errorf("the policy was broken: %v", violations)
	}
}

// Click clicks in the middle of an element as a mouse does. It waits for the element and for the loaded page, because an earlier click can
// be lost. In a text of several lines it clicks in the first line, because the middle of all lines may be next to the text.
func (b *Tab) Click(selector string) {
	b.t.Helper()
	const middle = `(q => { const e = document.querySelector(q); if (!e || !e.checkVisibility() || document.readyState !== "complete") return null;
		e.scrollIntoView({block: "center", behavior: "instant"}); const r = e.getClientRects()[0]; return [r.x + r.width / 2, r.y + r.height / 2]; })(%s)`
	var at []float64
	b.until(selector, func() bool {
		at = nil
		return b.evaluates(fmt.Sprintf(middle, literal(selector)), &at) && len(at) == 2
	})
	b.Run(chromedp.MouseClickXY(at[0], at[1]))
}

// Fill sets fields to texts, as pairs of a selector and a text, and reports the changes to the page as typing does.
func (b *Tab) Fill(pairs ...string) {
	b.t.Helper()
	const set = `(q => { const e = document.querySelector(q); e.closest("details")?.setAttribute("open", ""); e.value = %s;
		for (const name of ["input", "change"]) e.dispatchEvent(new Event(name, {bubbles: true})); return e.value; })(%s)`
	for i := 0; i+1 < len(pairs); i += 2 {
		b.until(pairs[i], func() bool {
			var there bool
			return b.evaluates(fmt.Sprintf("!!document.querySelector(%s)", literal(pairs[i])), &there) && there
		})
		var value string
		if !b.evaluates(fmt.Sprintf(set, literal(pairs[i+1]), literal(pairs[i])), &value) || value != pairs[i+1] {
			b.t.Fatalf("%s has %q, not %q; the browser shows:\n%s", pairs[i], value, pairs[i+1], b.shows())
		}
	}
}

// See waits until an element is visible.
func (b *Tab) See(selector string) {
	b.t.Helper()
	b.until(selector, func() bool {
		var there bool
		return b.evaluates(fmt.Sprintf("!!document.querySelector(%s)?.checkVisibility()", literal(selector)), &there) && there
	})
}

// Ready waits until the page and its scripts are loaded.
func (b *Tab) Ready() {
	b.t.Helper()
	b.until("the loaded page", func() bool {
		var state string
		return b.evaluates("document.readyState", &state) && state == "complete"
	})
}

// Reads waits until an element has a text.
func (b *Tab) Reads(selector, text string) {
	b.t.Helper()
	b.until(selector+" to read "+text, func() bool {
		var so bool
		return b.evaluates(fmt.Sprintf("!!document.querySelector(%s)?.textContent.includes(%s)", literal(selector), literal(text)), &so) && so
	})
}

// until repeats a check, even while the browser loads another page.
func (b *Tab) until(what string, so func() bool) {
	b.t.Helper()
	for !so() {
		if err := chromedp.Sleep(20 * time.Millisecond).Do(b.ctx); err != nil {
			b.t.Fatalf("%s did not come; the browser shows:\n%s", what, b.shows())
		}
	}
}

// evaluates reports whether an expression could be evaluated, which fails while a page unloads.
func (b *Tab) evaluates(expression string, into any) bool {
	return chromedp.Run(b.ctx, chromedp.Evaluate(expression, into)) == nil
}

// shows returns the address and the text of the page, for a failed test.
func (b *Tab) shows() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), 5*time.Second)
	defer cancel()
	var at, text string
	if err := chromedp.Run(ctx, chromedp.Location(&at), chromedp.Text("body", &text, chromedp.ByQuery)); err != nil {
		return err.Error()
	}
	return at + "\n" + text
}

// literal is a string of JavaScript.
func literal(text string) string {
	quoted, _ := json.Marshal(text) // a string can always be marshalled
	return string(quoted)
}

// Look sets the size and the colours.
func (b *Tab) Look(width int64, theme string) {
	b.t.Helper()
	b.Run(emulation.SetDeviceMetricsOverride(width, 900, 1, width < 700),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}))
}

// Audit checks a page with axe-core. It fails the test for serious and critical violations. So it leaves out the rule region, which
// looks at every element and finds moderate violations only, and the loading of media, of which the pages have none.
func (b *Tab) Audit(what string) {
	b.t.Helper()
	b.audit(what, `{resultTypes: ["violations"], preload: false, rules: {region: {enabled: false}}}`)
}

// AuditColours checks the colours of an audited page in another theme.
func (b *Tab) AuditColours(what string) {
	b.t.Helper()
	b.audit(what, `{resultTypes: ["violations"], runOnly: {type: "rule", values: ["color-contrast", "link-in-text-block"]}}`)
}

func (b *Tab) audit(what, options string) {
	b.t.Helper()
	var report struct {
		Violations []struct {
			ID, Impact, Help string
			Nodes            []struct{ HTML, FailureSummary string }
		}
	}
	var there bool
	if b.Run(chromedp.Evaluate("!!window.axe", &there)); !there {
		b.Run(chromedp.Evaluate(axe, nil))
	}
	b.Run(chromedp.Evaluate("axe.run(document, "+options+")", &report,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, v := range report.Violations {
		if v.Impact == "serious" || v.Impact == "critical" {
			b.t.Errorf("%s: %s (%s): %s\n%s\n%s", what, v.ID, v.Impact, v.Help, v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
		}
	}
}

// Fits fails the test if the page scrolls sideways.
func (b *Tab) Fits(what string) {
	b.t.Helper()
	var wide bool
	b.Run(chromedp.Evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &wide))
	if wide {
		b.t.Errorf("%s: the page scrolls sideways", what)
	}
}

// Picture writes a picture of the whole page.
func (b *Tab) Picture(file string) {
	b.t.Helper()
	var png []byte
	b.Run(chromedp.FullScreenshot(&png, 100))
	b.write(file, png)
}

// View writes a picture of the visible part of the page.
func (b *Tab) View(file string) {
	b.t.Helper()
	var png []byte
	b.Run(chromedp.CaptureScreenshot(&png))
	b.write(file, png)
}

func (b *Tab) write(file string, png []byte) {
	b.t.Helper()
	if err := os.WriteFile(file, png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
