package app

const (
	batchRun    = "internal/batch/run.go"
	batchSend   = "internal/batch/send.go"
	batchMoney  = "internal/batch/money.go"
	rowsOfFiles = "internal/payments/payout_rows.go"
	refunding   = "internal/payments/book/refund_rows.go"
)

// batchRules: no row of a file is paid twice, and its reserve is correct.
func batchRules() []mutant {
	return []mutant{
		{"batch-reference", "the same file has the same references before and after a restore", "internal/batch/draft.go",
			`s.codes.of(b.Mode, b.Tenant, b.Name, sum, b.Repetition)`, `s.codes.of(b.Mode, b.ID, b.Name, sum, b.Repetition)`,
			byTest("batch", "TestRecovery_sameFilePaysOnce/SQLite")},
		{"batch-own-reference", "a row's own reference is the one of its payout", "internal/batch/code.go",
			`if r.Reference != "" {`, `if r.Reference != "" && code == "" {`,
			byTest("batch", "TestBatch_failedAndRefusedRows/SQLite")},
		{"batch-same-file", "a file that was sent is a duplicate without a reason to pay it again", "internal/batch/draft.go",
			`case b.Again == "" || old.Status == Draft`, `case old.Status == Draft`,
			byTest("batch", "TestDraft_sameFileOnce/SQLite")},
		{"batch-overlap", "rows of an earlier batch are paid again for a reason alone", batchSend,
			`if o.rows == 0 || b.Again != "" {`, `if o.rows >= 0 || b.Again != "" {`,
			byTest("batch", "TestDraft_correctedFile/SQLite")},
		{"batch-reserve-fees", "the reserve takes amounts and fees of all rows", batchMoney,
			`To: ledger.Reserve(b.Tenant), Amount: b.Total(),`, `To: ledger.Reserve(b.Tenant), Amount: b.Amount,`,
			byTest("batch", "TestBatch_paysEachRow/SQLite")},
		{"batch-reserve-drawn", "an accepted row lowers the rest of its batch by amount and fee", batchRun,
			`locked.Rest -= result.Payment.Held()`, `locked.Rest -= result.Payment.Amount`,
			byTest("batch", "TestBatch_paysEachRow/SQLite")},
		{"batch-reserve-back", "the rest of a cancelled batch goes back to the wallet", batchMoney,
			`		if b.Rest == 0 {`, `		if b.Rest >= 0 {`,
			byTest("batch", "TestBatch_cancelGivesBack/SQLite")},
		{"batch-accept-next", "a process that read the batch before another one accepted its rows accepts nothing", batchRun,
			`(is.Status != Running || is.Next != b.Next)`, `is.Status != Running`,
			byTest("batch", "TestRun_staleReading/SQLite")},
		{"batch-accept-paused", "nothing is accepted once a pause has returned", batchRun,
			`(is.Status != Running || is.Next != b.Next)`, `is.Next != b.Next`,
			byTest("batch", "TestRun_staleReading/SQLite")},
		{"batch-accept-altered", "rows that differ from the approved ones are not paid", batchRun,
			`return len(blocks) == 1 && slices.Contains(b.blocks, blocks[0])`, `return len(blocks) == 1`,
			byTest("batch", "TestRun_alteredRows/SQLite")},
		{"batch-accept-digest", "the rows that begin are those that the approver saw", batchSend,
			`if is.Digest != o.Digest || is.version != b.version {`, `if is.version != b.version {`,
			byTest("batch", "TestStart_refusals/SQLite")},
		{"batch-accept-fees", "a batch whose fees changed since its request does not begin", batchSend,
			`	if plan != b.Plan {`, `	if plan < b.Plan {`,
			byTest("batch", "TestStart_refusals/SQLite")},
		{"batch-accept-bank-off", "a row to a bank that is switched off pauses the batch", rowsOfFiles,
			`	if row.BankID != "" {`, `	if row.BankID == "off" {`,
			byTest("batch", "TestRun_bankSwitchedOff/SQLite")},
		{"batch-accept-recovery", "a recovery pauses running batches", "internal/batch/recovered.go",
			`WHERE status IN ('running', 'paused')`, `WHERE status IN ('paused')`,
			byTest("batch", "TestRecoveryBegan_stopsAll/SQLite")},
	}
}

// refundRules: no collection is refunded twice.
func refundRules() []mutant {
	return []mutant{
		{"refund-one-open", "a collection has one open refund at most", refunding,
			`	case sums.Open:`, `	case sums.Open && amount < 0:`,
			byTest("payments", "TestRefund_atOnce/1.00/SQLite")},
		{"refund-left", "refunds never exceed their collection", refunding,
			`	case amount > left:`, `	case amount > of.Amount:`,
			byTest("payments", "TestRefund_amounts/SQLite")},
		{"refund-successful", "a collection that has not succeeded is not refunded", refunding,
			`of.Kind != KindCollection || of.Status != StatusSuccess`, `of.Kind != KindCollection`,
			byTest("payments", "TestRefund_wrongStates/SQLite")},
		{"refund-reversed", "a collection that the provider reversed is not refunded", refunding,
			`	case !of.ContradictedAt.IsZero():`, `	case !of.ContradictedAt.IsZero() && amount < 0:`,
			byTest("payments", "TestRefund_reversedByProvider/of_a_part/SQLite")},
		{"refund-given-back", "a refund that fails can be made again", "internal/payments/book/refunds.go",
			`			lowered = append(lowered, c)`, `			lowered = append(lowered[:0:0], lowered...)`,
			byTest("payments", "TestRefund_foundPaid/SQLite")},
		{"refund-both-ways", "a recovery asks for a refund by both ways", "internal/payments/recovery_search.go",
			`	return []book.RefundWay{book.RefundByRail, book.RefundByPayout}`, `	return []book.RefundWay{pay.RefundWay}`,
			byTest("payments", "TestRefund_recoveryAsksBothWays/payout/SQLite")},
		{"refund-of-topup", "a collection whose airtime did not fail is not refunded", refunding,
			`case of.Child != "" && (topUp == nil || topUp.Status != StatusFailed || !topUp.ContradictedAt.IsZero()):`, `case of.Child != "" && topUp == nil:`,
			byTest("payments", "TestRefund_ofAirtime/SQLite")},
	}
}
