package reconcile

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// scanned is a step of a plan that reads a table from its beginning to its end.
var scanned = regexp.MustCompile(`SCAN (statement_lines|statement_matches|statement_exceptions|statement_versions|transfers|[elmot])\b`)

var parameter = regexp.MustCompile(`\$(\d+)`)

// parameters returns the number of parameters of a query.
func parameters(sql string) (most int) {
	for _, p := range parameter.FindAllStringSubmatch(sql, -1) {
		n, _ := strconv.Atoi(p[1]) // the pattern has digits alone
		most = max(most, n)
	}
	return most
}

// A statement that runs for each set, or for each line, reads no table whole. An index of some rows serves only a query that names the
// condition of the index.
func TestQueries_readNoTableWhole(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, db.SQLite)
	for name, sql := range map[string]string{
		"linesByIdentity": linesByIdentity, "linesByReference": linesByReference, "linesOfStatement": linesOfStatement, "countDays": countDays,
		"openLines": openLines, "judgeAgain": judgeAgain, "matchesOfLines": matchesOfLines, "matchesOfPayments": matchesOfPayments,
		"undoneOfLines": undoneOfLines, "bookedFees": bookedFees, "exceptionsOfLines": exceptionsOfLines,
		"exceptionsOfPayments": exceptionsOfPayments, "everyOfPayments": everyOfPayments, "standingExceptions": standingExceptions,
		"sumOfSettlement": sumOfSettlement, "insertSettled": insertSettled, "countAlike": countAlike, "selectExceptions": selectExceptions,
		"selectSuspended": selectSuspended, "filesOfLines": filesOfLines, "uploadersOfVersions": uploadersOfVersions, "unusedCredits": unusedCredits,
		"changeOfLines": changeOfLines, "differencesAt": differencesAt, "pairsAcross": pairsAcross, "ownAcross": ownAcross, "ownUnbooked": ownUnbooked,
		"linesInTransit": linesInTransit, "lateLines": lateLines, "movedByAttempts": movedByAttempts, "openSettlements": openSettlements, "deniedPayments": deniedPayments, "bookedLines": bookedLines,
	} {
		if plan := dbtest.PlanIn(t, d, sql, make([]any, parameters(sql))...); scanned.MatchString(plan) {
			t.Errorf("%s reads a table whole: %s", name, plan)
		}
	}
}
