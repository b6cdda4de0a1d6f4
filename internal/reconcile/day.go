package reconcile

import (
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Given is the balance of one account at the end of a day, according to its statements.
type Given struct {
	Account ledger.AccountID
	Balance money.Pesewas // balance at the end of the day
	Reasons []Reason      // reasons for the difference from our books at that moment
}

// Reason explains a part of the difference between a statement and our books.
type Reason struct {
	ID     string // id of the exception; empty: the reason is a sum of several
	Amount money.Pesewas
	Text   string
	At     time.Time
}

// LateLine is a line with a date in a closed day that was imported or changed after the day was closed.
type LateLine struct {
	Line
	Account ledger.AccountID
}

const (
	// The statement that covers the end of a day, and the last one before it. Only statements whose balances chain
	// are read.
	statementAcross = `SELECT closing, first_at, last_at FROM statements WHERE source = $1 AND state = 'read' AND chains = 1 AND last_at >= $2 AND first_at < $2 ORDER BY last_at, id LIMIT 1`

	statementBefore = `SELECT closing, first_at, last_at FROM statements WHERE source = $1 AND state = 'read' AND chains = 1 AND last_at < $2 ORDER BY last_at DESC, id DESC LIMIT 1`

	statementBehind = `SELECT opening, first_at, last_at FROM statements WHERE source = $1 AND state = 'read' AND chains = 1 AND first_at >= $2 ORDER BY first_at, id LIMIT 1`

	// The change of the balance by the lines of a period. $4 is 1 if fees are charged in addition to the amounts.
	changeOfLines = `SELECT CAST(COALESCE(sum(amount - fee * $4), 0) AS INTEGER) FROM statement_lines
WHERE source = $1 AND day BETWEEN $5 AND $6 AND at >= $2 AND at <= $3 AND status = 'success'`

	// Differences at a time: open ones, and those whose money was booked after that time.
	differencesAt = `SELECT id, delta, reason, at FROM statement_exceptions WHERE source = $1 AND delta <> 0 AND at < $2
AND (ended_at = 0 OR ended_at >= $2 AND (ending NOT IN ('agreed', 'written_off') OR ending = 'agreed' AND kind = 'state')) ORDER BY at, id LIMIT $3`

	// Payments before a time whose lines are after it, and payments after it whose lines are before. A difference of status
	// explains its line by itself.
	pairsAcross = `SELECT count(DISTINCT l.id), CAST(COALESCE(sum(CASE WHEN (l.at < $2) = (t.from_account = $3) THEN t.amount ELSE -t.amount END), 0) AS INTEGER)
FROM statement_lines l JOIN statement_matches m ON m.line = l.id AND m.payment <> ''
JOIN transfers t ON t.subject = m.payment AND (t.from_account = $3 OR t.to_account = $3) AND t.leg NOT LIKE 'upheld%'
WHERE l.source = $1 AND l.day BETWEEN $4 AND $5 AND (m.leg = 'reversal') = (t.leg LIKE 'turned%') AND (l.at < $2) <> (t.at < $2)
AND NOT EXISTS (SELECT 1 FROM statement_exceptions e WHERE e.line = l.id AND e.line <> '' AND e.kind = 'state' AND e.at < $2 AND (e.ended_at = 0 OR e.ended_at >= $2))`

	// Movements of our own money on one side of a moment and their lines on the other.
	ownAcross = `SELECT count(DISTINCT l.id), CAST(COALESCE(sum(CASE WHEN (l.at < $2) = (t.from_account = $3) THEN t.amount ELSE -t.amount END), 0) AS INTEGER)
FROM statement_lines l JOIN statement_own o ON o.line = l.id
JOIN transfers t ON t.subject = o.transfer AND t.leg = CASE WHEN o.side = 'sent' THEN 'sent' ELSE 'ended' END AND (t.from_account = $3 OR t.to_account = $3)
WHERE l.source = $1 AND l.day BETWEEN $4 AND $5 AND (l.at < $2) <> (t.at < $2)`

	// Lines that are movements of our own money whose end is not booked yet.
	ownUnbooked = `SELECT count(*), CAST(COALESCE(sum(l.amount), 0) AS INTEGER) FROM statement_lines l JOIN statement_own o ON o.line = l.id
WHERE l.source = $1 AND l.at < $2 AND l.day >= $3 AND o.side = 'arrived' AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.subject = o.transfer AND t.leg = 'ended')`

	// Lines of a bank that are not yet decided, and lines whose money was booked after a time without an exception.
	linesInTransit = `SELECT count(*), CAST(COALESCE(sum(l.amount - l.fee * $3), 0) AS INTEGER) FROM statement_lines l WHERE l.source = $1 AND l.at < $2 AND l.day >= $4 AND l.status = 'success'
AND NOT EXISTS (SELECT 1 FROM statement_exceptions e WHERE e.line = l.id AND e.line <> '' AND e.kind = 'theirs_only')
AND (l.judged = 0 AND NOT EXISTS (SELECT 1 FROM statement_matches m WHERE m.line = l.id)
OR EXISTS (SELECT 1 FROM statement_matches m WHERE m.line = l.id AND m.payment = '' AND m.rule = 'person' AND m.made_at >= $2))`

	readingSource = `SELECT id FROM statement_sources WHERE mode = $1 AND reading <> '' AND reading_until > $2 ORDER BY id LIMIT 1`

	sourcesOfMode = `SELECT ` + sourceColumns + ` FROM statement_sources WHERE layout <> '' AND mode = $1 ORDER BY id LIMIT 200`

	lateLines = `SELECT ` + lineColumns + ` FROM statement_lines JOIN statements ON statements.id = statement_lines.statement
WHERE statement_lines.source = $1 AND statement_lines.day BETWEEN $2 AND $3 AND statements.read_at > $4 AND statements.read_at <= $5 ORDER BY statement_lines.day, statement_lines.id LIMIT $6`
)

// Limits of the reasons of a day.
const (
	mostReasons = 400
	mostLate    = 200
	lateDays    = 62 // number of closed days whose late lines are listed
	transitDays = 40 // number of days before a day whose lines may be in transit
	across      = 3  // days by which a payment and its line may differ around midnight
)

// apart is 1 if fees are charged in addition to the amounts, else 0.
func (s Source) apart() int64 {
	if s.withinFees() {
		return 0
	}
	return 1
}

func sourcesOf(tx *db.Tx, mode string) ([]Source, error) {
	return db.All(tx, sourcesOfMode, []any{mode}, (*Source).scan)
}

// CheckRead refuses while a statement of the mode is being read: its lines are stored in part.
func CheckRead(tx *db.Tx, mode string, now time.Time) error {
	var source string
	found, err := tx.One(readingSource, []any{mode, now}, &source)
	if err == nil && found {
		e := problem.New(problem.InProgress, "statement_in_progress", "A statement of "+source+" is being read: try again in a moment")
		e.RetryAfter = 5 * time.Second
		err = e
	}
	return err
}

// AtDay returns the balances of statements at the end of a day, with the reasons why they differ from our books. It
// leaves out an account whose statements do not show that balance.
func AtDay(tx *db.Tx, mode string, begin, end time.Time) (list []Given, err error) {
	sources, err := sourcesOf(tx, mode)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		g := Given{Account: s.Ledger().ID}
		found := false
		if g.Balance, found, err = balanceAt(tx, s, begin, end); err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		if g.Reasons, err = reasonsAt(tx, s, end); err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

// balanceAt returns the balance of a source at the end of a day. If a statement covers the end, it is that
// statement's balance less the later lines. Otherwise it is the last balance before the end, if that is of the same
// day or a later statement follows from it.
func balanceAt(tx *db.Tx, s Source, begin, end time.Time) (balance money.Pesewas, found bool, err error) {
	var first, last time.Time
	if found, err = tx.One(statementAcross, []any{s.ID, end}, &balance, &first, &last); err != nil || found {
		if err != nil {
			return 0, false, err
		}
		var later money.Pesewas
		_, err = tx.One(changeOfLines, []any{s.ID, end, last, s.apart(), dayOf(end), dayOf(last)}, &later)
		return balance - later, true, err
	}
	if found, err = tx.One(statementBefore, []any{s.ID, end}, &balance, &first, &last); err != nil || !found {
		return 0, false, err
	}
	if !last.Before(begin) {
		return balance, true, nil
	}
	var opening money.Pesewas
	found, err = tx.One(statementBehind, []any{s.ID, end}, &opening, &first, &last)
	return balance, found && opening == balance, err
}

// reasonsAt returns why the balance of a source differs from our books at a moment.
func reasonsAt(tx *db.Tx, s Source, end time.Time) (list []Reason, err error) {
	n, rest := 0, money.Pesewas(0)
	err = tx.Query(differencesAt, []any{s.ID, end, int64(maxReasonsRead)}, func(r *db.Row) error {
		var one Reason
		err := r.Scan(&one.ID, &one.Amount, &one.Text, &one.At)
		if len(list) < mostReasons {
			list = append(list, one)
		} else {
			n, rest = n+1, rest+one.Amount
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if n > 0 {
		list = append(list, Reason{Amount: rest, Text: fmt.Sprintf("%d other exceptions", n), At: end})
	}
	if s.Bank() {
		var lines int
		var sum money.Pesewas
		if _, err := tx.One(linesInTransit, []any{s.ID, end, s.apart(), dayOf(end) - transitDays}, &lines, &sum); err != nil {
			return nil, err
		}
		if sum != 0 {
			list = append(list, Reason{Amount: sum, Text: fmt.Sprintf("In transit: %d lines of the statement", lines), At: end})
		}
	}
	if list, err = ownReasons(tx, s, end, list); err != nil {
		return nil, err
	}
	var pairs int
	var sum money.Pesewas
	if _, err := tx.One(pairsAcross, []any{s.ID, end, s.Ledger().ID, dayOf(end) - across, dayOf(end) + across}, &pairs, &sum); err != nil {
		return nil, err
	}
	if sum != 0 {
		list = append(list, Reason{Amount: sum, Text: fmt.Sprintf("In transit at midnight: %d payments", pairs), At: end})
	}
	return list, nil
}

// ownReasons adds the movements of our own money that are before a moment in our books and after it in the statement, or the
// reverse.
func ownReasons(tx *db.Tx, s Source, end time.Time, list []Reason) ([]Reason, error) {
	var across, unbooked int
	var sum, open money.Pesewas
	if _, err := tx.One(ownAcross, []any{s.ID, end, s.Ledger().ID, dayOf(end) - transitDays, dayOf(end) + transitDays}, &across, &sum); err != nil {
		return nil, err
	}
	if _, err := tx.One(ownUnbooked, []any{s.ID, end, dayOf(end) - transitDays}, &unbooked, &open); err != nil {
		return nil, err
	}
	if sum += open; sum != 0 {
		list = append(list, Reason{Amount: sum, Text: fmt.Sprintf("Our own transfers in transit: %d", across+unbooked), At: end})
	}
	return list, nil
}

// maxReasonsRead bounds the differences that explain one day.
const maxReasonsRead = 100_000

// LateLines returns the lines with dates before a day that were imported or changed within a period, such as since the last day was
// closed.
func LateLines(tx *db.Tx, mode string, day, from, until time.Time) (list []LateLine, err error) {
	sources, err := sourcesOf(tx, mode)
	if err != nil {
		return nil, err
	}
	last := dayOf(day) - 1
	for _, s := range sources {
		lines, err := queryLines(tx, lateLines, s.ID, last-lateDays, last, from, until, int64(mostLate-len(list)))
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			list = append(list, LateLine{l, s.Ledger().ID})
		}
	}
	return list, nil
}
