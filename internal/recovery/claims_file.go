package recovery

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// claimKinds are the products that can be claimed. A data package cannot be claimed, because its offer is no longer
// known.
var claimKinds = []string{"collection", "payout", "topup"}

// claimsForm returns the fields of a file of claims.
func claimsForm() sheet.Form {
	isKind := func(text string) bool { return slices.Contains(claimKinds, strings.ToLower(text)) }
	return sheet.Form{Fields: []sheet.Field{
		{Name: "kind", Required: true, Looks: isKind, Headings: []string{"type"}},
		{Name: "reference", Required: true, Headings: []string{"client reference", "ref"}},
		{Name: "amount", Required: true, Headings: []string{"amount ghs"}},
		{Name: "party", Required: true, Headings: []string{"phone number", "phone", "number", "msisdn", "account", "account number"}},
		{Name: "channel", Required: true, Headings: []string{"network"}},
		{Name: "bank_id", Headings: []string{"bank"}},
	}}
}

// ReadClaims reads a customer's claims from a table. Its columns are kind, reference, amount in cedis, party (a
// number, or an account with channel BANK), channel and bank_id. If a row is invalid, ReadClaims returns an error
// that names the row, and no claims.
func ReadClaims(from io.Reader, o sheet.Options, tenant, actor string) (list []Claim, report sheet.Report, err error) {
	file, err := sheet.Open(from)
	if err != nil {
		return nil, report, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	rows, err := file.Table(claimsForm(), o)
	if err != nil {
		return nil, report, err
	}
	if rows.Rows > claimsAtOnce {
		return nil, report, problem.Field("file", fmt.Sprintf("must have at most %d claims", claimsAtOnce))
	}
	for {
		row, err := rows.Next()
		var bad *sheet.BadRow
		switch {
		case errors.Is(err, io.EOF):
			return list, rows.Report, nil
		case errors.As(err, &bad):
			return nil, report, badClaims(bad.Line, bad.Why)
		case err != nil:
			return nil, report, err
		}
		c, err := readClaim(row)
		if err != nil {
			return nil, report, badClaims(row.Line, err.Error())
		}
		c.Tenant, c.Actor = tenant, actor
		list = append(list, c)
	}
}

func badClaims(line int, why string) error {
	return problem.New(problem.Malformed, "bad_claims", fmt.Sprintf("Line %d: %s", line, why))
}

// readClaim reads one row.
func readClaim(row sheet.Row) (c Claim, err error) {
	var kind, amount, channel string
	for _, field := range []struct {
		name string
		to   *string
	}{{"kind", &kind}, {"reference", &c.Reference}, {"amount", &amount}, {"party", &c.Party}, {"channel", &channel}, {"bank_id", &c.Bank}} {
		if *field.to, err = row.Text(field.name); err != nil {
			return c, err
		}
	}
	c.Kind = strings.ToLower(kind)
	pesewas, err := money.Parse(amount)
	if err != nil || pesewas <= 0 {
		return c, errors.New("amount must be cedis above zero")
	}
	c.Amount = int64(pesewas)
	switch network, known := msisdn.ParseNetwork(channel); {
	case !slices.Contains(claimKinds, c.Kind):
		return c, errors.New("kind must be one of " + strings.Join(claimKinds, ", "))
	case c.Reference == "":
		return c, errors.New("reference is missing")
	case strings.EqualFold(channel, "BANK") && c.Kind == "payout" && c.Bank != "" && c.Party != "":
		c.Channel = "BANK"
	case strings.EqualFold(channel, "BANK"):
		return c, errors.New("a payout to a bank must have party and bank_id")
	case !known:
		return c, errors.New("channel must be a network, or BANK")
	default:
		number, err := msisdn.ParseCell(c.Party)
		if err != nil || c.Bank != "" {
			return c, errors.New("party must be a Ghanaian number, and bank_id must be empty")
		}
		c.Channel, c.Party = string(network), string(number)
	}
	return c, nil
}
