package batch

import (
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// quoted returns a text as a quoted cell of CSV.
func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }

// read uploads a file and returns its rows.
func (n *node) read(name, text string) []Row {
	n.f.t.Helper()
	b, err := n.upload(name, text)
	if err != nil {
		n.f.t.Fatalf("%q: %v", text, err)
	}
	rows, err := n.Rows(n.f.t.Context(), b.Tenant, b.ID, 1)
	if err != nil {
		n.f.t.Fatal(err)
	}
	return rows
}

// Amounts may have the forms that people write. An amount with two possible readings is an error of its row.
func TestDraft_amountForms(t *testing.T) {
	n := newFixture(t, dbtest.Open(t, db.SQLite)).stopped("a")
	for text, want := range map[string]money.Pesewas{"1,234.50": 123_450, "GHS 5": 500, "5": 500, " 5.00 ": 500, "5.5": 550, "1 234.50": 123_450, "0.50": 50, "₵5": 500, "GH¢ 5.00": 500, "1,234": 123_400, "GHS 1 234 567.5": 0, "1'234.50": 123_450, "12 345": 1_234_500, "'5": 500, "5 GHS": 500, "GH₵ 5": 500, "9\u202f999.99": 999_999,
		"1,234,567.89": 0, "1234,50": 0, "-5": 0, "0": 0, "5.005": 0, "1e3": 0, "(5.00)": 0, "5.00-": 0, "1,23.50": 0, "1,5": 0, "12.50.00": 0, "1.234,50": 0, "NaN": 0, "5/=": 0, "٥": 0, "+5": 0, "5 6": 0, "5 00": 0, "1 2345": 0, "12 345.6 7": 0, "1, 200.00": 0, "five": 0, "": 0} {
		r := n.read("Amount "+quoted(text), "number,network,amount\n0241234567,MTN,"+quoted(text)+"\n")[0]
		if want == 0 && (r.State != RowBad || len(r.Problems[fieldAmount]) == 0) || want != 0 && (r.State != RowReady || r.Amount != want) {
			t.Errorf("%q is %s %s, %v", text, r.State, r.Amount, r.Problems)
		}
		if err := n.Discard(t.Context(), n.f.tenant.ID, n.newest()); err != nil {
			t.Fatal(err)
		}
	}
}

// newest returns the id of the account's newest batch.
func (n *node) newest() string {
	n.f.t.Helper()
	list, err := n.List(n.f.t.Context(), n.f.tenant.ID, "", 1)
	if err != nil || len(list) != 1 {
		n.f.t.Fatal(list, err)
	}
	return list[0].ID
}

// Numbers may have the forms that people and spreadsheets write. A number that lost digits is an error of its row.
func TestDraft_numberForms(t *testing.T) {
	n := newFixture(t, dbtest.Open(t, db.SQLite)).stopped("a")
	for text, good := range map[string]bool{"+233241234567": true, "233241234567": true, "0241234567": true, "024 123 4567": true, "241234567": true, "241234567.0": true, "2.33241234567E+11": true, "'0241234567": true,
		"=\"0241234567\"": true, "00233241234567": true, "+233 (0)24 123 4567": true, "024-123-4567": true, "233241234567.0": true, "\u202a0241234567\u202c": true, "024\u00a0123\u00a04567": true,
		"02412345": false, "02412345678": false, "2.33241E+11": false, "24123456": false, "0241234567/0201234567": false, "0241234567 0201234567": false, "+1 415 555 0100": false, "233241234567.5": false, "2.4E8": false} {
		r := n.read("Number", "number,network,amount\n"+quoted(text)+",MTN,5\n")[0]
		if good != (r.State == RowReady) || good && r.Account != "233241234567" {
			t.Errorf("%q is %s %q, %v", text, r.State, r.Account, r.Problems)
		}
		if err := n.Discard(t.Context(), n.f.tenant.ID, n.newest()); err != nil {
			t.Fatal(err)
		}
	}
}

// The same rows make the same batch in every encoding and with every separator. A long name is shortened or refused.
func TestDraft_fileForms(t *testing.T) {
	n := newFixture(t, dbtest.Open(t, db.SQLite)).stopped("a")
	plain := "number,network,amount,name\n0241234567,MTN,1234.50,Ama Ofori-Atta\n0241234568,MTN,5,Kwabena Ɔkɔ\n"
	wide := func(text string, big bool) string {
		out := []byte{}
		for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
			if big {
				out = append(out, byte(u>>8), byte(u))
			} else {
				out = append(out, byte(u), byte(u>>8))
			}
		}
		return string(out)
	}
	first, err := n.upload("Salaries", plain)
	if err != nil || first.Lines != 2 {
		t.Fatal(first, err)
	}
	semicolons := strings.ReplaceAll(plain, ",", ";")
	for what, text := range map[string]string{"BOM": "\ufeff" + plain, "UTF-16LE": wide(plain, false), "UTF-16BE": wide(plain, true), "semicolons": semicolons, "CRLF": strings.ReplaceAll(plain, "\n", "\r\n"),
		"sep=": "sep=;\r\n" + semicolons, "empty columns": strings.ReplaceAll(plain, "\n", ",,,,\n"), "empty rows": plain + ",,,\n\n,,,\n", "tabs": strings.ReplaceAll(plain, ",", "\t"), "no last newline": strings.TrimSuffix(plain, "\n")} {
		if b, err := n.upload("Salaries", text); err != nil || b.ID != first.ID {
			t.Errorf("%s: batch %q with the code %q, %v", what, b.ID, b.Code, err)
		}
	}
	long := strings.Repeat("Nana ", 200)
	if r := n.read("Long", "number,network,amount,name,note\n0241234567,MTN,5,"+long+","+long+"\n")[0]; r.State == RowReady && (len(r.Name) > maxGiven || len(r.Note) > 2*maxGiven) {
		t.Errorf("a name of %d characters is kept", len(r.Name))
	}
}

// A reference on two rows is reported before the batch is sent: programs get a refusal, and people get a warning. If a person sends
// the batch anyway, one row is paid and the money of the other row returns.
func TestDraft_referenceTwice(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).node("a")
		caller := n.key()
		rows := people(3)
		rows[0].Reference, rows[2].Reference = "salary-2026-11", "salary-2026-11"
		_, _, err := n.Make(t.Context(), Upload{Tenant: caller.Tenant, Requester: caller.Key, Key: caller.Key, Name: "Program", Once: caller}, rows)
		if e := problem.From(err); e == nil || len(e.Fields["rows.3.client_reference"]) != 1 || len(e.Fields) != 1 {
			t.Errorf("a reference twice is answered %v", err)
		}
		b := n.requested("Salaries", "number,network,amount,reference\n0241234567,MTN,5,salary-2026-11\n0241234568,MTN,6,salary-2026-11\n0241234569,MTN,7,\n")
		list, err := n.Warnings(t.Context(), b.Tenant, b.ID, 1)
		if err != nil || len(list) != 1 || list[0].Line != 2 || list[0].Field != fieldReference || !strings.Contains(list[0].Text, "row 1") {
			t.Errorf("the warnings are %+v, %v", list, err)
		}
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if is := n.is(b.ID); is.Status != Finished || is.Accepted != 2 || n.wallet() != funds-n.spent(is) {
			t.Errorf("%s, %d accepted, the wallet has %s", is.Status, is.Accepted, n.wallet())
		}
		n.sound()
	})
}

// The amount column of a payroll is recognised by its heading, such as "Net Pay (GHS)".
func TestDraft_payrollHeadings(t *testing.T) {
	n := newFixture(t, dbtest.Open(t, db.SQLite)).stopped("a")
	for i, heading := range []string{"Net Pay (GHS)", "NET SALARY GH", "Amount in Cedis", "Net pay", "Amount (GH¢)"} {
		rows := n.read("Payroll "+strings.Repeat("x", i), "Staff No,Name,MoMo Number,Network,"+heading+"\nS001,Ama Owusu,0241234567,MTN,12.50\n")
		if len(rows) != 1 || rows[0].Amount != 1250 || rows[0].Note != "S001" || rows[0].State != RowReady {
			t.Errorf("%s: %+v", heading, rows)
		}
	}
}
