package alerts

import "fmt"

// All returns every alert, in the order in which operators read them.
func All() []Alert {
	var all []Alert
	for _, part := range [][]Alert{nodes(), books(), people(), money(), providers(), work(), messages(), upkeep()} {
		all = append(all, part...)
	}
	return all
}

func (a Alert) lasting(hold string) Alert { a.For = hold; return a }
func (a Alert) ticket() Alert             { a.Severity = Ticket; return a }
func (a Alert) says(when, summary, runbook string) Alert {
	a.When, a.Summary, a.Runbook = when, summary, runbook
	return a
}

// playing replaces the series of an alert that needs special labels.
func (a Alert) playing(fires, quiet []string) Alert { a.Fires, a.Quiet = fires, quiet; return a }

// nodes are alerts on lost nodes. A lost node has no values of its metrics, so no other alert on it fires.
func nodes() []Alert {
	return []Alert{
		Alert{Name: "MakolaDown", Severity: Page, Expr: `absent(makola_build_info)`}.lasting("2m").
			says("`makola_build_info` absent for 2 minutes", "No node of Makola answers Prometheus, so no other alert can fire. Check readyz of each node, then its process and log.", "no-node-answers").
			playing([]string{ending(`makola_build_info{instance="a"}`, 1), series(`up{instance="a"}`, 0)},
				[]string{ending(`makola_build_info{instance="a"}`, 1), series(`makola_build_info{instance="b"}`, 1)}),
		Alert{Name: "MakolaNodeDown", Severity: Ticket, Expr: `up == 0 and on (job, instance) present_over_time(makola_build_info[1d])`}.lasting("5m").
			says("`up` is 0 for 5 minutes for a node that answered in the last day", "{{ $labels.instance }}: this node does not answer Prometheus. Check its process and its log.", "no-node-answers").
			playing([]string{ending(`makola_build_info{job="makola",instance="a"}`, 1), `up{job="makola",instance="a"}=1+0x270 0+0x100`, series(`makola_build_info{job="makola",instance="b"}`, 1)},
				[]string{series(`up{job="other",instance="a"}`, 0), series(`up{job="makola",instance="b"}`, 1), series(`makola_build_info{job="makola",instance="b"}`, 1)}),
	}
}

// books are alerts on the ledger and the audit log.
func books() []Alert {
	return []Alert{
		above("MakolaLedgerFaults", "makola_ledger_faults", `book!="audit"`, "book", 0).
			says("`makola_ledger_faults` of a book > 0", "{{ $labels.book }}: the books contradict each other. Run makola ledger check and change nothing by hand.", "ledger-fault").
			playing([]string{series(`makola_ledger_faults{book="payments"}`, 1)}, []string{series(`makola_ledger_faults{book="payments"}`, 0), series(`makola_ledger_faults{book="audit"}`, 3)}),
		Alert{Name: "MakolaLedgerContradicts", Severity: Page, Expr: `max by (asset) (abs(makola_ledger_imbalance_pesewas)) > 0`}.
			says("`makola_ledger_imbalance_pesewas` not 0", "{{ $labels.asset }}: the ledger does not add up to 0. Run makola ledger check and change nothing by hand.", "ledger-fault").
			playing([]string{series(`makola_ledger_imbalance_pesewas{asset="GHS"}`, -5)}, []string{series(`makola_ledger_imbalance_pesewas{asset="GHS"}`, 0)}),
		Alert{Name: "MakolaStatementWrong", Severity: Page, Expr: `sum(increase(makola_statement_faults_total[1h])) > 0`}.
			says("`makola_statement_faults_total` grew in the last hour", "An account statement contradicts the ledger. Run makola ledger check and change nothing by hand.", "ledger-fault").
			playing([]string{growing(`makola_statement_faults_total`, 1)}, []string{series(`makola_statement_faults_total`, 3)}),
		Alert{Name: "MakolaBooksUnchecked", Severity: Page, Expr: `time() - max by (book) (makola_ledger_last_check_timestamp_seconds) > 7200`}.lasting("15m").
			says("`makola_ledger_last_check_timestamp_seconds` of a book older than two hours on all nodes, for 15 minutes (it is 0 until a node's first check)",
				"{{ $labels.book }}: no node has checked this book for two hours. Look for failed checks in the log.", "books-unchecked").
			playing([]string{series(`makola_ledger_last_check_timestamp_seconds{book="ledger"}`, 0)}, []string{growing(`makola_ledger_last_check_timestamp_seconds{book="ledger"}`, 60)}),
		Alert{Name: "MakolaBooksNotProven", Severity: Ticket, Expr: `time() - max by (book) (makola_ledger_full_check_timestamp_seconds) > 259200`}.lasting("2h").
			says("`makola_ledger_full_check_timestamp_seconds` of a book older than three days on all nodes, for two hours (it is 0 until a node's first check)",
				"{{ $labels.book }}: no check of every row has ended for three days. Look for failed checks in the log.", "books-unchecked").
			playing([]string{series(`makola_ledger_full_check_timestamp_seconds{book="ledger"}`, -300000)}, []string{growing(`makola_ledger_full_check_timestamp_seconds{book="ledger"}`, 60)}),
		above("MakolaAuditLogAltered", "makola_ledger_faults", `book="audit"`, "", 0).
			says("`makola_ledger_faults` of the book `audit` > 0", "The audit log differs from its chain: somebody changed the database. Run makola audit verify and keep a copy of the database.", "audit-log-changed"),
		Alert{Name: "MakolaAuditHeadFell", Severity: Page, Expr: `max by (job) (makola_audit_head) < max by (job) (max_over_time(makola_audit_head[1d]))`}.
			says("`makola_audit_head` below its maximum of the last day (also after a restore)", "The end of the audit log is gone, or the database went back in time. Run makola audit verify with a head from the log, unless you restored a backup.", "audit-log-changed").
			playing([]string{stepping(`makola_audit_head{instance="a"}`, 90, 80), stepping(`makola_audit_head{instance="b"}`, 90, 80)},
				[]string{growing(`makola_audit_head{instance="a"}`, 1), series(`makola_audit_head{instance="b"}`, 7)}),
		above("MakolaAuditUnlinked", "makola_audit_unlinked_seconds", "", "", 300).
			says("`makola_audit_unlinked_seconds` above 300", "New entries of the audit log are not linked. Look for the reason in the log of each node.", "audit-unlinked"),
	}
}

// people are alerts about completed and pending actions of people.
func people() []Alert {
	return []Alert{
		above("MakolaGlassBroken", "makola_break_glass", "", "", 0).
			says("`makola_break_glass` > 0", "A command ran with --break-glass, without an approver. Ask the person who ran it, and compare with makola audit list.", "break-glass-used"),
		above("MakolaActsWait", "makola_acts_waiting", "", "", 0).lasting("4h").ticket().
			says("`makola_acts_waiting` > 0 for four hours", "A change request has waited four hours for approval, and expires after 24. Ask an approver to open Approvals.", "approval-waits"),
		above("MakolaRecovery", "makola_recovery", "", "", 0).
			says("`makola_recovery` above 0", "The database may have gone back in time, and customers may get 503. Run makola recovery status.", "recovery"),
	}
}

const (
	// held is the expression for the money in an account at a provider. Unassigned money at that provider may be in
	// any of its accounts.
	held = `min by (provider, account, mode) (makola_provider_float_ghs{mode="live",account!="unassigned"})` +
		` + on (provider, mode) group_left () min by (provider, mode) (makola_provider_float_ghs{mode="live",account="unassigned"})`
	// spent selects the payments whose amounts leave floats. It excludes transfers between wallets, which have no
	// provider.
	spent = `makola_payment_amount_ghs_total{mode="live",product!="collection",provider!=""}`
)

// spentIn is the amount that left each account at a provider within a time.
func spentIn(window string) string {
	return `sum by (provider, account, mode) (increase(` + spent + `[` + window + `]))`
}

// floatAt and paidFrom are series of an account at a provider.
func floatAt(provider, account, mode string, ghs int) string {
	return series(fmt.Sprintf(`makola_provider_float_ghs{provider=%q,account=%q,mode=%q}`, provider, account, mode), ghs)
}

func paidFrom(product, provider, account, mode string) string {
	return fmt.Sprintf(`makola_payment_amount_ghs_total{product=%q,provider=%q,account=%q,mode=%q}`, product, provider, account, mode)
}

// money are alerts on payments of unknown outcome and on floats.
func money() []Alert {
	return []Alert{
		Alert{Name: "MakolaUnknownOutcomes", Severity: Page, Expr: `max by (provider, mode) (delta(makola_unknown_outcome[15m])) > 9`}.
			says("`makola_unknown_outcome` grew by ten in 15 minutes", "{{ $labels.provider }} {{ $labels.mode }}: many payments have an unknown outcome; their money is on hold. Run makola payouts stuck and check the provider's status page.", "payout-stuck").
			playing([]string{growing(`makola_unknown_outcome{provider="mtn",mode="live"}`, 1)},
				[]string{stepping(`makola_unknown_outcome{provider="mtn",mode="live"}`, 0, 1), series(`makola_unknown_outcome{provider="hubtel",mode="live"}`, 40)}),
		above("MakolaUnknownOutcomeOld", "makola_unknown_outcome_oldest_seconds", "", "provider, mode", 3600).ticket().
			says("`makola_unknown_outcome_oldest_seconds` above an hour", "{{ $labels.provider }} {{ $labels.mode }}: the outcome of a payment has been unknown for an hour. Run makola payouts stuck and compare with the provider's statement.", "payout-stuck").
			playing([]string{series(`makola_unknown_outcome_oldest_seconds{provider="mtn",mode="live"}`, 3601)}, []string{series(`makola_unknown_outcome_oldest_seconds{provider="mtn",mode="live"}`, 3600)}),
		above("MakolaStatusesUnanswered", "makola_payments_unanswered", "", "provider, mode", 20).lasting("10m").
			says("`makola_payments_unanswered` above 20 for 10 minutes", "{{ $labels.provider }} {{ $labels.mode }}: status queries get no answer; payments stay open. Check the provider's status page.", "provider-down").
			playing([]string{series(`makola_payments_unanswered{provider="mtn",mode="live"}`, 21)}, []string{series(`makola_payments_unanswered{provider="mtn",mode="live"}`, 20)}),
		Alert{Name: "MakolaContradictions", Severity: Page, Expr: `sum by (product, event) (increase(makola_payment_contradictions_total[15m])) > 0`}.
			says("`makola_payment_contradictions_total` grows", "{{ $labels.product }} {{ $labels.event }}: a provider contradicted its final status. Run makola payouts contradicted.", "payment-contradicted").
			playing([]string{growing(`makola_payment_contradictions_total{product="payout",event="reversed"}`, 1)}, []string{series(`makola_payment_contradictions_total{product="payout",event="reversed"}`, 7)}),
		Alert{Name: "MakolaFloatLow", Severity: Page, Expr: held + ` < (` + spentIn("1d") + ` > ` + spentIn("7d") + ` / 7 or ` + spentIn("7d") + ` / 7)`}.
			says("`makola_provider_float_ghs` of an account at a provider, plus unassigned money there, below one day of its payments: those of the last day, or a seventh of the last week if that is more",
				"{{ $labels.provider }} {{ $labels.account }} {{ $labels.mode }}: the float is below a day's payments; payouts will be refused. Pay in at the provider, then run makola float add.", "float-low").
			playing([]string{floatAt("mtn", "disbursement", "live", 0), floatAt("mtn", "collection", "live", 900000), floatAt("mtn", "unassigned", "live", 0),
				floatAt("hubtel", "disbursement", "live", 900000), floatAt("hubtel", "unassigned", "live", 0),
				growing(paidFrom("payout", "mtn", "disbursement", "live"), 10), growing(paidFrom("payout", "hubtel", "disbursement", "live"), 10)},
				[]string{floatAt("mtn", "disbursement", "live", 0), floatAt("mtn", "unassigned", "live", 9000), growing(paidFrom("payout", "mtn", "disbursement", "live"), 10),
					growing(paidFrom("payout", "", "", "live"), 1000),
					floatAt("hubtel", "collection", "live", 0), floatAt("hubtel", "unassigned", "live", 0), growing(paidFrom("collection", "hubtel", "collection", "live"), 10),
					floatAt("mtn", "disbursement", "test", 0), floatAt("mtn", "unassigned", "test", 0), growing(paidFrom("payout", "mtn", "disbursement", "test"), 10)}),
	}
}

// providers are alerts on providers that fail.
func providers() []Alert {
	return []Alert{
		above("MakolaBreakersOpen", "makola_provider_breakers_open", "", "provider, mode, operation", 0).lasting("5m").
			says("`makola_provider_breakers_open` > 0 for 5 minutes", "{{ $labels.provider }} {{ $labels.operation }} ({{ $labels.mode }}): circuit open; payouts are rerouted or wait. Check the provider's status page.", "provider-down").
			playing([]string{series(`makola_provider_breakers_open{provider="mtn",mode="live",operation="disburse_wallet"}`, 1), series(`makola_provider_breakers_open{provider="mtn",mode="live",operation="collect"}`, 0)},
				[]string{series(`makola_provider_breakers_open{provider="mtn",mode="live",operation="disburse_wallet"}`, 0)}),
	}
}
