package app

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Requests that no handler sees are answered in plain text by net/http, and the connection ends. If a chunked body also has a
// Content-Length, net/http removes the length, and the chunks count.
func TestPlainAnswers_areThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	a := startLocal(t, nil)
	address, key := a.doors.api.net.Addr().String(), "X-Api-Key: "+a.ready.APIKey+"\r\n"
	post := func(headers, body string) string {
		return "POST /api/v1/payment-api/momopay HTTP/1.1\r\nHost: 127.0.0.1\r\n" + key + headers + "\r\n" + body
	}
	const balance = "GET /api/v1/account-api/balance HTTP/1.1\r\nHost: 127.0.0.1\r\n"
	for name, c := range map[string]struct {
		sent   string
		status int
		json   bool
	}{
		"no HTTP":                        {"GET\r\n\r\n", 400, false},
		"no host":                        {"GET /api/v1/account-api/balance HTTP/1.1\r\n" + key + "\r\n", 400, false},
		"two lengths":                    {post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"), 400, false},
		"a length that is no number":     {post("Content-Length: two\r\n", "{}"), 400, false},
		"an unknown expectation":         {post("Expect: magic\r\nContent-Length: 2\r\n", "{}"), 417, false},
		"long headers":                   {balance + "X-Long: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", 431, false},
		"an unknown encoding":            {post("Transfer-Encoding: gzip\r\n", "{}"), 501, false},
		"two encodings":                  {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 501, false},
		"an unknown version":             {strings.Replace(balance, "HTTP/1.1", "HTTP/3.7", 1) + "\r\n", 505, false},
		"two keys":                       {balance + key + "x-api-key: mk_test_other\r\n\r\n", 401, true},
		"one key twice":                  {balance + key + "x-api-key: " + a.ready.APIKey + "\r\n\r\n", 200, true},
		"a bad length beside chunks":     {post("Content-Length: two\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400, false},
		"a smaller length beside chunks": {post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), 422, true},
	} {
		caller := dialed(t, address)
		if _, err := io.WriteString(caller.conn, c.sent); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(caller.read, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != c.status || strings.HasPrefix(string(body), "{") != c.json {
			t.Errorf("%s: answered %d %q, %v; want %d", name, answer.StatusCode, body, err, c.status)
		}
		if !c.json {
			if _, err := caller.read.ReadByte(); err != io.EOF {
				t.Errorf("%s: the connection goes on: %v", name, err)
			}
		}
	}
}
