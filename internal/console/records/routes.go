package records

import (
	"github.com/makola/makola/internal/console"
)

// Preset chooses the columns of a file of payments.
var Preset = console.Input{Name: "preset", Max: 20}
