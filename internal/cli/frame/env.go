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
	Flags          []*kong.Flag // that the line gives
	Stdout, Stderr io.Writer
	Version        string
	Terminal       bool       // a person reads stderr and can answer on stdin
	Authority      *authority // who gives a command that changes something
}

// Warn writes a warning to stderr, in red where a person reads it.
func (e *Env) Warn(text string) {
	if Terminal(e.Stderr) && os.Getenv("NO_COLOR") == "" {
		text = "\x1b[31m" + text + "\x1b[0m"
	}
	fmt.Fprintf(e.Stderr, "makola: %s\n", text)
}

// Usage is the refusal of flags that do not go together.
func Usage(text string) error { return problem.New(problem.Malformed, "usage", text) }

// ErrDeclined is returned by a command whose question was answered with no.
var ErrDeclined = errors.New("nothing was done")

// Confirm asks for a yes. Any other answer and an interrupt are a no.
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
