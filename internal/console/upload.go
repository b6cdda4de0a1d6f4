package console

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/problem"
)

// readTime is how long an uploaded file may take to arrive.
const readTime = 55 * time.Second

// Upload reads the fields of a form before its file, and gives them to field. A field of more than maxText bytes is
// refused. It returns the file as it arrives, or nil if the form has none.
func (v *Visit) Upload(maxText int64, field func(name, text string)) (*multipart.Part, error) {
	parts, err := v.R.MultipartReader()
	if err != nil {
		return nil, errUpload(err)
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, errUpload(err)
		}
		if part.FormName() == "file" {
			_ = http.NewResponseController(v.W).SetReadDeadline(time.Now().Add(readTime)) // a connection that cannot change its deadline keeps the server's
			return part, nil
		}
		text, err := io.ReadAll(io.LimitReader(part, maxText+1))
		if err != nil {
			return nil, errUpload(err)
		}
		if int64(len(text)) > maxText {
			return nil, problem.Field(part.FormName(), fmt.Sprintf("must have at most %d bytes", maxText))
		}
		field(part.FormName(), strings.TrimSpace(string(text)))
	}
}

// BrokenUpload returns the refusal of a file that was too large or did not arrive whole, and every other error unchanged.
func BrokenUpload(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errUpload(err)
	}
	return err
}

func errUpload(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return problem.Wrap(err, problem.Invalid, "file_too_large", "The file must be at most 20 MB: divide it")
	}
	return problem.Wrap(err, problem.Malformed, "form_unreadable", "The form did not arrive completely. Go back and submit it again.")
}
