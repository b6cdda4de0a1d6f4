//go:build race

package app

// The lengths of the simulations in the gate. With the race detector everything is about ten times slower, so they are shorter.
const (
	simulationOpsDefault = 1_200
	simulationTextRounds = 8
)
