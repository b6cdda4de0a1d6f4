//go:build race

package app

// Under the race detector, which makes everything some ten times slower, the simulations are short: the
// gate runs the whole of them without.
const (
	simulationOpsDefault = 1_200
	simulationTextRounds = 8
)
