package cli

import "github.com/alecthomas/kong"

// Model returns the command line as a tree of commands and flags. Tests print documents from it.
func Model() (*kong.Application, error) {
	parser, err := kong.New(&commands{}, kong.Name("makola"))
	if err != nil {
		return nil, err
	}
	return parser.Model, nil
}
