package app

// reconcileRules: which lines of statements are which payments, and what a person may end.
func reconcileRules() []mutant {
	const decide = "internal/reconcile/decide.go"
	return []mutant{
		{"match-one-payment", "two payments that a line may be never match by themselves", decide,
			`found == 1 && rivals == 1`, `found >= 1 && rivals == 1`,
			byTest("reconcile", "TestBySimilar_exactlyOne")},
		{"match-one-line", "two lines that may be a payment never match by themselves", decide,
			`found == 1 && rivals == 1`, `found == 1`,
			byTest("reconcile", "TestBySimilar_exactlyOne")},
		{"match-forged-text", "a payer's text matches only if amount, direction and time agree", decide,
			`if m.Movement == "" && m.agrees(l, lag) {`, `if m.Movement == "" {`,
			byTest("reconcile", "TestByNarrative_forged")},
		{"match-twice", "a second line for a payment is an exception", decide,
			`other != "" && other != l.ID {`, `other == "none" {`,
			byTest("reconcile", "TestByReference_differences")},
		{"match-payment-once", "the table lets a payment's movement be matched once", "internal/db/migrations/0074_reconcile.sql",
			`CREATE UNIQUE INDEX statement_matches_payment`, `CREATE INDEX statement_matches_payment`,
			byTest("reconcile", "TestMatches_tableGuards/SQLite")},
		{"missing-within-lag", "a payment is missing only when the statement reaches the lag behind it", "internal/reconcile/missing.go",
			`!s.to.Before(o.Until.Add(source.Lag()))`, `!s.to.Before(o.Until)`,
			byTest("reconcile", "TestMatch_missingNeedsTheWholeTime")},
		{"line-whole-days", "lines without an id are taken in whole days", "internal/reconcile/import.go",
			`if n != stored[day] {`, `if n > stored[day] {`,
			byTest("reconcile", "TestImport_wholeDays/SQLite")},
		{"write-off-changed", "an exception that changed since its request is not written off", "internal/reconcile/resolve.go",
			`n.Digest != digest || len(n.List) != len(ids)`, `len(n.List) != len(ids)`,
			byTest("reconcile", "TestWriteOff_lineThatChanged/SQLite")},
	}
}
