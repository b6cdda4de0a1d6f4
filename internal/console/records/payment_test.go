package records

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/provider"
)

// Equal responses to status queries are one step, whatever sign-ins were between them. Another response begins another step.
func TestRuns_equalResponses(t *testing.T) {
	query := func(answer string) provider.Exchange {
		return provider.Exchange{Operation: "disbursement_status", Provider: "mtn", Status: 200, Answer: answer}
	}
	signIn := provider.Exchange{Operation: "token", Provider: "mtn", Status: 200}
	refused := provider.Exchange{Operation: "token", Provider: "mtn", Status: 401}
	const pending, paid = `{"status":"PENDING"}`, `{"status":"SUCCESSFUL"}`
	all := runs([]provider.Exchange{signIn, {Operation: "transfer", Provider: "mtn", Status: 202}, query(pending), signIn, query(pending), refused, query(pending), query(paid)})
	var got []string
	for _, run := range all {
		got = append(got, exchangeStep(run, false, strings.NewReplacer()).What)
	}
	want := "MTN: submission | MTN: status query, 2 times | MTN: sign-in | MTN: status query | MTN: status query"
	if text := strings.Join(got, " | "); text != want {
		t.Errorf("the steps are %s, want %s", text, want)
	}
	step := exchangeStep(all[1], false, strings.NewReplacer())
	if !strings.HasPrefix(step.Text, `responded "PENDING" (200) each time since`) {
		t.Errorf("the step reads %q", step.Text)
	}
}

func TestStateIn_responses(t *testing.T) {
	for answer, want := range map[string]string{
		`{"status":"PENDING","reason":{"code":"X"}}`:                  "PENDING",
		`{"responseCode":"0000","data":{"status":"Paid","amount":1}}`: "Paid",
		`{"status":true,"message":"ok","data":{"status":"pending"}}`:  "pending",
		`{"status":"FOUND","data":{"status":"PROCESSING"}}`:           "PROCESSING",
		`{"status":1,"data":{"txstatus":1}}`:                          "",
		`{"status":"ok","data":["a"]}`:                                "ok",
		`[{"status":"ACCEPTED"}]`:                                     "",
		`<html>`:                                                      "",
		`{"status":"` + strings.Repeat("x", longestState+1) + `"}`:    "",
		``: "",
	} {
		if got := stateIn(answer); got != want {
			t.Errorf("%s: the state is %q, want %q", answer, got, want)
		}
	}
}
