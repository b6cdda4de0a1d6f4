package app

// closingRules: bank accounts, slips and the close of days.
func closingRules() []mutant {
	const tables = "internal/db/migrations/0078_closing.sql"
	return []mutant{
		{"slip-once", "a slip of a bank account pays once", "internal/treasury/banks.go",
			`if err != nil || n == 1 {`, `if err != nil || n <= 1 {`,
			byTest("treasury", "TestSlip_paysOnce/SQLite")},
		{"slip-one-form", "the number of a slip has one form", "internal/treasury/banks.go",
			`return strings.TrimLeft(key, "0")`, `return strings.TrimLeft(key+number, "0")`,
			byTest("treasury", "TestSlip_paysOnce/SQLite")},
		{"slip-in-the-table", "the table itself takes a slip once", "internal/db/migrations/0075_treasury_banks.sql",
			`PRIMARY KEY (bank, slip)`, `PRIMARY KEY (bank, slip, act)`,
			byTest("treasury", "TestSlip_uniqueBySchema/SQLite")},
		{"transit-ends-once", "money in transit ends once", "internal/treasury/transit.go",
			`if now.State != Sent || now.Amount`, `if now.Amount`,
			byTest("treasury", "TestTransit_endsOnce/SQLite")},
		{"bank-needed", "a deposit names its bank account once there is one", "internal/changes/wallet.go",
			`		case needs:`, `		case needs && w.Slip != "":`,
			byTest("changes", "TestFund_namesItsBank/SQLite")},
		{"close-after-lag", "a day closes after its lag", "internal/closing/close.go",
			`f.Day.End().Add(Lag)):`, `f.Day.End()):`,
			byTest("closing", "TestClose_onceInOrder/SQLite")},
		{"close-in-order", "days close in their order", "internal/closing/close.go",
			`f.Last.Day != f.Day-1:`, `f.Last.Day > f.Day-1:`,
			byTest("closing", "TestClose_onceInOrder/SQLite")},
		{"close-once-in-the-table", "the table itself closes a day behind the day before", tables,
			`previous = day - 1`, `previous <= day - 1`,
			byTest("closing", "TestClose_guardedBySchema/SQLite")},
		{"close-as-signed", "a day is closed with the statements and exceptions that were signed", "internal/closing/close.go",
			`if err := sameGiven(tx, f); err != nil {`, `if err := sameGiven(tx, f); err != nil && request == "" {`,
			byTest("closing", "TestDay_differenceIsExplained/SQLite")},
		{"close-late", "a transfer dated into a closed day is listed once", "internal/closing/day.go",
			`at(a.ID).Opening = a.Closing`, `at(a.ID).Opening = a.Closing + a.Late`,
			byTest("closing", "TestClose_lateTransferIsListed/SQLite")},
		{"funds-side", "reserves are owed to customers", "internal/closing/funds.go",
			`strings.HasPrefix(string(id), string(ledger.Reserve(""))):`, `id == "":`,
			byTest("closing", "TestFunds_surplusIsOurOwn/SQLite")},
	}
}
