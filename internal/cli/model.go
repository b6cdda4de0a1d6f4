package cli

import "github.com/alecthomas/kong"

// Model is the command line as a tree of commands and flags, for code that prints
// it: the document for operators is held to it by a test.
func Model() (*kong.Application, error) {
	parser, err := kong.New(&commands{}, kong.Name("makola"))
	if err != nil {
		return nil, err
	}
	return parser.Model, nil
}
