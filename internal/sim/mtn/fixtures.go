package mtn

import (
	"strconv"
	"strings"

	"github.com/makola/makola/internal/sim"
)

// collectFixtures and transferFixtures are the outcomes of MTN's sandbox for the numbers from 46733123450 on.
var (
	collectFixtures = []sim.Reason{"INTERNAL_PROCESSING_ERROR", "APPROVAL_REJECTED", "EXPIRED", "", "PENDING", "PAYER_NOT_FOUND",
		"PAYEE_NOT_ALLOWED_TO_RECEIVE", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY",
		"INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE", "COULD_NOT_PERFORM_TRANSACTION"}
	transferFixtures = []sim.Reason{"INTERNAL_PROCESSING_ERROR", "APPROVAL_REJECTED", "EXPIRED", "", "PENDING", "NOT_ENOUGH_FUNDS",
		"PAYER_LIMIT_REACHED", "PAYEE_NOT_FOUND", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY",
		"INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE"}
)

// refundFixtures are the outcomes of MTN's sandbox for refunds of the references from 1 on, which were never paid.
var refundFixtures = []sim.Reason{"PAYER_NOT_FOUND", "INTERNAL_PROCESSING_ERROR", "APPROVAL_REJECTED", "EXPIRED", "", "PENDING",
	"NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "INTERNAL_PROCESSING_ERROR",
	"SERVICE_UNAVAILABLE", "COULD_NOT_PERFORM_TRANSACTION"}

// somebody is the customer of requests that name none: refunds of the test references, and consents for the
// placeholder of MTN's documents.
const somebody = "46733999999"

// fixture returns the plan of one of MTN's test numbers, or nil for any other number.
func fixture(resource, party string) *sim.Plan {
	n, ok := testNumber(party)
	if !ok {
		return nil
	}
	if resource == "transfer" || resource == "cashtransfer" || resource == "refund" { // movements from our account to a payee
		return planOf(transferFixtures, n)
	}
	return planOf(collectFixtures, n) // also for deposits
}

// refundFixture returns the plan of a refund of one of MTN's test references, or nil for another reference.
func refundFixture(reference string) *sim.Plan {
	n, err := strconv.Atoi(reference)
	if err != nil || n < 1 || reference != strconv.Itoa(n) {
		return nil
	}
	return planOf(refundFixtures, n-1)
}

func planOf(table []sim.Reason, n int) *sim.Plan {
	if n >= len(table) {
		return nil
	}
	switch r := table[n]; r {
	case "": // "ongoing": succeeds when asked half a minute later
		return &sim.Plan{Delay: 15 * sim.SettleSoon}
	case "PENDING":
		return &sim.Plan{Wait: true}
	default:
		return &sim.Plan{Delay: sim.SettleSoon, Then: sim.Failed, Reason: r}
	}
}

// testNumber returns the position of a number in the list of test numbers from 46733123450, starting at 0.
func testNumber(party string) (n int, ok bool) {
	last, found := strings.CutPrefix(party, "467331234")
	n, err := strconv.Atoi(last)
	return n - 50, found && err == nil && len(last) == 2 && n >= 50
}
