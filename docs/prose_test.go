package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// mostWords is the largest number of words in a sentence of a document.
const mostWords = 25

// plain are the documents that readers use at first reading or in a hurry.
var plain = regexp.MustCompile(`^(README\.md|SECURITY\.md|CONTRIBUTING\.md|docs/(operations|interface|ledger|providers|performance)\.md|docs/(operations|runbooks)/.*|internal/guides/pages/.*)$`)

var (
	printedTable = regexp.MustCompile(`(?s)<!-- printed:.*?<!-- end -->`)
	fenced       = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inCode       = regexp.MustCompile("`[^`]*`")
	linkTarget   = regexp.MustCompile(`\]\([^)]*\)`)
	blockStart   = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	sentence     = regexp.MustCompile(`[.:;!?]["')*]*(\s+|$)`)
)

// sentences returns the sentences of a document. Code counts as one word, and tables, headings and printed parts are left out.
func sentences(text string) (all []string) {
	text = fenced.ReplaceAllString(printedTable.ReplaceAllString(text, ""), "\n")
	text = linkTarget.ReplaceAllString(inCode.ReplaceAllString(text, "code"), "]")
	var block strings.Builder
	end := func() {
		for _, s := range sentence.Split(block.String(), -1) {
			if s = strings.TrimSpace(s); s != "" {
				all = append(all, s)
			}
		}
		block.Reset()
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "|"):
			end()
		default:
			if blockStart.MatchString(line) {
				end()
			}
			block.WriteString(blockStart.ReplaceAllString(line, "") + " ")
		}
	}
	end()
	return all
}

// A sentence of a document that is read in a hurry has at most 25 words.
func TestSentences_areShort(t *testing.T) {
	long := strings.Repeat("word ", mostWords+1)
	if got := sentences("# A heading\n\n" + long + ". Short `code with words`.\n\n- one\n- two\n"); len(got) != 4 || len(strings.Fields(got[0])) != mostWords+1 {
		t.Fatalf("a sample has the sentences %q", got)
	}
	for _, name := range documents(t) {
		if !plain.MatchString(name) {
			continue
		}
		for _, s := range sentences(read(t, name)) {
			if n := len(strings.Fields(s)); n > mostWords {
				t.Errorf("%s: a sentence of %d words: %s", name, n, s)
			}
		}
	}
}

// A decision has three parts: the context, the decision, the consequence.
func TestDecisions_haveThreeParts(t *testing.T) {
	_, list, _ := strings.Cut(read(t, "docs/decisions.md"), "\n### ")
	for decision := range strings.SplitSeq("\n"+list, "\n### ") {
		name, text, _ := strings.Cut(strings.TrimSpace(decision), "\n")
		last := -1
		for _, part := range []string{"**Context.**", "**Decision.**", "**Consequence.**"} {
			if at := strings.Index(text, part); at > last && strings.Count(text, part) == 1 {
				last = at
				continue
			}
			t.Errorf("docs/decisions.md, %s: %s is not there once, in its place", name, part)
		}
	}
}
