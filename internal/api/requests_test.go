package api

import (
	"encoding/json"
	"testing"

	"github.com/makola/makola/internal/requestlog"
)

// The error of a refused request may contain a member name of the client, with characters that JSON must escape.
func TestRefusedRequest_quotesNames(t *testing.T) {
	var w writer
	w.refused(requestlog.Request{Fields: map[string][]string{`a"b\`: {"is given more than once"}}})
	var got struct{ Errors map[string][]string }
	if err := json.Unmarshal(w.Bytes(), &got); err != nil || len(got.Errors[`a"b\`]) != 1 {
		t.Errorf("%s: %v", w.Bytes(), err)
	}
}
