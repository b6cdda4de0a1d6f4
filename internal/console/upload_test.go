package console

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/makola/makola/internal/problem"
)

// A field that is too long is refused and never shortened.
func TestUpload_longField(t *testing.T) {
	for length, fits := range map[int]bool{9: true, 10: true, 11: false, 5_000: false} {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		err := form.WriteField("numbers", strings.Repeat("0", length))
		if err == nil {
			_, err = form.CreateFormFile("file", "rows.csv")
		}
		if err == nil {
			err = form.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", &body)
		r.Header.Set("Content-Type", form.FormDataContentType())
		v, got := &Visit{R: r, W: httptest.NewRecorder()}, ""
		part, err := v.Upload(10, func(_, text string) { got = text })
		if fits && (err != nil || part == nil || len(got) != length) {
			t.Errorf("%d bytes: got %q, %v", length, got, err)
		}
		if !fits && (!problem.Is(err, problem.Invalid) || problem.From(err).Fields["numbers"] == nil || got != "") {
			t.Errorf("%d bytes: got %q, %v", length, got, err)
		}
	}
}
