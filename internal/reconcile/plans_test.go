package reconcile

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// scanned matches a step of a plan that reads a whole table.
var scanned = regexp.MustCompile(`SCAN (statement_lines|statement_matches|statement_exceptions|statement_versions|transfers|[elmot])\b`)

var parameter = regexp.MustCompile(`\$(\d+)`)

// parameters returns the number of parameters of a query.
func parameters(sql string) (most int) {
	for _, p := range parameter.FindAllStringSubmatch(sql, -1) {
		n, _ := strconv.Atoi(p[1]) // the pattern matches only digits
		most = max(most, n)
	}
	return most
}

// No query that runs for each set or each line reads a whole table. A query uses a partial index only if the query contains the
// index's condition.
func TestQueries_readNoTableWhole(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, db.SQLite)
	for name, sql := range map[string]string{
		"linesByIdentity": linesByIdentity, "linesByReference": linesByReference, "linesOfStatement": linesOfStatement, "countDays": countDays,
		"openLines": openLines, "judgeAgain": judgeAgain, "judgeOthers": judgeOthers, "judgeLegs": judgeLegs, "matchesOfLines": matchesOfLines, "matchesOfPayments": matchesOfPayments,
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
	if plan := dbtest.PlanIn(t, d, rivals, db.RowsOf(pairs, []similarity{{"233240000000", 100}}), "s", time.Now(), time.Now()); !strings.Contains(plan, "statement_lines_party (party=? AND amount=?)") {
		t.Error(plan)
	}
}
