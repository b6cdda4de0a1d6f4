package arkesel

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// The simulated Arkesel answers with the members of the documented samples.
func TestArkesel_answersAsDocumented(t *testing.T) {
	ark := New()
	s, _ := simtest.New(t, sim.Options{}, ark.Join)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	samples := simtest.Samples(t, "arkesel")
	good := `{"sender":"Kejetia","message":"hello","recipients":["233241000001"]}`
	for name, call := range map[string]struct{ key, body string }{
		"taken":                                  {apiKey, good},
		"taken with an invalid number beside it": {apiKey, `{"sender":"Kejetia","message":"hello","recipients":["233241000001","23324"]}`},
		"invalid number":                         {apiKey, `{"sender":"Kejetia","message":"hello","recipients":["23324"]}`},
		"key not known":                          {"x", good},
		"not valid":                              {apiKey, `{"sender":"a name that is too long","message":"x","recipients":["233241000001"]}`},
		"balance too low":                        {apiKey, good},
	} {
		sample, known := samples[name]
		if !known {
			t.Errorf("no sample %q", name)
			continue
		}
		ark.SetBalance(map[bool]int64{true: 0, false: 10}[name == "balance too low"])
		request, err := http.NewRequest(http.MethodPost, server.URL+"/arkesel/api/v2/sms/send", strings.NewReader(call.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("api-key", call.key)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		var got map[string]any
		if json.Unmarshal(raw, &got) != nil || answer.StatusCode != sample.Status {
			t.Errorf("%s: %d %s", name, answer.StatusCode, raw)
			continue
		}
		if rows, ok := got["data"].([]any); ok && len(rows) > 1 {
			got["data"] = rows[:1] // rows differ in their members
		}
		simtest.Shaped(t, name, got, sample.Body)
	}
	form := url.Values{"sender": {"Kejetia"}, "message": {"by a form"}, "recipients[0]": {"233241000001"}, "recipients[1]": {"233241000002"}}
	request, err := http.NewRequest(http.MethodPost, server.URL+"/arkesel/api/v2/sms/send", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("api-key", apiKey)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ark.SetBalance(10)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if all := ark.Texts(); answer.StatusCode != http.StatusOK || all[len(all)-1].Text != "by a form" {
		t.Errorf("a form: %d %+v", answer.StatusCode, all)
	}
	if n := len(ark.Texts()); n != 4 {
		t.Errorf("%d texts were taken", n)
	}
}
