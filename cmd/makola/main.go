// Command makola is the whole of Makola in one program: the server, the
// simulator and the operators' commands. Everything is in package cli.
package main

import (
	"os"

	"github.com/makola/makola/internal/cli"
)

func main() { os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr)) }
