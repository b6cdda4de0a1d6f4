package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
)

// A form survives a step-up. Its contents are in the page that asks for the code, sealed for the session, the person and the page.
// After the code the route's Resume shows them again. Resume never performs the action of the form.

// keptFor is how long the contents can be restored.
const keptFor = 30 * time.Minute

// keptForms limits how many forms a person restores, and detects one that was restored before.
var keptForms = identity.Limit{What: "form.resume", Most: 100, Of: "forms after a code"}

// errKept is returned for every sealed text that cannot be used. It does not reveal the reason.
func errKept() error {
	return problem.New(problem.Gone, "form_over", "This form can no longer be used: it was submitted before, has expired, or belongs to another session or page. Nothing was done. Open the form again.")
}

// resume shows the form whose contents came with the code, once.
func (v *Visit) resume(sealed, back string) (Answer, error) {
	k, err := v.unseal(sealed, back)
	if err != nil {
		return Answer{}, err
	}
	first := false
	if first, err = v.console.Identity.Once(v.Ctx, keptForms, v.Who.Person.ID, keyOf(sealed)); err != nil {
		return Answer{}, err
	}
	if !first {
		return Answer{}, errKept()
	}
	r := v.R.Clone(context.WithValue(v.R.Context(), resumed{}, true))
	if r.URL, err = url.ParseRequestURI(k.Path); err != nil {
		return Answer{}, errKept()
	}
	body := k.Values.Encode()
	r.Form, r.PostForm, r.MultipartForm = nil, nil, nil
	r.Body, r.ContentLength, r.RequestURI = io.NopCloser(strings.NewReader(body)), int64(len(body)), k.Path
	return Answer{Raw: func(w http.ResponseWriter, _ int) { v.console.mux.ServeHTTP(w, r) }}, nil
}

// unseal opens contents that were sealed for this visitor.
func (v *Visit) unseal(sealed, back string) (k kept, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || v.console.Seal == nil {
		return k, errKept()
	}
	text, err := v.console.Seal.Open(raw, v.bound(back))
	if err != nil || json.Unmarshal(text, &k) != nil {
		return k, errKept()
	}
	if age := v.console.Clock.Now().Sub(k.At); age < -time.Minute || age >= keptFor {
		return k, errKept()
	}
	return k, nil
}
