//go:build race

package app

// Under the race detector, which makes everything some ten times slower, the simulation is short: the
// gate runs the whole of it without.
const simulationOpsDefault = 1_200
