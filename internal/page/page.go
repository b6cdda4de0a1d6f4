// Package page holds the common parts of all HTML pages of Makola. These are the shell around a page, and the patterns
// of many pages: lists, facts, timelines, forms with a summary of errors, confirmations, empty lists, badges, money,
// numbers and times. It also has one style sheet, one small script, htmx, and the HTTP headers of pages. It knows no
// domain: a transport passes texts, links and values, and the package escapes them.
//
// Pages work under a policy without inline script and style, ask no other host for anything, and need no script except
// for their live parts, which poll. Everything is embedded, under names that change with its content.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"
)

// Assets is the path under which a server mounts AssetServer.
const Assets = "/assets/"

//go:embed assets
var files embed.FS

// asset is one file with the name under which browsers request it.
type asset struct {
	url, kind   string
	text, small []byte // small is text compressed by gzip
}

// assets are the files by their own names.
var assets = sync.OnceValue(loadAssets)

func loadAssets() map[string]asset {
	all := map[string]asset{}
	for name, kind := range map[string]string{
		"style.css": "text/css; charset=utf-8", "makola.js": "text/javascript; charset=utf-8", "htmx.min.js": "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml",
	} {
		text, err := files.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // the program was built without its files
		}
		all[name] = asset{url: Assets + Hashed(name, text), kind: kind, text: text, small: Compress(text)}
	}
	return all
}

// Hashed returns the name of a file with a hash of its content before the extension, so that a browser may keep the file.
func Hashed(name string, text []byte) string {
	sum := sha256.Sum256(text)
	end := path.Ext(name)
	return strings.TrimSuffix(name, end) + "." + hex.EncodeToString(sum[:6]) + end
}

// Compress returns a text compressed by gzip.
func Compress(text []byte) []byte {
	var small bytes.Buffer
	w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level is valid, so this does not fail
	_, _ = w.Write(text)                                      // writing to memory does not fail
	_ = w.Close()
	return small.Bytes()
}

// AssetURL returns the address of an asset.
func AssetURL(name string) string { return assets()[name].url }

// AssetServer answers requests for assets, which a browser keeps for good.
func AssetServer() http.Handler {
	byURL := map[string]asset{}
	for _, a := range assets() {
		byURL[a.url] = a
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, known := byURL[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Vary", "Accept-Encoding")
		text := a.text
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			text = a.small
		}
		_, _ = w.Write(text) // the client has disconnected and needs no answer
	})
}

// Policy is the content security policy of every page: no inline content, nothing from other hosts, and no frames.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Secure sets the headers of a page.
func Secure(h http.Header) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// Shell is the frame around a page.
type Shell struct {
	Title   string
	Test    bool    // money here is simulated
	Viewing string  // account whose pages an operator views; empty: none
	Sites   []Link  // the sites of the visitor
	Nav     []Group // the pages of this site
	Search  string  // path of the search; empty: no search box
	Query   string  // the search text
	Visitor string  // name; empty: not signed in
	Theme   string  // light, dark, or empty: the system's
	Path    string  // of this page with its query
}

// Group is a titled group of links.
type Group struct {
	Title string
	Links []Link
}

// Link leads to a page.
type Link struct {
	Href, Text string
	Current    bool
	Key        string // keyboard shortcut, after g; empty: none
	Waiting    int    // number of items there that await the visitor
}

// keyed returns all links with a keyboard shortcut.
func (s Shell) keyed() (links []Link) {
	all := s.Sites
	for _, g := range s.Nav {
		all = append(all[:len(all):len(all)], g.Links...)
	}
	for _, l := range all {
		if l.Key != "" {
			links = append(links, l)
		}
	}
	return links
}

// htmxConfig is htmx's configuration: it writes no style and puts no error page into a page.
const htmxConfig = `{"includeIndicatorCSS":false,"history":false,"noSwap":[204,304,"4xx","5xx"]}`
