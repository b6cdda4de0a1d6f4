// Command makola is the whole of Makola: the server, its simulator and the operators' commands.
// Package cli has the commands.
package main

import (
	"os"

	"github.com/makola/makola/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr))
}
