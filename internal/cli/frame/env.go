package frame

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/problem"
)

// Env is the environment of a command.
type Env struct {
	Ctx            context.Context
	Stdin          io.Reader
	Flags          []*kong.Flag // flags of the command line
	Stdout, Stderr io.Writer
	Version        string
	Terminal       bool       // stderr and stdin are a terminal, so a person can read and answer
	Authority      *authority // caller of a command that changes something
}

// Warn writes a warning to stderr, in red on a terminal.
func (e *Env) Warn(text string) {
	if Terminal(e.Stderr) && os.Getenv("NO_COLOR") == "" {
		text = "\x1b[31m" + text + "\x1b[0m"
	}
	fmt.Fprintf(e.Stderr, "makola: %s\n", text)
}

// Usage returns the error for flags that cannot be combined.
func Usage(text string) error { return problem.New(problem.Malformed, "usage", text) }

// ErrDeclined is returned if a person answered a command's question with no.
var ErrDeclined = errors.New("nothing was done")

// Confirm asks for a yes. Every other answer, and an interrupt, counts as no.
func (e *Env) Confirm(question string) error {
	fmt.Fprint(e.Stderr, question, " [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(e.Stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-e.Ctx.Done():
		fmt.Fprintln(e.Stderr)
	case said := <-answer:
		if said == "y" || said == "yes" {
			return nil
		}
	}
	return ErrDeclined
}
