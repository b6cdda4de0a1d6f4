package frame

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
)

// progressPause is the shortest time between two updates of a progress line.
const progressPause = 200 * time.Millisecond

// ProgressOn returns a function that shows the progress of a long command in one line on a terminal. An empty step
// removes the line. Without a terminal it shows nothing. unit formats the counts.
func ProgressOn(w io.Writer, unit func(int64) string) func(step string, done, total int64) {
	if !Terminal(w) {
		return func(string, int64, int64) {}
	}
	return progressLine(w, unit)
}

// Terminal reports whether stream is a terminal.
func Terminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

func progressLine(w io.Writer, unit func(int64) string) func(step string, done, total int64) {
	const clear = "\r\x1b[K"
	var last time.Time
	return func(step string, done, total int64) {
		switch {
		case step == "" && last.IsZero(), step != "" && time.Since(last) < progressPause:
		case step == "":
			fmt.Fprint(w, clear)
			last = time.Time{}
		default:
			last = time.Now()
			fmt.Fprintf(w, "%s%s: %s", clear, step, unit(done))
			if total > 0 {
				fmt.Fprintf(w, " of %s (%d %%)", unit(total), min(100, 100*done/total))
			}
		}
	}
}

// Megabytes prints a number of bytes.
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// Interactive reports whether a person can read a question and answer it.
func Interactive(in io.Reader, out io.Writer) bool { return Terminal(in) && Terminal(out) }
