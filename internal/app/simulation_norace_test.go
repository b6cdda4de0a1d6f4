//go:build !race

package app

const (
	simulationOpsDefault = 10_000
	simulationTextRounds = 24
)
