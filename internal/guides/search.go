package guides

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

//go:embed search.html
var searchText string

// The limits of a search.
const (
	mostQuery = 100 // bytes of a query that are used
	mostFound = 30  // sections in the answer
	excerpt   = 160 // bytes of a section's text in the answer
)

// SearchPath answers a search of all pages for its parameter q.
const SearchPath = Prefix + "/search"

// section is a heading with the text below it, up to the next heading.
type section struct {
	page, heading string // titles
	at            string // the path with the heading's id
	text          string
	words         string // all of it in lower case
}

var (
	headings = regexp.MustCompile(`<h[123](?: id="([^"]*)")?>`)
	unread   = regexp.MustCompile(`(?s)<(form|nav)\b.*?</(form|nav)>`)
	markup   = regexp.MustCompile(`<[^>]*>`)
)

// sections divides the body of a page at its headings.
func sections(at, title, body string) []section {
	body = unread.ReplaceAllString(body, " ")
	var all []section
	places := headings.FindAllStringSubmatchIndex(body, -1)
	for i, place := range places {
		end := len(body)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		heading, text, _ := strings.Cut(body[place[1]:end], "</h")
		_, text, _ = strings.Cut(text, ">")
		s := section{page: title, heading: plain(heading), at: at, text: plain(text)}
		if place[2] >= 0 && i > 0 {
			s.at += "#" + body[place[2]:place[3]]
		}
		s.words = strings.ToLower(s.page + " " + s.heading + " " + s.text)
		all = append(all, s)
	}
	return all
}

// plain returns the text of a piece of HTML, with single spaces.
func plain(text string) string {
	return strings.Join(strings.Fields(html.UnescapeString(markup.ReplaceAllString(text, " "))), " ")
}

// find returns the sections that contain every word of the query: first those whose heading contains them all.
func find(all []section, query string) []section {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil
	}
	holds := func(text string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	}
	var found []section
	for _, s := range all {
		if holds(s.words) {
			found = append(found, s)
		}
	}
	rank := func(s section) int {
		if holds(strings.ToLower(s.heading)) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(found, func(a, b section) int { return cmp.Compare(rank(a), rank(b)) })
	return found[:min(len(found), mostFound)]
}

// around returns the part of a section's text at the first word of the query.
func (s section) around(query string) string {
	word, _, _ := strings.Cut(strings.ToLower(query), " ")
	from := max(0, strings.Index(strings.ToLower(s.text), word)-excerpt/4)
	if from > len(s.text) { // a text in lower case can be longer
		from = 0
	}
	text := s.text[from:min(len(s.text), from+excerpt)]
	text = strings.ToValidUTF8(text, "")
	if from > 0 {
		text = "… " + text
	}
	if from+excerpt < len(s.text) {
		text += " …"
	}
	return text
}

// Search returns the page with the sections that contain every word of a query.
func (g *Guides) Search(query string) (Page, error) {
	r, err := g.rendered()
	if err != nil {
		return Page{}, err
	}
	query = strings.ToValidUTF8(query[:min(len(query), mostQuery)], "")
	query = strings.Join(strings.Fields(query), " ")
	type result struct{ Page, Heading, At, Text string }
	var results []result
	for _, s := range find(r.index, query) {
		results = append(results, result{s.page, s.heading, s.at, s.around(query)})
	}
	var body bytes.Buffer
	if err := r.search.Execute(&body, map[string]any{"Query": query, "Results": results, "Most": mostFound}); err != nil {
		return Page{}, fmt.Errorf("guides: render the search: %w", err)
	}
	text, err := r.laid("search", "Search", query, template.HTML(body.String())) // made by html/template
	return Page{Status: http.StatusOK, Kind: kindHTML, Text: text}, err
}
