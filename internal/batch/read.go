package batch

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/usertext"
)

// Row is one row of a batch.
type Row struct {
	Line      int // number of the row in the order of the file: 1, 2, 3, ...
	Source    int // number of the row's line in the file
	State     RowState
	Channel   string // the network, or book.ChannelBank
	Bank      string // id of the bank
	Account   string // MSISDN as 233XXXXXXXXX, or number of a bank account
	Name      string // of the payee
	Amount    money.Pesewas
	Charges   money.Pesewas
	Reference string // reference from the file; empty: Makola makes one
	Note      string
	Given     Given
	Problems  map[string][]string // faults of a bad row, by field
	Payment   string              // id of the payout of an accepted row
	Reason    string              // reason of a refused row
	unsettled string              // key of the text that names no network or bank

	Registered string // name under which a provider has the account; empty: none is known
	Named      NameState
	NameRail   string // rail that returned the name of a bank account; empty: none did
}

// needsName reports whether the row cannot be paid without a registered name, as every payout to a bank account.
func (r Row) needsName() bool { return r.Bank != "" && r.Registered == "" }

// PlaceOf returns the name of the network or bank of a row.
func PlaceOf(r Row) string {
	if r.Bank != "" {
		return r.Given.Network
	}
	return cmp.Or(msisdn.Network(r.Channel).Name(), r.Given.Network)
}

// Given is the original text of a row's cells.
type Given struct {
	Number    string `json:"number,omitempty"`
	Network   string `json:"network,omitempty"`
	Amount    string `json:"amount,omitempty"`
	Name      string `json:"name,omitempty"`
	Reference string `json:"reference,omitempty"`
	Note      string `json:"note,omitempty"`
}

// The fields of a row.
const (
	fieldNumber    = "number"
	fieldNetwork   = "network"
	fieldAmount    = "amount"
	fieldName      = "name"
	fieldReference = "reference"
	fieldNote      = "note"
)

func encodeGiven(g Given) string {
	b, err := json.Marshal(g)
	if err != nil {
		panic("batch: cells of strings do not encode: " + err.Error())
	}
	return string(b)
}

// maxName is how many characters a name or a note has.
const maxName = 100

// Form returns the fields of a file of payouts, with the headings that payrolls and providers give them.
func Form() sheet.Form {
	return sheet.Form{Fields: []sheet.Field{
		{Name: fieldNumber, Required: true, Looks: isNumber, Headings: []string{"phone number", "phone", "phone no", "mobile", "mobile number", "mobile no", "msisdn",
			"momo number", "momo no", "momo", "wallet", "wallet number", "account number", "account no", "account", "recipient", "beneficiary number", "tel", "telephone", "contact"}},
		{Name: fieldAmount, Required: true, Looks: isAmount, Headings: amountHeadings()},
		{Name: fieldNetwork, Looks: isNetwork, Headings: []string{"channel", "telco", "operator", "provider", "network name", "mobile network", "wallet type", "bank", "bank name", "network or bank", "bank or network"}},
		{Name: fieldName, Headings: []string{"full name", "fullname", "account name", "beneficiary", "beneficiary name", "recipient name", "employee", "employee name", "payee", "customer name"}},
		{Name: fieldReference, Headings: []string{"ref", "client reference", "transaction id", "payment reference", "staff id", "staff no", "employee id", "employee no", "id"}},
		{Name: fieldNote, Headings: []string{"narration", "description", "remarks", "remark", "purpose", "details", "comment", "memo"}},
	}}
}

// amountHeadings returns each heading of an amount, alone and with the currency, such as "Net Pay (GHS)".
func amountHeadings() []string {
	all := []string{"ghs", "cedis"}
	for _, heading := range []string{"amount", "value", "net pay", "net salary", "net amount", "salary", "pay", "payment", "payment amount", "total", "amount to pay"} {
		all = append(all, heading, heading+" ghs", heading+" gh", heading+" cedis", heading+" in cedis")
	}
	return all
}

func isNumber(text string) bool {
	_, err := msisdn.ParseCell(text)
	return err == nil
}

func isAmount(text string) bool {
	_, err := cellAmount(text)
	return err == nil && !isNumber(text)
}

func isNetwork(text string) bool {
	_, known := cellNetwork(text)
	return known
}

// moneyNames are the endings of the names of mobile money services, such as AT Money.
var moneyNames = []string{"MOBILEMONEY", "MOMO", "MONEY", "CASH"}

// cellNetwork parses a network as people write it in files, such as "AT Money" or "MTN MoMo".
func cellNetwork(text string) (msisdn.Network, bool) {
	plain := strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToUpper(r)
	}, text)
	for _, name := range moneyNames {
		if cut := strings.TrimSuffix(plain, name); cut != plain {
			plain = cut
			break
		}
	}
	return msisdn.ParseNetwork(plain)
}

// grouped is an amount with commas between thousands.
var grouped = regexp.MustCompile(`^\d{1,3}(,\d{3})+(\.\d+)?$`)

// spaced is an amount with spaces between thousands. Other spaces may hide a point: "5 00" is not 500.
var spaced = regexp.MustCompile(`^\d{1,3}( \d{3})+(\.\d+)?$`)

// cellAmount parses an amount as people write it in files: with a currency, with commas, spaces or apostrophes between
// thousands, or with the rounding errors of a spreadsheet.
func cellAmount(text string) (money.Pesewas, error) {
	plain := strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || r == '\'':
			return ' '
		case unicode.Is(unicode.Cf, r) || r == '₵':
			return -1
		}
		return unicode.ToUpper(r)
	}, text))
	for _, currency := range []string{"GHS", "GHC", "GH¢", "GH"} {
		if cut := strings.TrimSuffix(strings.TrimPrefix(plain, currency), currency); cut != plain {
			plain = strings.TrimSpace(cut)
			break
		}
	}
	if spaced.MatchString(plain) {
		plain = strings.ReplaceAll(plain, " ", "")
	}
	if grouped.MatchString(plain) {
		plain = strings.ReplaceAll(plain, ",", "")
	}
	if strings.Contains(plain, ",") {
		return 0, errors.New("must have a point before the pesewas, such as 1,200.50")
	}
	amount, err := money.ParseLenient(plain)
	if err != nil {
		return 0, errors.New("must be cedis, such as 1,200.50")
	}
	return amount, nil
}

// A reading is the way to parse the texts of rows: cells of a file, or members of JSON.
type reading struct {
	number  func(string) (msisdn.MSISDN, error)
	network func(string) (msisdn.Network, bool)
	amount  func(string) (money.Pesewas, error)
}

var (
	cells   = reading{msisdn.ParseCell, cellNetwork, cellAmount}
	members = reading{msisdn.Parse, msisdn.ParseNetwork, money.ParseLenient}
)

// ownReference is a reference that a row may bring; another text is a note.
var ownReference = regexp.MustCompile(`^[A-Za-z0-9._-]{12,36}$`)

// row reads the input of a row. A bad row has Problems.
func (r reading) row(line, source int, g Given, known banks) Row {
	row := Row{Line: line, Source: source, State: RowReady, Given: g, Name: usertext.Cut(strings.TrimSpace(g.Name), maxName), Note: strings.TrimSpace(g.Note)}
	if own := strings.TrimSpace(g.Reference); ownReference.MatchString(own) {
		row.Reference = own
	} else if own != "" {
		row.Note = strings.TrimSpace(own + " " + row.Note)
	}
	row.Note = usertext.Cut(row.Note, maxName)
	r.place(&row, known)
	amount, err := r.amount(g.Amount)
	switch {
	case strings.TrimSpace(g.Amount) == "":
		row.bad(fieldAmount, "is missing")
	case err != nil:
		row.bad(fieldAmount, err.Error())
	case amount <= 0:
		row.bad(fieldAmount, "must be above zero")
	}
	row.Amount = max(amount, 0)
	for field, text := range map[string]string{fieldName: row.Name, fieldNote: row.Note} {
		if !usertext.Storable(text) || strings.ContainsFunc(text, usertext.IsControl) {
			row.bad(field, "has characters that cannot be shown")
		}
	}
	return row
}

// place parses the network or bank of a row, and the account number. The number of a bank account is not changed.
func (r reading) place(row *Row, known banks) {
	g := row.Given
	network, isNetwork := r.network(g.Network)
	if bank, isBank := known.find(g.Network); isBank && !isNetwork {
		row.Channel, row.Bank, row.Account = book.ChannelBank, bank.ID, strings.TrimSpace(g.Number)
		if row.Account == "" {
			row.bad(fieldNumber, "is missing")
		}
		return
	}
	number, err := r.number(g.Number)
	row.Account = string(number)
	text := strings.TrimSpace(g.Network)
	if err != nil && (isNetwork || text == "" && strings.TrimSpace(g.Number) == "") {
		row.bad(fieldNumber, err.Error())
	}
	switch likely, guessed := number.LikelyNetwork(); {
	case isNetwork:
		row.Channel = string(network)
	case text != "":
		row.bad(fieldNetwork, "is neither a network nor a bank of the list")
		row.unsettled = unsettledText + usertext.Cut(strings.ToLower(text), maxUnsettled)
	case err != nil:
		row.bad(fieldNetwork, "or bank is missing")
		row.unsettled = unsettledMissing
	default:
		row.unsettled = unsettledMissing + prefixOf(number)
		if row.bad(fieldNetwork, "is missing"); guessed {
			row.Problems[fieldNetwork][0] += "; by the number it may be " + likely.Name()
		}
	}
}

// Keys of unsettled texts. Stored; never renamed.
const (
	unsettledText    = "=" // before the text in lower case
	unsettledMissing = "?" // before the first digits of the number
	maxUnsettled     = 100
)

// prefixOf returns the beginning of a number by which its network was assigned, such as 024.
func prefixOf(m msisdn.MSISDN) string {
	local := m.Local()
	return local[:min(3, len(local))]
}

// bad adds an error of a field.
func (r *Row) bad(field, why string) {
	if r.Problems == nil {
		r.Problems = map[string][]string{}
	}
	r.State = RowBad
	r.Problems[field] = append(r.Problems[field], why)
}

// A source returns rows one by one, and io.EOF after the last.
type source interface{ next() (Row, error) }

// fileRows are the rows of a table.
type fileRows struct {
	table  *sheet.Table
	known  banks
	line   int
	sum    money.Pesewas // of all rows
	totals []total

	omit           omission
	hidden, errors int // rows that were left out
}

// An omission identifies rows that the person who uploaded the file leaves out.
type omission struct {
	hidden bool // rows that a spreadsheet hides
	errors bool // rows with an error such as #N/A
}

// A total is a row with an amount and no account.
type total struct {
	source int
	amount money.Pesewas
}

func (f *fileRows) next() (Row, error) {
	for {
		from, err := f.table.Next()
		var broken *sheet.BadRow
		switch {
		case errors.As(err, &broken):
			f.line++
			row := Row{Line: f.line, Source: broken.Line}
			row.bad("row", broken.Why)
			return row, nil
		case err != nil:
			return Row{}, err
		}
		if f.skips(from) {
			continue
		}
		var g Given
		damaged := map[string]string{}
		for field, to := range map[string]*string{fieldNumber: &g.Number, fieldNetwork: &g.Network, fieldAmount: &g.Amount, fieldName: &g.Name,
			fieldReference: &g.Reference, fieldNote: &g.Note} {
			text, err := from.Text(field)
			if err != nil {
				damaged[field] = strings.TrimPrefix(err.Error(), field+" ")
				text = from.Cell(field).Text
			}
			*to = usertext.Cut(text, maxGiven)
		}
		if strings.TrimSpace(g.Number) == "" && damaged[fieldNumber] == "" {
			if amount, err := cellAmount(g.Amount); err == nil && amount > 0 {
				f.totals = append(f.totals, total{from.Line, amount})
				continue
			}
		}
		f.line++
		row := cells.row(f.line, from.Line, g, f.known)
		for field, why := range damaged {
			row.bad(field, why)
		}
		f.sum = min(f.sum+row.Amount, money.Most)
		return row, nil
	}
}

// skips reports whether a row is left out.
func (f *fileRows) skips(r sheet.Row) bool {
	if f.omit.hidden && r.Hidden {
		f.hidden++
		return true
	}
	if !f.omit.errors {
		return false
	}
	for _, field := range Form().Fields {
		if r.Cell(field.Name).Kind == sheet.Error {
			f.errors++
			return true
		}
	}
	return false
}

// maxGiven is how many characters of a cell are kept.
const maxGiven = 200

// notes compares the totals of the file with its rows.
func (f *fileRows) notes() []string {
	report := f.table.Report
	if f.omit.hidden {
		report.Hidden = 0
	}
	if f.omit.errors {
		report.Errors = 0
	}
	notes := report.Notes()
	if f.hidden > 0 {
		notes = append(notes, strconv.Itoa(f.hidden)+" hidden rows were left out")
	}
	if f.errors > 0 {
		notes = append(notes, strconv.Itoa(f.errors)+" rows with an error such as #N/A were left out")
	}
	for _, t := range f.totals {
		text := "line " + strconv.Itoa(t.source) + " has the total GHS " + money.Grouped(t.amount.String())
		if t.amount == f.sum {
			notes = append(notes, text+", which equals the sum of the rows")
		} else {
			notes = append(notes, text+", but the sum of the rows is GHS "+money.Grouped(f.sum.String()))
		}
	}
	return notes
}
