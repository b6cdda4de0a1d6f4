package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/test/apitest"
)

// unplayed has the examples that need a value of an earlier answer.
var unplayed = map[string]string{
	"verifyOTP":     "the code is on the handset",
	"webhookReplay": "the payment's reference",
	"buyData":       "a package's id is good for an hour",
	"refund":        "the collection must have succeeded",
	"submitVoucher": "vouchers must be on, and the collection must wait for one",
	"submitBatch":   "the batch's id",
	"pauseBatch":    "the batch's id",
	"resumeBatch":   "the batch's id",
	"cancelBatch":   "the batch's id",
}

// TestExamples_workOnTheDemoAccount sends every example of the OpenAPI document, as the server returns it, with the demo account's
// key.
func TestExamples_workOnTheDemoAccount(t *testing.T) {
	eachStage(t, func(t *testing.T, s *stage, a *actor) {
		document, err := apitest.LoadText(plainCall(s.app, http.MethodGet, "/openapi.json", "").Body.Bytes())
		a.must(err)
		a.key, a.tenant.ID = s.app.ready.APIKey, s.app.ready.TenantID
		a.vars["group"] = s.app.ready.GroupID
		a.ask("GET", "/sms-api/contact/getContacts/"+a.vars["group"], "", nil)
		a.answered(200, nil, `{"data": [{"id": "$contact", "...": 0}, "..."], "...": 0}`)
		for _, o := range document.Operations {
			body, err := o.Example()
			a.must(err)
			if body == nil || unplayed[o.ID] != "" {
				continue
			}
			path := strings.TrimPrefix(o.Path, "/api/v1")
			path = strings.Replace(path, "updateGroup/{id}", "updateGroup/$group", 1)
			path = strings.Replace(path, "updateContact/{id}", "updateContact/$contact", 1)
			a.ask(o.Method, a.fill(path), string(body), nil)
			if a.last.Code != http.StatusOK {
				t.Errorf("the example of %s is answered %d %s", o.ID, a.last.Code, a.last.Body)
			}
		}
		s.settle(t)
	})
}
