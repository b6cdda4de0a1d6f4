package recovery

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// claimsHeading are the columns of a file of claims. The last one may be left out
// where no row is about a bank.
var claimsHeading = []string{"kind", "reference", "amount", "party", "channel", "bank_id"}

// claimKinds are the products that can be claimed. A data package has an offer,
// which cannot be known any more.
var claimKinds = []string{"collection", "payout", "topup"}

// ReadClaims reads a customer's claims from CSV with a heading: kind, reference,
// amount in cedis, party (a number, or an account with channel BANK), channel and
// bank_id. The first bad line is named.
func ReadClaims(from io.Reader, tenant, actor string) ([]Claim, error) {
	file := csv.NewReader(from)
	file.TrimLeadingSpace, file.FieldsPerRecord = true, -1
	var list []Claim
	for line := 1; ; line++ {
		row, err := file.Read()
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, badClaims(line, err.Error())
		case line == 1 && slices.Equal(row, claimsHeading[:min(len(row), len(claimsHeading))]):
			continue
		case len(list) == claimsAtOnce:
			return nil, badClaims(line, fmt.Sprintf("a file has at most %d claims", claimsAtOnce))
		}
		c, why := readClaim(row)
		if why != "" {
			return nil, badClaims(line, why)
		}
		c.Tenant, c.Actor = tenant, actor
		list = append(list, c)
	}
}

func badClaims(line int, why string) error {
	return problem.New(problem.Malformed, "bad_claims", fmt.Sprintf("Line %d: %s", line, why))
}

// readClaim reads one row, or says what is wrong with it.
func readClaim(row []string) (c Claim, why string) {
	if len(row) < len(claimsHeading)-1 || len(row) > len(claimsHeading) {
		return c, "the columns are " + strings.Join(claimsHeading, ", ")
	}
	amount, err := money.Parse(row[2])
	if err != nil || amount <= 0 {
		return c, "amount must be cedis above zero"
	}
	c = Claim{Kind: row[0], Reference: row[1], Amount: int64(amount), Party: row[3]}
	if len(row) == len(claimsHeading) {
		c.Bank = row[5]
	}
	switch network, known := msisdn.ParseNetwork(row[4]); {
	case !slices.Contains(claimKinds, c.Kind):
		return c, "kind must be one of " + strings.Join(claimKinds, ", ")
	case c.Reference == "":
		return c, "reference is missing"
	case row[4] == "BANK" && c.Kind == "payout" && c.Bank != "" && c.Party != "":
		c.Channel = "BANK"
	case row[4] == "BANK":
		return c, "a payout to a bank has party and bank_id"
	case !known:
		return c, "channel must be a network, or BANK"
	default:
		number, err := msisdn.Parse(c.Party)
		if err != nil || c.Bank != "" {
			return c, "party must be a number of Ghana, without a bank_id"
		}
		c.Channel, c.Party = string(network), string(number)
	}
	return c, ""
}
