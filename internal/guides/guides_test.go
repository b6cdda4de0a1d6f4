package guides

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/makola/makola/openapi"
)

func newGuides() *Guides {
	return New(Values{URL: "http://127.0.0.1:8080", Document: openapi.Document, Key: "mk_test_demo", Sender: "the-sender", Bank: "the-bank"})
}

func pageAt(t *testing.T, g *Guides, at string) string {
	t.Helper()
	p, err := g.Page(at)
	if err != nil {
		t.Fatal(err)
	}
	if p.Status != http.StatusOK {
		t.Fatalf("%s answers %d", at, p.Status)
	}
	return string(p.Text)
}

func TestGuides_everyPageExists(t *testing.T) {
	t.Parallel()
	g := newGuides()
	paths := []string{Prefix}
	for _, e := range contents {
		paths = append(paths, Prefix+"/"+e.Name)
	}
	for _, c := range Codes {
		paths = append(paths, Prefix+"/errors/"+c.Name)
	}
	for _, at := range paths {
		text := pageAt(t, g, at)
		for _, left := range regexp.MustCompile(`@[a-z]+@|<!-- raw HTML omitted -->`).FindAllString(text, -1) {
			t.Errorf("%s has %s", at, left)
		}
		if n := strings.Count(text, "<h1"); n != 1 {
			t.Errorf("%s has %d first headings", at, n)
		}
	}
	if p, err := g.Page(Prefix + "/nothing-here"); err != nil || p.Status != http.StatusNotFound || !strings.Contains(string(p.Text), "No such page") {
		t.Errorf("an unknown page: %d, %v", p.Status, err)
	}
}

// Every link between the guides leads to an existing page and heading.
func TestGuides_linksResolve(t *testing.T) {
	t.Parallel()
	g := newGuides()
	r, err := g.rendered()
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	checked := 0
	for at, p := range r.all {
		if !strings.HasPrefix(p.Kind, "text/html") {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(string(p.Text), -1) {
			to, heading, _ := strings.Cut(m[1], "#")
			switch {
			case m[1] == "https://www.standardwebhooks.com/", to == "/openapi.json", to == "/sim":
			case to == "":
				if !strings.Contains(string(p.Text), `id="`+heading+`"`) {
					t.Errorf("%s links to %s", at, m[1])
				}
			case r.all[to].Status != http.StatusOK || heading != "" && !strings.Contains(string(r.all[to].Text), `id="`+heading+`"`):
				t.Errorf("%s links to %s", at, m[1])
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were seen", checked)
	}
}

// Each id occurs once on a page and contains no space, so that a link leads to one place.
func TestGuides_idsAreUnique(t *testing.T) {
	t.Parallel()
	r, err := newGuides().rendered()
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`\sid="([^"]*)"`)
	checked := 0
	for at, p := range r.all {
		if !strings.HasPrefix(p.Kind, "text/html") {
			continue
		}
		seen := map[string]bool{}
		for _, m := range ids.FindAllStringSubmatch(string(p.Text), -1) {
			if seen[m[1]] || m[1] == "" || strings.Contains(m[1], " ") {
				t.Errorf("%s has the id %q twice, or it is no id", at, m[1])
			}
			seen[m[1]] = true
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("only %d ids were seen", checked)
	}
}

func TestReference_hasEveryEndpoint(t *testing.T) {
	t.Parallel()
	text := pageAt(t, newGuides(), Prefix+"/reference")
	paths, _, _ := bytes.Cut(openapi.Document, []byte(`"x-webhooks"`))
	operations := regexp.MustCompile(`"operationId": "([A-Za-z]+)"`).FindAllSubmatch(paths, -1)
	if len(operations) < 35 {
		t.Fatalf("only %d operations were found", len(operations))
	}
	for _, m := range operations {
		if !strings.Contains(text, fmt.Sprintf(`id="%s"`, m[1])) {
			t.Errorf("%s is not in the reference", m[1])
		}
	}
	for _, want := range []string{`data-path="/api/v1/payment-api/checkstatus/{transaction_id}"`, `&#34;client_reference&#34;`, `12 to 36`} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in the reference", want)
		}
	}
}

// The page on webhooks names every member of every body, and every header.
func TestWebhooks_everyMemberIsNamed(t *testing.T) {
	t.Parallel()
	text := pageAt(t, newGuides(), Prefix+"/webhooks")
	_, hooks, _ := strings.Cut(string(openapi.Document), `"x-webhooks"`)
	hooks, _, _ = strings.Cut(hooks, `"components"`)
	members := regexp.MustCompile(`(?s)"[A-Za-z]+Event": \{[^{]*"required": \[([^\]]*)\]`).FindAllStringSubmatch(string(openapi.Document), -1)
	if len(members) != 5 {
		t.Fatalf("%d bodies are documented, want 5", len(members))
	}
	names := regexp.MustCompile(`"name": "(webhook-[a-z]+)"`).FindAllStringSubmatch(hooks, -1)
	for _, m := range members {
		names = append(names, regexp.MustCompile(`"([a-z_]+)"`).FindAllStringSubmatch(m[1], -1)...)
	}
	for _, name := range names {
		if !strings.Contains(text, "<code>"+name[1]+"</code>") {
			t.Errorf("the page does not name %s", name[1])
		}
	}
}

// A page needs no other host, and neither inline script nor inline style.
func TestGuides_keepTheirCSP(t *testing.T) {
	t.Parallel()
	r, err := newGuides().rendered()
	if err != nil {
		t.Fatal(err)
	}
	bad := regexp.MustCompile(`<script>| style="| on[a-z]+="|<style|src="http|href="http://`)
	for at, p := range r.all {
		if strings.HasPrefix(p.Kind, "text/html") {
			if found := bad.Find(p.Text); found != nil {
				t.Errorf("%s has %s", at, found)
			}
		}
	}
}

// A search finds sections by all of its words, headings first, and shows a query as text.
func TestSearch_findsSections(t *testing.T) {
	t.Parallel()
	g := newGuides()
	for query, want := range map[string]string{
		"verify signature": `href="/docs/webhooks#verify-the-signature"`,
		"REFUND_OF":        "/docs/reference#",
		"webhook_erased":   `href="/docs/errors/webhook_erased"`,
		"":                 "Enter a word",
		"zebra crossing":   "No page contains all words",
		`<script>"a`:       "&lt;script&gt;",
		"\xff idempotency": "idempotency",
		"a":                "30 or more sections",
	} {
		p, err := g.Search(query)
		if err != nil || p.Status != http.StatusOK || !strings.Contains(string(p.Text), want) || strings.Contains(string(p.Text), "<script>") {
			t.Errorf("%q: %v, no %q in %s", query, err, want, p.Text)
		}
	}
	if p, _ := g.Search(strings.Repeat("webhook ", 10_000)); len(p.Text) > 50_000 {
		t.Errorf("a long query is answered with %d bytes", len(p.Text))
	}
}

// The reference shows the limits of fields, the fields of responses, samples in five languages and every webhook.
func TestReference_showsResponsesAndSamples(t *testing.T) {
	t.Parallel()
	text := pageAt(t, newGuides(), Prefix+"/reference")
	for _, want := range []string{
		`<code>data.ext_transaction_id</code>`, `<code>data[].created_at</code>`, `string (date-time)`, `At most 2000 characters.`, `<a href="#collect">`,
		`<summary>curl</summary>`, `<summary>JavaScript</summary>`, `<summary>PHP</summary>`, `<summary>Python</summary>`, `<summary>Go</summary>`,
		`id="onPayout"`, `id="onCollection"`, `<code>webhook-id</code>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the reference has no %s", want)
		}
	}
}
