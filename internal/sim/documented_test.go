package sim

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// sample is an answer as a provider documents it.
type sample struct {
	Name, Call string
	Status     int
	Body       map[string]any
}

// samples reads what stands beside the adapter: neither it nor the simulator is
// the measure of the other.
func samples(t *testing.T, adapter string) map[string]sample {
	t.Helper()
	files, err := filepath.Glob("../provider/" + adapter + "/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	all := map[string]sample{}
	for _, file := range files {
		var list []sample
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			all[s.Name] = s
		}
	}
	return all
}

// shaped reports where a value has other members, or of other kinds, than the
// documented one. Null stands for any kind.
func shaped(t *testing.T, at string, got, want any) {
	t.Helper()
	if got == nil || want == nil {
		return
	}
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if _, ok := object[name]; !ok {
				t.Errorf("%s has no %s", at, name)
			}
			shaped(t, at+"."+name, object[name], want[name])
		}
		for name := range object {
			if _, ok := want[name]; !ok {
				t.Errorf("%s has %s, which is not documented", at, name)
			}
		}
	case []any:
		list, _ := got.([]any)
		if len(list) == 0 {
			t.Errorf("%s is empty", at)
		}
		for _, each := range list {
			shaped(t, at+"[]", each, want[0])
		}
	default:
		if reflect.TypeOf(got) != reflect.TypeOf(want) {
			t.Errorf("%s is %T, documented as %T", at, got, want)
		}
	}
}

// TestMTNAnswersAsDocumented holds MTN's answers and callbacks to their samples.
func TestMTNAnswersAsDocumented(t *testing.T) {
	documented := samples(t, "mtnmomo")
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
		shaped(t, name, got, any(want.Body))
	}
	s, c := manualSim(t, "")
	defer s.Close()
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
	if err := s.Inject(Fault{Provider: MTN, Kind: Stuck}); err != nil {
		t.Fatal(err)
	}
	ask("transfer accepted", "disbursement", "POST", send, other, sends)
	s.Resolve(MTN, other, Failed, NoFunds)
	ask("transfer failed, its reason a text", "disbursement", "GET", send+"/"+other, other, "")
	for name, fault := range map[string]Fault{
		"payer not found, under 500":                               {Kind: RefuseAfter, Operation: OpCollect, Answer: "500:PAYER_NOT_FOUND"},
		"payee not found, under 500":                               {Kind: RefuseAfter, Operation: OpDisburse, Answer: "500:PAYEE_NOT_FOUND"},
		"environment not allowed, under 500":                       {Kind: RefuseAfter, Operation: OpDisburse, Answer: "500:NOT_ALLOWED_TARGET_ENVIRONMENT"},
		"an error of MTN's own":                                    {Kind: RefuseAfter, Operation: OpCollect, Answer: "500:INTERNAL_PROCESSING_ERROR"},
		"an error of MTN's own, which says nothing of the payment": {Kind: StatusAnswer, Operation: OpDisburseStatus, Answer: "500:INTERNAL_PROCESSING_ERROR"},
	} {
		if err := s.Inject(fault); err != nil {
			t.Fatal(err)
		}
		switch fault.Operation {
		case OpCollect:
			ask(name, "collection", "POST", pay, uuid.NewString(), pays)
		case OpDisburse:
			ask(name, "disbursement", "POST", send, uuid.NewString(), sends)
		default:
			ask(name, "disbursement", "GET", send+"/"+other, other, "")
		}
	}
	c.Advance(3 * time.Second)
	// The document has numbers where the live system has texts: the members alone
	// are compared.
	for _, name := range []string{"request to pay succeeded", "request to pay failed, its reason an object"} {
		want := documented[name]
		checked[name] = true
		e, _ := s.status(MTN, reference)
		if name != "request to pay succeeded" {
			e.Status, e.Reason = Failed, NotRegistered
			s.opts.MTNReasonObject = true
		}
		var got map[string]any
		if err := json.Unmarshal(s.wires[MTN].callback(e).Body, &got); err != nil {
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
