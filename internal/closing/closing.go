// Package closing closes the days of the books. It compares the money owed to customers with the money held, writes the journal for an
// accountant, compares each float and bank account with its statement, and closes a day once two people have signed it.
//
// A day is one of Accra, whose clock is UTC. Our side of a day is the transfers that are dated in it. A transfer that is dated into a day
// that is closed belongs to the next open day, which lists it.
//
// Files, from the top down; each stands on those below it:
//
//	month.go     statement totals of a month of closed days
//	close.go     a day closed, and opened again
//	day.go       the figures of a day, by account
//	given.go     balances of imported statements or that people typed, and exceptions
//	funds.go     what we owe to customers against what we hold
//	journal.go   the journal, and totals by account
//	codes.go     the accountant's codes of accounts
//	date.go      days of Accra
package closing
