//go:build !race

package app

// The lengths of the simulations in the gate: long enough for the table of transitions.
const (
	simulationOpsDefault = tableFrom
	simulationTextRounds = 16
)
