package mtn

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// The answers and callbacks of the simulated MTN equal its documented samples.
func TestMTN_answersAsDocumented(t *testing.T) {
	documented := simtest.Samples(t, "mtnmomo")
	checked := map[string]bool{}
	const reference = "5d6a0bd7-0f02-4a5c-a3b4-1ad2b1d8ef0c"
	like := func(name string, status int, body string) {
		t.Helper()
		want := documented[name]
		checked[name] = true
		if want.Name == "" || want.Status != status || (want.Body == nil) != (body == "") {
			t.Errorf("%s: HTTP %d %s, documented as %+v", name, status, body, want)
		}
		var got map[string]any
		if body != "" {
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
		}
		for _, word := range []string{"code", "status", "reason"} {
			if text, ok := want.Body[word].(string); ok && got[word] != text {
				t.Errorf("%s: %v, documented as %v", name, got, want.Body)
			}
		}
		simtest.Shaped(t, name, got, any(want.Body))
	}
	var m *mtn
	s, c := simtest.New(t, sim.Options{}, func(s *sim.Sim) sim.Provider {
		m = newMTN(s, Options{})
		return m.provider()
	})
	ask := func(name, product, method, path, reference, body string) {
		t.Helper()
		r := mtnRequest(t, s, product, method, path, body)
		r.Header.Set("X-Reference-Id", reference)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		like(name, w.Code, w.Body.String())
	}
	const pay, send = "v1_0/requesttopay", "v1_0/transfer"
	pays := strings.Replace(payBody, `"x"`, `"`+reference+`"`, 1)
	sends := strings.NewReplacer("payer\":{", "payee\":{", "233244123456", "233240000022").Replace(pays)
	ask("reference not known", "collection", "GET", pay+"/"+reference, reference, "")
	ask("request to pay accepted", "collection", "POST", pay, reference, pays)
	ask("duplicate reference", "collection", "POST", pay, reference, pays)
	ask("request to pay pending", "collection", "GET", pay+"/"+reference, reference, "")
	ask("bad request, without a body", "collection", "POST", pay, "no UUID", pays)
	ask("currency not supported, under 500", "collection", "POST", pay, "5d6a0bd7-0f02-4a5c-a3b4-1ad2b1d8ef0d", strings.Replace(pays, "GHS", "EUR", 1))
	const other = "5d6a0bd7-0f02-4a5c-a3b4-1ad2b1d8ef0e"
	if err := s.Inject(sim.Fault{Provider: Name, Kind: sim.Stuck}); err != nil {
		t.Fatal(err)
	}
	ask("transfer accepted", "disbursement", "POST", send, other, sends)
	s.Resolve(Name, other, sim.Failed, sim.NoFunds)
	ask("transfer failed, its reason a text", "disbursement", "GET", send+"/"+other, other, "")
	for name, fault := range map[string]sim.Fault{
		"payer not found, under 500":                               {Kind: sim.RefuseAfter, Operation: sim.OpCollect, Answer: "500:PAYER_NOT_FOUND"},
		"payee not found, under 500":                               {Kind: sim.RefuseAfter, Operation: sim.OpDisburse, Answer: "500:PAYEE_NOT_FOUND"},
		"environment not allowed, under 500":                       {Kind: sim.RefuseAfter, Operation: sim.OpDisburse, Answer: "500:NOT_ALLOWED_TARGET_ENVIRONMENT"},
		"an error of MTN's own":                                    {Kind: sim.RefuseAfter, Operation: sim.OpCollect, Answer: "500:INTERNAL_PROCESSING_ERROR"},
		"an error of MTN's own, which says nothing of the payment": {Kind: sim.StatusAnswer, Operation: sim.OpDisburseStatus, Answer: "500:INTERNAL_PROCESSING_ERROR"},
	} {
		if err := s.Inject(fault); err != nil {
			t.Fatal(err)
		}
		switch fault.Operation {
		case sim.OpCollect:
			ask(name, "collection", "POST", pay, uuid.NewString(), pays)
		case sim.OpDisburse:
			ask(name, "disbursement", "POST", send, uuid.NewString(), sends)
		default:
			ask(name, "disbursement", "GET", send+"/"+other, other, "")
		}
	}
	c.Advance(3 * time.Second)
	const back = "5d6a0bd7-0f02-4a5c-a3b4-1ad2b1d8ef0f"
	gives := strings.Replace(pays, `"payerMessage"`, `"referenceIdToRefund":"`+reference+`","payerMessage"`, 1)
	ask("refund accepted", "disbursement", "POST", "v1_0/refund", back, gives)
	c.Advance(3 * time.Second)
	// The document has numbers for some values that the live system sends as strings. Only the names of members are
	// therefore compared.
	for _, x := range []struct {
		name, reference string
		failed          sim.Reason
	}{{"request to pay succeeded", reference, ""}, {"request to pay failed, its reason an object", reference, sim.NotRegistered},
		{"refund succeeded", back, ""}, {"refund failed, our account too low", back, sim.FloatLow}} {
		name, want := x.name, documented[x.name]
		checked[name] = true
		e, _ := s.Status(Name, x.reference)
		if m.reasonObject = x.failed != ""; m.reasonObject {
			e.Status, e.Reason = sim.Failed, x.failed
		}
		var got map[string]any
		if err := json.Unmarshal(m.callback(e).Body, &got); err != nil {
			t.Fatal(err)
		}
		for _, member := range slices.Sorted(maps.Keys(want.Body)) {
			if _, ok := got[member]; !ok || member == "status" && got[member] != want.Body[member] || member == "reason" && !reflect.DeepEqual(got[member], want.Body[member]) {
				t.Errorf("%s: %v, documented as %v", name, got, want.Body)
			}
		}
	}
	for name := range documented {
		if !checked[name] {
			t.Errorf("the simulator is not held to %q", name)
		}
	}
}
