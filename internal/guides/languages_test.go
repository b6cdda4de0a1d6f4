package guides

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/openapi"
)

// harnesses make a program from each sample. It reads the body, takes the headers and the secret from the environment, and prints
// whether the signature is valid.
var harnesses = map[string]struct {
	run           []string
	before, after string
}{
	"verify.go": {[]string{"go", "run"}, `package main
import ("crypto/hmac"; "crypto/sha256"; "encoding/base64"; "fmt"; "io"; "net/http"; "os"; "strconv"; "strings"; "time")
`, `
func main() {
	body, _ := io.ReadAll(os.Stdin)
	header := http.Header{}
	for _, name := range []string{"id", "timestamp", "signature"} { header.Set("webhook-"+name, os.Getenv("webhook_"+name)) }
	fmt.Print(Verify(header, body, os.Getenv("secret")))
}`},
	"verify.js": {[]string{"node"}, "", `
const headers = {};
for (const name of ["id", "timestamp", "signature"]) headers["webhook-" + name] = process.env["webhook_" + name];
process.stdout.write(String(verify(headers, require("node:fs").readFileSync(0), process.env.secret)));`},
	"verify.py": {[]string{"python3"}, "", `
import os, sys
headers = {"webhook-" + name: os.environ["webhook_" + name] for name in ("id", "timestamp", "signature")}
sys.stdout.write(str(verify(headers, sys.stdin.buffer.read(), os.environ["secret"])).lower())`},
	"verify.php": {[]string{"php"}, "<?php\n", `
$headers = [];
foreach (['id', 'timestamp', 'signature'] as $name) { $headers["webhook-$name"] = getenv("webhook_$name"); }
echo verify($headers, stream_get_contents(STDIN), getenv('secret')) ? 'true' : 'false';`},
}

// The functions on the page about webhooks accept our signatures and no others.
func TestSamples_verifySignatures(t *testing.T) {
	t.Parallel()
	text, err := pages.ReadFile("pages/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```[a-z]+ (verify\\.[a-z]+)\n(.*?)^```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != len(harnesses) {
		t.Fatalf("the page has %d samples, want %d", len(blocks), len(harnesses))
	}
	key := []byte("a key of the test, 32 bytes long")
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	body := []byte(`{"amount":"5.00","charges":"0.10","status":"success","transaction_id":"ref <&> \u00e9"}`)
	sign := func(at string) string {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "msg-1.%s.%s", at, body)
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	old := strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)
	other := "v1," + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 32))
	for _, block := range blocks {
		h := harnesses[block[1]]
		file := filepath.Join(t.TempDir(), block[1])
		if err := os.WriteFile(file, []byte(h.before+block[2]+h.after), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := exec.LookPath(h.run[0]); err != nil {
			t.Fatalf("%s is not here; scripts/languages.sh gets it", h.run[0])
		}
		for _, tt := range []struct {
			name, at, signature string
			body                []byte
			want                string
		}{
			{"ours", now, sign(now), body, "true"},
			{"while the secret is changed", now, other + " " + sign(now), body, "true"},
			{"another key", now, other, body, "false"},
			{"another body", now, sign(now), append(bytes.Clone(body), ' '), "false"},
			{"an hour old", old, sign(old), body, "false"},
			{"no signature", now, "", body, "false"},
			{"a time that is none", "soon", sign("soon"), body, "false"},
		} {
			run := exec.Command(h.run[0], append(h.run[1:], file)...) // runs a sample of ours
			run.Env = append(os.Environ(), "webhook_id=msg-1", "webhook_timestamp="+tt.at, "webhook_signature="+tt.signature, "secret="+secret)
			run.Stdin = bytes.NewReader(tt.body)
			out, err := run.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != tt.want {
				t.Errorf("%s, %s: %s, %v, want %s", block[1], tt.name, out, err, tt.want)
			}
		}
	}
}

// programs make a program from the reference's sample in each language.
var programs = map[string]struct {
	run           []string
	file          string
	before, after string
}{
	"curl":       {[]string{"sh"}, "sample.sh", "", ""},
	"JavaScript": {[]string{"node"}, "sample.mjs", "", ""},
	"PHP":        {[]string{"php"}, "sample.php", "<?php\n", ""},
	"Python":     {[]string{"python3"}, "sample.py", "", ""},
	"Go": {[]string{"go", "run"}, "sample.go", `package main
import ("fmt"; "io"; "net/http"; "os"; "strings")
var _ = strings.NewReader
func main() { if err := send(); err != nil { fmt.Println(err); os.Exit(1) } }
func send() error {
`, "\n}\n"},
}

// A sample in the reference sends the request of its endpoint: its method, its path, the key and the body of the example. In each
// language the samples of one endpoint of each shape are run. In Go, which must be compiled, two endpoints are run.
func TestSamples_sendTheRequest(t *testing.T) {
	t.Parallel()
	type sent struct {
		method, path, key string
		body              any
	}
	got := make(chan sent, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := sent{method: r.Method, path: r.URL.Path, key: r.Header.Get("x-api-key")}
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &s.body)
		got <- s
		_, _ = io.WriteString(w, `{"message": "received"}`)
	}))
	defer server.Close()
	var d document
	if err := json.Unmarshal(openapi.Document, &d); err != nil {
		t.Fatal(err)
	}
	groups, err := d.groups(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]bool{"collect": true, "balance": true}
	ran, shapes := map[string]int{}, map[string]bool{}
	for _, g := range groups {
		for _, o := range g.Operations {
			shape := fmt.Sprint(o.Method, strings.Count(o.Path, "{"), len(o.Example) > 2, strings.Contains(o.Example, "["))
			if shapes[shape] && !compiled[o.ID] {
				continue
			}
			shapes[shape] = true
			for _, s := range o.Samples {
				if s.Language == "Go" && !compiled[o.ID] {
					continue
				}
				p := programs[s.Language]
				file := filepath.Join(t.TempDir(), p.file)
				if err := os.WriteFile(file, []byte(p.before+s.Text+p.after), 0o600); err != nil {
					t.Fatal(err)
				}
				run := exec.Command(p.run[0], append(p.run[1:], file)...) // runs a sample of ours
				run.Env = append(os.Environ(), "MAKOLA_KEY=mk_test_sample")
				out, err := run.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "received") {
					t.Errorf("%s in %s: %v\n%s", o.ID, s.Language, err, out)
					continue
				}
				var body any
				if o.Example != "" {
					if err := json.Unmarshal([]byte(o.Example), &body); err != nil {
						t.Fatal(err)
					}
				}
				if s := <-got; s.method != o.Method || s.key != "mk_test_sample" || strings.Count(s.path, "/") != strings.Count(o.Path, "/") || !reflect.DeepEqual(s.body, body) {
					t.Errorf("%s sent %+v", o.ID, s)
				}
				ran[s.Language]++
			}
		}
	}
	if ran["Go"] != 2 || ran["PHP"] < 7 {
		t.Errorf("%v samples ran", ran)
	}
}
