package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/unicode"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

const mtnHeading = `Id,"External Transaction Id","Date","Status","Type","Provider Category","Information","Note/Message","From","From Name","From Handler Name","To","To Name","To Handler Name","Initiated By","On Behalf Of","Amount","Currency","Fee","Currency","Discount","Currency","Promotion","Currency","Coupon","Currency","Balance","Currency"` + "\n"

// mtnRow returns a row of MTN's file.
func mtnRow(id, reference, at, status, from, to, amount, fee, balance string) string {
	return fmt.Sprintf("%s,%s,%s,%s,Transfer,,,,%s,,,%s,,,,,%s,GHS,%s,GHS,,GHS,,GHS,,GHS,%s,GHS\n", id, reference, at, status, from, to, amount, fee, balance)
}

const (
	refA = "0192f0c4-0000-7000-8000-00000000000a"
	refB = "0192f0c4-0000-7000-8000-00000000000b"
)

// readText reads a file whole.
func readText(text, profile string, saved *Layout, answers Layout) (*reader, []Line, error) {
	file, err := sheet.Open(strings.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	p, _ := ProfileOf(profile)
	r, err := survey(file, p, saved, answers)
	if err != nil || len(r.Questions) > 0 {
		return r, nil, err
	}
	var lines []Line
	err = r.lines(func(l Line) error { lines = append(lines, l); return nil })
	return r, lines, err
}

func mustRead(t *testing.T, text, profile string, answers Layout) (*reader, []Line) {
	t.Helper()
	r, lines, err := readText(text, profile, nil, answers)
	if err != nil {
		t.Fatal(fields(err))
	}
	if len(r.Questions) > 0 {
		t.Fatalf("asked %v", r.Questions)
	}
	return r, lines
}

// fields returns the texts of a refusal.
func fields(err error) string {
	if err == nil {
		return ""
	}
	var texts []string
	if e := problem.From(err); e != nil {
		for _, list := range e.Fields {
			texts = append(texts, list...)
		}
	}
	return strings.Join(append(texts, err.Error()), "; ")
}

// MTN's file has 28 columns, six of them called Currency. Amounts, fees and balances are read from their own columns.
func TestRead_mtnColumns(t *testing.T) {
	text := mtnHeading +
		mtnRow("101", refA, "2026-11-20 18:18:05", "Successful", "FRI:233241234567/MSISDN", "FRI:1/USER", "50.00", "0.50", "149.50") +
		mtnRow("102", refB, "2026-11-20 18:19:00", "Failed", "FRI:1/USER", "FRI:233241234567/MSISDN", "-10.00", "0.00", "149.50") +
		mtnRow("103", "", "2026-11-20 18:20:00", "Successful", "FRI:1/USER", "FRI:233201234567/MSISDN", "-20.00", "0.50", "129.00")
	r, lines := mustRead(t, text, "mtn", Layout{})
	if len(lines) != 3 || !r.Chains || r.Opening != 10_000 || r.Closing != 12_900 {
		t.Fatalf("read %d lines, chains %v, from %s to %s", len(lines), r.Chains, r.Opening, r.Closing)
	}
	a, b, c := lines[0], lines[1], lines[2]
	if a.Amount != 5000 || a.Fee != 50 || a.Reference != refA || a.Party != "233241234567" || a.Identity != "i:101" || !a.At.Equal(time.Date(2026, 11, 20, 18, 18, 5, 0, time.UTC)) {
		t.Errorf("the first line is %+v", a)
	}
	if b.Status != StatusFailed || b.Amount != -1000 || b.Party != "233241234567" {
		t.Errorf("the second line is %+v", b)
	}
	if c.Amount != -2000 || c.Party != "233201234567" {
		t.Errorf("the third line is %+v", c)
	}
}

// Amounts without a sign get their direction from the balance, also if the newest line comes first.
func TestRead_amountsWithoutSign(t *testing.T) {
	rows := []string{
		mtnRow("1", "", "2026-11-20 08:00:00", "Successful", "FRI:233241234567/MSISDN", "us", "50.00", "", "150.00"),
		mtnRow("2", "", "2026-11-20 09:00:00", "Successful", "us", "FRI:233241234567/MSISDN", "20.00", "", "130.00"),
		mtnRow("3", "", "2026-11-20 10:00:00", "Successful", "FRI:233241234567/MSISDN", "us", "5.00", "", "135.00"),
	}
	rows[0] = strings.Replace(rows[0], "Transfer", "Deposit", 1)
	want := map[string]money.Pesewas{"1": 5000, "2": -2000, "3": 500}
	for name, order := range map[string][]int{"oldest first": {0, 1, 2}, "newest first": {2, 1, 0}} {
		text := mtnHeading
		for _, i := range order {
			text += rows[i]
		}
		r, lines := mustRead(t, text, "mtn", Layout{})
		if r.Sign != SignBalance || len(lines) != 3 {
			t.Fatalf("%s: the sign is %s of %d lines", name, r.Sign, len(lines))
		}
		for _, l := range lines {
			if l.Amount != want[l.TheirID] {
				t.Errorf("%s: line %s has %s, want %s", name, l.TheirID, l.Amount, want[l.TheirID])
			}
		}
	}
}

const bankText = `GHANA BANK PLC;;;;;
Statement of account;0123;;;;
;;;;;
Trans Date;Reference;Value Date;Debit;Credit;Balance;Remarks
;;;;;1.000,00;Opening balance
20-Nov-2026;REF1;20-Nov-2026;;1.200,50;2.200,50;DEPOSIT ADOM STORES
21-Nov-2026;;21-Nov-2026;200,50;;2.000,00;CHARGES
21-Nov-2026;;21-Nov-2026;200,50;;1.799,50;CHARGES
;;;401,00;1.200,50;;TOTAL
Printed on 22-Nov-2026;;;;;;Page 1 of 1
`

// A bank's file may have a letterhead, semicolons, decimal commas, an opening balance, totals and a footer.
func TestRead_bankFile(t *testing.T) {
	r, lines := mustRead(t, bankText, "bank", Layout{})
	if len(lines) != 3 || !r.Chains || r.Opening != 100_000 || r.Closing != 179_950 {
		t.Fatalf("read %d lines, chains %v, from %s to %s", len(lines), r.Chains, r.Opening, r.Closing)
	}
	if lines[0].Amount != 120_050 || lines[0].Settlement != "REF1" || lines[0].Text != "DEPOSIT ADOM STORES" || lines[1].Amount != -20_050 {
		t.Errorf("read %+v", lines)
	}
	if lines[1].Identity == lines[2].Identity {
		t.Error("two equal charges with other balances are one line")
	}
}

// Texts in Windows-1252 and UTF-16 are read like texts in UTF-8.
func TestRead_encodings(t *testing.T) {
	text := strings.Replace(bankText, "ADOM STORES", "ADOM CAFÉ", 1)
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"UTF-8": text, "UTF-16": utf16, "Windows-1252": strings.Replace(text, "É", "\xc9", 1), "with a mark": "\ufeff" + text} {
		if _, lines := mustRead(t, text, "bank", Layout{}); lines[0].Text != "DEPOSIT ADOM CAFÉ" {
			t.Errorf("%s: read %q", name, lines[0].Text)
		}
	}
}

// Equal lines of a day without a balance are numbered, so that each can be identified.
func TestRead_numbersEqualLines(t *testing.T) {
	_, lines := mustRead(t, "Date,Description,Debit,Credit\n20/11/2026,FEE,1.00,\n20/11/2026,FEE,1.00,\n", "bank", Layout{})
	if len(lines) != 2 || lines[1].Identity != lines[0].Identity+"#2" {
		t.Errorf("read %+v", lines)
	}
}

// If two readings fit, a person is asked: about the order of dates, and about the sign without balances.
func TestRead_questions(t *testing.T) {
	const dates = "Date,Description,Debit,Credit\n03/04/2026,A,1.00,\n05/06/2026,B,,2.00\n"
	r, _, err := readText(dates, "bank", nil, Layout{})
	if err != nil || len(r.Questions) != 1 || r.Questions[0].Name != QuestionDates || len(r.Sample) != 2 {
		t.Fatalf("asked %v, showed %v: %v", r.Questions, r.Sample, err)
	}
	_, lines := mustRead(t, dates, "bank", Layout{Dates: MonthFirst})
	if lines[0].At.Month() != time.March {
		t.Errorf("the first line is of %s", lines[0].At)
	}
	const signs = "Date,Description,Amount\n2026-04-13,A,1.00\n2026-04-14,B,-2.00\n"
	r, _, err = readText(signs, "bank", nil, Layout{})
	if err != nil || len(r.Questions) != 1 || r.Questions[0].Name != QuestionSign {
		t.Fatalf("asked %v: %v", r.Questions, err)
	}
	if _, lines = mustRead(t, signs, "bank", Layout{Sign: SignOut}); lines[0].Amount != -100 || lines[1].Amount != 200 {
		t.Errorf("read %+v", lines)
	}
}

// A file that cannot be read as a whole is refused, with the row and the column.
func TestRead_refusals(t *testing.T) {
	good := func(id string, balance string) string {
		return mtnRow(id, "", "2026-11-20 18:18:05", "Successful", "a", "b", "1.00", "", balance)
	}
	for name, c := range map[string]struct{ text, profile, want string }{
		"a broken amount":        {mtnHeading + good("1", "10.00") + strings.Replace(good("2", "11.00"), "1.00,GHS", "1.0x,GHS", 1), "mtn", "row 3, column Amount: must be an amount"},
		"a missing amount":       {mtnHeading + strings.Replace(good("2", "11.00"), "1.00,GHS", ",GHS", 1), "mtn", "row 2, column Amount: is missing"},
		"a gap of balances":      {mtnHeading + good("1", "10.00") + good("2", "12.00"), "mtn", "row 3 has a balance that does not follow"},
		"a balance is a failure": {mtnHeading + good("1", "10.00") + strings.Replace(strings.Replace(good("2", "11.00"), "Successful", "Failed", 1), "18:18", "19:18", 1), "mtn", "row 3 has a balance"},
		"digits that are lost":   {mtnHeading + good("2.33E+11", "10.00"), "mtn", "row 2, column Id: has a number such as 2.4E+11"},
		"an unknown state":       {mtnHeading + strings.Replace(good("1", "10.00"), "Successful", "Maybe", 1), "mtn", "unknown state"},
		"another currency":       {mtnHeading + strings.Replace(good("1", "10.00"), "1.00,GHS", "1.00,USD", 1), "mtn", "must be GHS"},
		"an impossible date":     {mtnHeading + strings.Replace(good("1", "10.00"), "11-20", "13-20", 1), "mtn", "row 2, column Date: must be a date"},
		"dates of both orders":   {"Date,Details,Debit,Credit\n13/04/2026,a,1.00,\n04/13/2026,b,1.00,\n", "bank", "row 3 has a date in another order"},
		"a wrong total":          {"Date,Details,Debit,Credit\n13/04/2026,a,1.00,\n,Total,2.00,\n", "bank", "the total is 2.00, and the rows above add up to 1.00"},
		"two marks of decimals":  {"Date;Details;Debit;Credit\n13/04/2026;a;1.00;\n13/04/2026;b;1,00;\n", "bank", "another decimal mark"},
		"an open quote":          {mtnHeading + good("1", "10.00") + `2,"` + "\n", "mtn", "row 3"},
		"no lines":               {mtnHeading, "mtn", "has no lines"},
	} {
		if _, lines, err := readText(c.text, c.profile, nil, Layout{}); err == nil || !strings.Contains(fields(err), c.want) {
			t.Errorf("%s: refused with %q, want %q; read %+v", name, fields(err), c.want, lines)
		}
	}
}

// A source keeps its headings. A file with other headings is refused.
func TestRead_headingThatChanged(t *testing.T) {
	text := mtnHeading + mtnRow("1", "", "2026-11-20 18:18:05", "Successful", "a", "b", "1.00", "", "10.00")
	r, _ := mustRead(t, text, "mtn", Layout{Sign: SignIn})
	if _, lines, err := readText(text, "mtn", &r.Layout, Layout{}); err != nil || len(lines) != 1 {
		t.Fatalf("the same heading: %d lines, %v", len(lines), err)
	}
	moved := strings.Replace(text, `"Amount","Currency","Fee"`, `"Fee","Currency","Amount"`, 1)
	if _, _, err := readText(moved, "mtn", &r.Layout, Layout{}); err == nil || !strings.Contains(fields(err), `column 17 is "fee" and was "amount"`) {
		t.Errorf("another heading: %q", fields(err))
	}
}

// If no heading is known, a person chooses the columns.
func TestRead_chosenColumns(t *testing.T) {
	const text = "Jour,Quoi,Combien\n2026-04-13,A,1.00\n2026-04-14,B,2.00\n"
	r, _, err := readText(text, "bank", nil, Layout{})
	if err != nil || len(r.Questions) != 1 || r.Questions[0].Name != QuestionMap {
		t.Fatalf("asked %v: %v", r.Questions, err)
	}
	_, lines := mustRead(t, text, "bank", Layout{Sign: SignIn, Columns: map[Field]int{FieldDate: 0, FieldText: 1, FieldAmount: 2}})
	if len(lines) != 2 || lines[1].Amount != 200 || lines[1].Text != "B" {
		t.Errorf("read %+v", lines)
	}
}

// Amounts in either notation are read exactly. Any other text is not an amount.
func TestParseAmount_writings(t *testing.T) {
	for text, want := range map[string]money.Pesewas{"1,200.50": 120_050, "GHS 0.50": 50, "-5": -500, "5.00-": -500, "(5.00)": -500, "₵ 1 200.5": 120_050, "−3.10": -310, "4.00 DR": -400, "4.00CR": 400} {
		if got, err := parseAmount(text, '.'); err != nil || got != want {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]money.Pesewas{"1.200,50": 120_050, "1200,5": 120_050, "-0,05": -5} {
		if got, err := parseAmount(text, ','); err != nil || got != want {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1.2.3", "1,2,3", "12,50", "abc", "1.005", "1e3", "--1"} {
		if got, err := parseAmount(text, '.'); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}
