package app

// recoverySearch is the file in which a recovery decides which payments may be debited and sent.
const recoverySearch = "internal/payments/recovery_search.go"

// recoveryRules: a restored database does not pay twice.
func recoveryRules() []mutant {
	return []mutant{
		{"recovery-asks-before-a-debit", "in a recovery every rail is asked before a debit", accepting,
			`{p.prepare, p.beforeDebit, p.requireApproval}`, `{p.prepare, p.requireApproval}`,
			byTest("payments", "TestRecovery_silentRail/SQLite")},
		{"recovery-adopts", "what a rail knows is asked about and not sent", accepting,
			`a.attempt.rail, a.attempt.stage, a.attempt.arrived = pay.Rail, stageSent, 1`, `a.attempt.rail = pay.Rail`,
			byTest("payments", "TestRecovery_paysOnce/hubtel paid/SQLite")},
		{"ring-reference", "references stay under the first key of the installation", "internal/config/ring.go",
			`		ring.key = one
`, `		if i == 0 {
			ring.key = one
		}
`,
			byTest("payments", "TestRecovery_rotatedMasterKey/SQLite")},
		{"probe-given-back", "a half-open breaker's probe that submits nothing is the next request's", accepting,
			`a.probe.GiveBack(ctx) // this request submits nothing`, `// this request submits nothing`,
			byTest("payments", "TestProbe_returnedByRequest/a payment that a recovery adopts/SQLite")},
		{"recovery-one-rail", "an amount that the wallet does not cover is no 400 while the one rail may have it", recoverySearch,
			`found.maybeSent = found.wait > 0 || found.silent != ""`, `found.maybeSent = false`,
			byTest("payments", "TestRecovery_onlyRailHasPayment/SQLite")},
		{"recovery-conflict-over", "a conflict is over when its payment is adopted", accepting,
			`if a.Adopted { // resolves a conflict that`, `if a.Adopted && a.claimed { // resolves a conflict that`,
			byTest("payments", "TestRecovery_conflictWaits/SQLite")},
		{"recovery-silence", "a rail's silence lets nothing through", recoverySearch,
			`found.silent = rails[i].Name`, `_ = rails[i].Name`,
			byTest("payments", "TestRecovery_silentRail/SQLite")},
		{"recovery-closed", "nor does a closed recovery", accepting,
			`	case s.Closed():
		return errRecovering(`, `	case s.Closed() && pay.ID == "":
		return errRecovering(`,
			byTest("payments", "TestRecovery_silentRail/SQLite")},
		{"recovery-v", "not known counts from V after the recovery began", recoverySearch,
			`found.wait = max(found.wait, rails[i].SearchableAfter()-rs.recovery.Age(s))`, `found.wait = 0`,
			byTest("payments", "TestRecovery_notFoundBeforeVisible/SQLite")},
		{"recovery-age", "and the clock does not shorten that", "internal/recovery/recovery.go",
			`return r.clock.Elapsed() - s.saw`, `return r.clock.Since(s.BegunAt)`,
			byTest("payments", "TestClockSetForward_recoveryWaits/SQLite")},
		{"recovery-first", "nor the wait of a refusal in its first minutes", recoverySearch,
			`rs.recovery.Age(s) < rail.SearchableAfter()`, `rs.recovery.Age(s) < 0`,
			byTest("payments", "TestClockSetForward_recoveryWaits/SQLite")},
		{"recovery-account-ahead", "an account of before is unseen, whatever its date", "internal/recovery/recovery.go",
			`{sqlUnsee, []any{now}},`, ``,
			byTest("recovery", "TestClockStepped_accountsAndOpenWork/SQLite")},
		{"recovery-differs", "a reference with another amount is an operator's", recoverySearch,
			`found.rail, found.differs, found.outcome = rails[i], true, o`, `found.rail = rails[i]`,
			byTest("payments", "TestRecovery_conflictWaits/SQLite")},
		{"recovery-not-covered", "so is what the wallet does not cover", accepting,
			`if a.Adopted && problem.Is(err, problem.InsufficientFunds) {`, `if a.Adopted && problem.Is(err, problem.NotFound) {`,
			byTest("payments", "TestRecovery_conflictWaits/SQLite")},
		{"recovery-open-rows", "what was open is looked for everywhere before it is sent", jobOfOne,
			`func (r *run) submit(ctx context.Context) jobs.Outcome {
	if ok, out := r.beforeSubmission(ctx); !ok {
		return out
	}
`, `func (r *run) submit(ctx context.Context) jobs.Outcome {
`,
			byTest("payments", "TestRecovery_openPaymentsAreSearched/TELECEL gone elsewhere/SQLite")},
		{"recovery-open-rows-again", "also before it is sent again", jobOfOne,
			`func (r *run) resubmit(ctx context.Context) jobs.Outcome {
	if ok, out := r.beforeSubmission(ctx); !ok {
		return out
	}
`, `func (r *run) resubmit(ctx context.Context) jobs.Outcome {
`,
			byTest("payments", "TestRecovery_openPaymentsAreSearched/MTN gone elsewhere/SQLite")},
		{"recovery-without-a-key", "a purchase that no key names waits for an operator", accepting,
			`case pay.Details.Generated && pay.IdempotencyKey == "" && !s.Allows(pay.Tenant):`, `case pay.Details.Generated && pay.ID == "":`,
			byTest("payments", "TestRecovery_purchaseWithoutKey/SQLite")},
		{"recovery-minted-days", "one with a key is looked for under the references of the days before", accepting,
			`const generatedDays = 7`, `const generatedDays = 0`,
			byTest("payments", "TestRecovery_purchaseWithoutKey/SQLite")},
		{"recovery-forgotten", "what may only be forgotten is not said to be unknown", recoverySearch,
			`	case s.Lasts():
		return errRecovering(`, `	case s.Closed() && code == "":
		return errRecovering(`,
			byTest("payments", "TestRecovery_silentRail/SQLite")},
		{"recovery-claim", "a claim is never sent", accepting,
			`if a.claimed && !a.Adopted {`, `if a.claimed && a.Adopted && false {`,
			byTest("payments", "TestClaim_adoptedNeverSent/SQLite")},
		{"recovery-claim-late", "nor when its recovery has ended meanwhile", accepting,
			`if err == nil && a.claimed {`, `if err == nil && a.claimed && false {`,
			byTest("payments", "TestClaim_recoveryEndsDuringSweep/SQLite")},
		{"recovery-webhook-id", "both lives tell a word under one webhook-id", settling,
			`sum := sha256.Sum256([]byte(p.ProviderReference +`, `sum := sha256.Sum256([]byte(NewID(time.Now()) + p.ProviderReference +`,
			byTest("payments/book", "TestEventID_sameAfterRestore")},
		{"recovery-campaigns", "campaigns wait until an operator lets them through", "internal/recovery/recovery.go",
			`s.Lasts() && !s.Allows(tenant), err`, `s.Lasts() && tenant == "", err`,
			byTest("messaging", "TestRecovery_campaignsWait/SQLite")},
	}
}
