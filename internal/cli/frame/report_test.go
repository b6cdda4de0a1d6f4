package frame

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/makola/makola/internal/problem"
)

// A fault of the machine is named in the first line of an error, and its file in the second.
func TestReport_faultsOfTheMachine(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.ENOSPC: "makola: The disk is full.", syscall.EROFS: "makola: The disk is read-only.", fs.ErrPermission: "makola: A file cannot be opened or written.",
		errors.New("odd"): "makola: Something went wrong\n",
	} {
		var out strings.Builder
		code := Report(&out, fmt.Errorf("recovery: %w", &fs.PathError{Op: "write", Path: "/data/makola.place", Err: cause}))
		if !strings.HasPrefix(out.String(), want) || !strings.Contains(out.String(), "because: recovery: write /data/makola.place") || code != ExitInternal {
			t.Errorf("%v: code %d, %q", cause, code, out.String())
		}
	}
	var out strings.Builder
	if Report(&out, problem.Wrap(syscall.ENOSPC, problem.Unavailable, "such", "Try again")); !strings.HasPrefix(out.String(), "makola: Try again\n") {
		t.Errorf("%q", out.String())
	}
}
