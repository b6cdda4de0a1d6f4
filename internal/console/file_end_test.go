package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// If the time for a download ends, its connection is broken, so that no program treats the partial file as complete.
func TestFile_timeoutBreaksTheDownload(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	v := &Visit{console: &Console{Deps: Deps{Log: slog.New(slog.DiscardHandler)}}, W: httptest.NewRecorder(), R: httptest.NewRequest(http.MethodGet, "/ops/payments.csv", nil), Ctx: ended}
	defer func() {
		if broken := recover(); broken != http.ErrAbortHandler {
			t.Errorf("the answer ends with %v", broken)
		}
	}()
	v.sendFile(Answer{File: "payments.csv", Write: func(w http.ResponseWriter) error {
		_, err := w.Write([]byte("id,amount\n1,5"))
		return errors.Join(err, ended.Err())
	}})
}
