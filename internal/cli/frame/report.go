package frame

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/makola/makola/internal/problem"
)

// The exit codes.
const (
	ExitOK          = 0  // done
	ExitInternal    = 1  // an internal error, or a check that failed
	ExitUsage       = 2  // wrong flags or values
	ExitUnavailable = 3  // the database or a provider is not available: try again later
	ExitNotFound    = 4  // not found
	ExitConflict    = 5  // already done, by this command or another one
	ExitForbidden   = 6  // not allowed
	ExitFunds       = 7  // not enough money or credits
	ExitRefused     = 8  // refused by a provider
	ExitUnknown     = 9  // the outcome is unknown: check it before you try again
	ExitDeclined    = 10 // a question was answered with no: nothing was changed
	ExitWaits       = 11 // the request awaits approval by a second person in the console
)

var exitCodes = map[problem.Kind]int{
	problem.Malformed: ExitUsage, problem.Invalid: ExitUsage, problem.TooLarge: ExitUsage,
	problem.Unavailable: ExitUnavailable, problem.RateLimited: ExitUnavailable,
	problem.NotFound:  ExitNotFound,
	problem.Duplicate: ExitConflict, problem.InProgress: ExitConflict, problem.Gone: ExitConflict,
	problem.Forbidden: ExitForbidden, problem.Unauthenticated: ExitForbidden,
	problem.InsufficientFunds: ExitFunds, problem.InsufficientCredits: ExitFunds,
	problem.Refused:  ExitRefused,
	problem.Internal: ExitInternal,
}

// message returns the first line of an error. It names faults of the machine that its operator can repair.
func message(p *problem.Error) string {
	switch {
	case p.Kind != problem.Internal:
	case errors.Is(p.Cause, syscall.ENOSPC):
		return "The disk is full. Free some space, then try again"
	case errors.Is(p.Cause, syscall.EROFS):
		return "The disk is read-only. Mount it for writing, then try again"
	case errors.Is(p.Cause, fs.ErrPermission):
		return "A file cannot be opened or written. Check its owner and its mode"
	}
	return p.Message
}

// Report prints an error on stderr and returns the exit code. Nothing below it prints errors.
func Report(stderr io.Writer, err error) int {
	if errors.Is(err, ErrDeclined) {
		fmt.Fprintln(stderr, "makola: Nothing was done.")
		return ExitDeclined
	}
	var waits *waitsError
	if errors.As(err, &waits) {
		fmt.Fprintln(stderr, "makola:", waits)
		return ExitWaits
	}
	p := problem.From(err)
	fmt.Fprintln(stderr, "makola:", message(p))
	if len(p.Fields) > 1 || len(p.Fields) == 1 && p.Kind != problem.Invalid {
		for _, name := range p.FieldNames() {
			for _, text := range p.Fields[name] {
				fmt.Fprintf(stderr, "  %s %s\n", name, text)
			}
		}
	}
	if p.Cause != nil && slices.Contains([]problem.Kind{problem.Internal, problem.Unavailable}, p.Kind) {
		fmt.Fprintln(stderr, "  because:", p.Cause)
	} else if p.Kind == problem.Unavailable && err.Error() != p.Message { // error of the database
		fmt.Fprintln(stderr, "  because:", strings.TrimPrefix(err.Error(), p.Message+": "))
	}
	if p.Code == codeUnknown {
		return ExitUnknown
	}
	if code, ok := exitCodes[p.Kind]; ok {
		return code
	}
	return ExitInternal
}
