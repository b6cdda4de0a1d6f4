// Package guides serves the pages under /docs, for a merchant's developer and an operator. The program serves them
// itself, without an account and without another host. A guide is a Markdown file in pages. Its samples are commands
// with their answers, which a test of package app runs against a server.
//
// The codes of errors are data (codes.go). Each code has a page, which the doc_url of an error names. The reference is
// made from the OpenAPI document (document.go, reference.go), with samples in five languages (samples.go) and a form
// for each endpoint. Pages are rendered once, at the first request. search.go searches all of them. checklist.go
// renders checklists.
package guides

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/makola/makola/internal/page"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// Prefix is the beginning of the paths of all pages.
const Prefix = "/docs"

// Policy is the Content-Security-Policy of every page: its own style, script, requests and search, and nothing of
// another host.
const Policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

//go:embed pages/*.md
var pages embed.FS

//go:embed layout.html
var layoutText string

//go:embed guides.css guides.js
var assets embed.FS

// Values are an installation's values for the samples. Those of the demo account are empty in production, where the
// samples show placeholders.
type Values struct {
	URL      string // the public address, without a slash at its end
	Document []byte // the OpenAPI document, JSON
	Key      string // of the demo account
	Sender   string // id of an approved sender ID
	Bank     string // id of a bank
	Sim      string // base of the simulator's control; empty if there is none
	MTN      string // base URL of the simulator in place of MTN's sandbox; empty: there is none
}

// Page is the answer to one path.
type Page struct {
	Status  int    // 200, or 404 with its page
	Kind    string // content type
	Text    []byte
	Small   []byte // Text compressed by gzip; nil: none
	Forever bool   // the path contains a hash of the text, so that clients may keep it
}

const kindHTML = "text/html; charset=utf-8"

// entry is a page in the list that every page shows.
type entry struct {
	Name  string // of the file and the path
	Title string
}

// contents are the guides in reading order. The first guide is also served at /docs.
var contents = []entry{
	{"quickstart", "Quickstart"},
	{"keys", "Keys and addresses"},
	{"collecting", "Collecting"},
	{"paying-out", "Paying out"},
	{"paying-many", "Paying many people"},
	{"airtime-data", "Airtime and data"},
	{"sms-otp", "SMS and one-time passwords"},
	{"webhooks", "Webhooks"},
	{"idempotency", "Idempotency and retries"},
	{"errors", "Errors"},
	{"testing", "Testing"},
	{"reference", "Reference"},
	{"going-live", "Going live"},
	{"operating", "Operating"},
}

// Guides answers requests under /docs.
type Guides struct {
	rendered func() (*renderer, error)
}

// New makes the guides of one installation.
func New(v Values) *Guides {
	return &Guides{rendered: sync.OnceValues(v.render)}
}

// Page returns the page at a path under Prefix. An error is a mistake in a page or in the OpenAPI document, which a test
// finds.
func (g *Guides) Page(at string) (Page, error) {
	r, err := g.rendered()
	if err != nil {
		return Page{}, err
	}
	if p, ok := r.all[at]; ok {
		return p, nil
	}
	return r.all[notFound], nil
}

// notFound is the name of the page for an unknown path.
const notFound = ""

// render makes every page.
func (v Values) render() (*renderer, error) {
	r := &renderer{values: v, all: map[string]Page{}, assets: map[string]string{}, markdown: goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.TaskList), goldmark.WithParserOptions(parser.WithAutoHeadingID()), withChecklists())}
	var err error
	if r.layout, err = template.New("layout").Parse(layoutText); err != nil {
		return nil, fmt.Errorf("guides: parse the layout: %w", err)
	}
	if r.search, err = template.New("search").Parse(searchText); err != nil {
		return nil, fmt.Errorf("guides: parse the template of the search: %w", err)
	}
	if err := r.addAssets(); err != nil {
		return nil, err
	}
	for i, e := range contents {
		if err := r.guide(e); err != nil {
			return nil, err
		}
		if i == 0 {
			r.all[Prefix] = r.all[Prefix+"/"+e.Name]
		}
	}
	for _, c := range Codes {
		if err := r.add("errors/"+c.Name, c.Name, http.StatusOK, c.page()); err != nil {
			return nil, err
		}
	}
	const lost = "# No such page\n\nThe list of all pages is on the left, or at the top. The interface itself is under `/api/v1`.\n"
	if err := r.add("", "No such page", http.StatusNotFound, lost); err != nil {
		return nil, err
	}
	return r, nil
}

// addAssets adds the style sheet and the script. The path of each has a hash of its content.
func (r *renderer) addAssets() error {
	for name, kind := range map[string]string{"guides.css": "text/css; charset=utf-8", "guides.js": "text/javascript; charset=utf-8"} {
		text, err := assets.ReadFile(name)
		if err != nil {
			return fmt.Errorf("guides: %w", err)
		}
		at := Prefix + "/" + page.Hashed(name, text)
		r.assets[path.Ext(name)] = at
		r.all[at] = Page{http.StatusOK, kind, text, page.Compress(text), true}
	}
	return nil
}

// renderer collects the pages of one installation.
type renderer struct {
	values   Values
	layout   *template.Template
	search   *template.Template
	markdown goldmark.Markdown
	assets   map[string]string // paths by the end of the name, such as ".css"
	all      map[string]Page   // by path
	index    []section         // of all pages, in their order
}

// guide adds the page of one entry.
func (r *renderer) guide(e entry) error {
	if e.Name == "reference" {
		return r.reference(e.Title)
	}
	text, err := pages.ReadFile("pages/" + e.Name + ".md")
	if err != nil {
		return fmt.Errorf("guides: %w", err)
	}
	return r.add(e.Name, e.Title, http.StatusOK, string(text))
}

// add renders one page of Markdown.
func (r *renderer) add(name, title string, status int, markdown string) error {
	var body bytes.Buffer
	if err := r.markdown.Convert(indented([]byte(r.values.fill(markdown))), &body); err != nil {
		return fmt.Errorf("guides: %s: %w", name, err)
	}
	return r.lay(name, title, status, template.HTML(body.String())) // made of our own files; Markdown drops HTML
}

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)\n```")

// indented formats JSON answers over several lines. In the files each is one line.
func indented(markdown []byte) []byte {
	return jsonBlock.ReplaceAllFunc(markdown, func(block []byte) []byte {
		var out bytes.Buffer
		if json.Indent(&out, jsonBlock.FindSubmatch(block)[1], "", "  ") != nil {
			return block
		}
		return slices.Concat([]byte("```json\n"), out.Bytes(), []byte("\n```"))
	})
}

// scrolled makes wide tables scroll on a narrow screen, also by keyboard.
var scrolled = strings.NewReplacer("<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`, "</table>", "</table></div>")

// lay stores a page with its body in the layout.
func (r *renderer) lay(name, title string, status int, body template.HTML) error {
	text, err := r.laid(name, title, "", body)
	if err != nil {
		return err
	}
	at := path.Join(Prefix, name)
	if status == http.StatusNotFound {
		at = notFound
	} else {
		r.index = append(r.index, sections(at, title, string(body))...)
	}
	r.all[at] = Page{Status: status, Kind: kindHTML, Text: text, Small: page.Compress(text)}
	return nil
}

// laid returns the body of a page in the layout. query is the text of the search field.
func (r *renderer) laid(name, title, query string, body template.HTML) ([]byte, error) {
	body = template.HTML(scrolled.Replace(string(body)))
	var out bytes.Buffer
	err := r.layout.Execute(&out, map[string]any{
		"Title": title, "Body": body, "Contents": contents, "Here": strings.SplitN(name, "/", 2)[0], "Demo": r.values.Key,
		"Style": r.assets[".css"], "Script": r.assets[".js"], "Query": query, "MostQuery": mostQuery,
	})
	if err != nil {
		return nil, fmt.Errorf("guides: %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// simulatedMTN is the default address of the simulated MTN.
const simulatedMTN = "http://127.0.0.1:8090/mtn"

// fill replaces the placeholders of a text with the installation's values.
func (v Values) fill(text string) string {
	or := func(value, instead string) string {
		if value == "" {
			return instead
		}
		return value
	}
	return strings.NewReplacer(
		"@url@", v.URL, "@api@", v.URL+"/api/v1", "@docs@", v.URL+Prefix, "@key@", or(v.Key, "mk_test_..."),
		"@sender@", or(v.Sender, "ID_OF_A_SENDER_ID"), "@bank@", or(v.Bank, "ID_OF_A_BANK"), "@sim@", or(v.Sim, v.URL+"/sim/v1"), "@mtn@", or(v.MTN, simulatedMTN), "@hubtel@", strings.TrimSuffix(or(v.MTN, simulatedMTN), "/mtn")+"/hubtel", // one simulator has both
		"@codes@", codeTable(), "@reasons@", reasonTable(),
	).Replace(text)
}

// DocURL returns the address of the page of an error's code.
func DocURL(base, code string) string { return base + Prefix + "/errors/" + code }
