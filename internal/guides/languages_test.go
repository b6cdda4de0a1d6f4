package guides

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// harnesses make a program of each sample: it reads the body, takes headers and secret from the environment, and prints
// whether the webhook is ours.
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

// The functions that the page on webhooks prints believe what we sign, and nothing else.
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
			run := exec.Command(h.run[0], append(h.run[1:], file)...) // a sample of ours
			run.Env = append(os.Environ(), "webhook_id=msg-1", "webhook_timestamp="+tt.at, "webhook_signature="+tt.signature, "secret="+secret)
			run.Stdin = bytes.NewReader(tt.body)
			out, err := run.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != tt.want {
				t.Errorf("%s, %s: %s, %v, want %s", block[1], tt.name, out, err, tt.want)
			}
		}
	}
}
