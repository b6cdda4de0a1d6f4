package hubtelsms

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// The simulated Hubtel SMS answers with the members of the documented samples. Two refusals come with HTTP 201.
func TestHubtelSMS_answersAsDocumented(t *testing.T) {
	hub := New()
	s, _ := simtest.New(t, sim.Options{}, hub.Join)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	samples := simtest.Samples(t, "hubtelsms")
	call := func(method, path, secret, body string) (int, map[string]any) {
		t.Helper()
		request, err := http.NewRequest(method, server.URL+"/hubtelsms/v1/messages/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth(clientID, secret)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		return answer.StatusCode, got
	}
	for name, body := range map[string]string{
		"taken":                 `{"From":"Kejetia","To":"233201000001","Content":"hello"}`,
		"destination not valid": `{"From":"Kejetia","To":"12","Content":"hello"}`,
		"source not valid":      `{"From":"a name that is too long","To":"233201000001","Content":"hello"}`,
	} {
		status, got := call(http.MethodPost, "send", clientSecret, body)
		want := samples[name]
		if status != want.Status || got["status"] != want.Body["status"] {
			t.Errorf("%s: %d %v", name, status, got)
		}
		simtest.Shaped(t, name, got, want.Body)
	}
	status, got := call(http.MethodPost, "send", "x", `{}`)
	if status != samples["credentials not known"].Status {
		t.Errorf("%d %v", status, got)
	}
	simtest.Shaped(t, "credentials", got, samples["credentials not known"].Body)
	_, got = call(http.MethodGet, hub.Texts()[0].ID, clientSecret, "")
	simtest.Shaped(t, "state", got, samples["state"].Body)
	for path, body := range map[string]string{
		"batch/simple/send":       `{"From":"Kejetia","Recipients":["233201000001","233201000002"],"Content":"hello"}`,
		"batch/personalized/send": `{"From":"Kejetia","personalizedRecipients":[{"To":"233201000001","Content":"a"},{"To":"233201000002","Content":"b"}]}`,
	} {
		if status, got := call(http.MethodPost, path, clientSecret, body); status != http.StatusCreated || len(got["data"].([]any)) != 2 {
			t.Errorf("%s: %d %v", path, status, got)
		}
	}
	byAddress := "send?ClientId=" + clientID + "&clientsecret=" + clientSecret + "&From=Kejetia&to=233201000003&Content=hello+there"
	for path, want := range map[string]int{byAddress: http.StatusOK, strings.Replace(byAddress, clientSecret, "x", 1): http.StatusUnauthorized} {
		answer, err := http.Get(server.URL + "/hubtelsms/v1/messages/" + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	if all := hub.Texts(); all[len(all)-1].Text != "hello there" {
		t.Errorf("the text by address is %+v", all[len(all)-1])
	}
	if n := len(hub.Texts()); n != 6 {
		t.Errorf("%d texts were taken", n)
	}
}
