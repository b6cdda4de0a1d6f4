//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/makola/makola/internal/test/clocktest"
)

// guidePages are the guide pages with samples, in reading order. A newcomer pastes the samples of a page into one shell.
var guidePages = []string{"quickstart", "keys", "collecting", "paying-out", "paying-many", "airtime-data", "sms-otp", "webhooks", "idempotency", "errors", "testing"}

// sample is a block of commands of a page, and the block below it, which shows the answer.
type sample struct {
	commands string
	kind     string // format of the answer: json, text, or empty if none is shown
	answer   string
}

var (
	sampleBlock = regexp.MustCompile(`(?s)<pre><code(?: class="language-([a-z]+)")?>(.*?)</code></pre>`)
	varies      = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f-]{27}|req_[0-9a-f]+|\d{4}-\d\d-\d\dT.*|https?://.*)$`)
)

// samples reads the page that the server shows.
func samples(t *testing.T, server *process, page string) (all []sample) {
	t.Helper()
	response, err := http.Get(strings.TrimSuffix(server.ready.APIURL, "/api/v1") + "/docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the page %s: %d, %v", page, response.StatusCode, err)
	}
	blocks := sampleBlock.FindAllStringSubmatchIndex(string(text), -1)
	end := 0 // end of the last block of commands
	for _, b := range blocks {
		kind, block := "", html.UnescapeString(string(text[b[4]:b[5]]))
		if b[2] >= 0 {
			kind = string(text[b[2]:b[3]])
		}
		switch {
		case kind == "sh":
			all, end = append(all, sample{commands: block}), b[1]
		case end > 0 && strings.TrimSpace(string(text[end:b[0]])) == "":
			all[len(all)-1].kind, all[len(all)-1].answer = cmpKind(kind), block
			end = 0
		}
	}
	return all
}

func cmpKind(language string) string {
	if language == "json" {
		return "json"
	}
	return "text"
}

// shell is one shell that a reader pastes into.
type shell struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func newShell(t *testing.T, environment ...string) *shell {
	t.Helper()
	run := exec.Command("sh")
	run.Env = append(os.Environ(), environment...)
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = run.Wait()
	})
	return &shell{in, bufio.NewReader(out)}
}

// paste runs commands and returns their output and exit code.
func (s *shell) paste(t *testing.T, commands string) (printed, code string) {
	t.Helper()
	const mark = "--over--"
	fmt.Fprintf(s.in, "%s\necho; echo %s $?\n", strings.TrimSpace(commands), mark)
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the shell ended after %q: %v", printed, err)
		}
		if rest, ok := strings.CutPrefix(line, mark+" "); ok {
			return strings.TrimSpace(printed), strings.TrimSpace(rest)
		}
		printed += line
	}
}

// differs returns the differences between an answer and the page. Ids, times, addresses and the text "*" may differ.
func differs(want, got any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for name := range g {
			if _, shown := w[name]; !shown {
				return fmt.Sprintf("%s.%s is not shown", at, name)
			}
		}
		for name, value := range w {
			if d := differs(value, g[name], at+"."+name); d != "" {
				return d
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for i := range w {
			if d := differs(w[i], g[i], fmt.Sprintf("%s[%d]", at, i)); d != "" {
				return d
			}
		}
	case string:
		g, ok := got.(string)
		if !ok || g != w && w != "*" && !(varies.MatchString(w) && varies.MatchString(g)) {
			return fmt.Sprintf("%s is %v, the page shows %s", at, got, w)
		}
	default:
		if want != got {
			return fmt.Sprintf("%s is %v, the page shows %v", at, got, want)
		}
	}
	return ""
}

// wrong returns the fault of a sample's output.
func (s sample) wrong(printed string) string {
	switch s.kind {
	case "text":
		if printed != strings.TrimSpace(s.answer) {
			return fmt.Sprintf("printed %q, the page shows %q", printed, s.answer)
		}
	case "json":
		var want, got any
		if err := json.Unmarshal([]byte(s.answer), &want); err != nil {
			return fmt.Sprintf("the page shows no JSON: %v: %s", err, s.answer)
		}
		if err := json.Unmarshal([]byte(printed), &got); err != nil {
			return fmt.Sprintf("printed no JSON: %q", printed)
		}
		return differs(want, got, "answer")
	default:
		if strings.Contains(printed, `"code":`) {
			return "refused: " + printed
		}
	}
	return ""
}

// Every sample of the guides works as printed. The test pastes each page into a shell and compares the output with the page.
func TestGuideSamples_printAsShown(t *testing.T) {
	t.Parallel()
	server := start(t, "makola", "serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--data", t.TempDir())
	count := 0
	for _, page := range guidePages {
		sh := newShell(t, "API="+server.ready.APIURL, "KEY="+server.ready.APIKey)
		for _, s := range samples(t, server, page) {
			count++
			printed, code := sh.paste(t, s.commands)
			asks := !strings.Contains(s.commands, " -d ") // a query may be repeated until its answer is the expected one
			if asks && s.kind == "json" && s.wrong(printed) != "" {
				last := ""
				clocktest.Await(t, "the answer that the page "+page+" shows", func() bool {
					if again, _ := sh.paste(t, s.commands); again != last {
						last = again
						t.Log(s.wrong(last))
					}
					return s.wrong(last) == ""
				})
				continue
			}
			if what := s.wrong(printed); what != "" || code != "0" {
				t.Errorf("%s: the sample\n%sends with %s: %s", page, s.commands, code, what)
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d samples were found", count)
	}
}
