//go:build race

package app

// The lengths of the simulations in the gate. The race detector makes everything some ten times slower, so they are shorter with it.
const (
	simulationOpsDefault = 1_200
	simulationTextRounds = 8
)
