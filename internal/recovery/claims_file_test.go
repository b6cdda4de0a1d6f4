package recovery

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

func TestClaims_fileIsAllOrNothing(t *testing.T) {
	t.Parallel()
	const good = "kind,reference,amount,party,channel,bank_id\npayout,order-0000001,10.50,0244000001,MTN\n" +
		"collection,order-0000002,3,233201234567,vdf,\npayout,order-0000003,1.00,0011223344,BANK,bank-1\n"
	want := []Claim{
		{Tenant: "t", Actor: "ama", Kind: "payout", Reference: "order-0000001", Amount: 1050, Channel: "MTN", Party: "233244000001"},
		{Tenant: "t", Actor: "ama", Kind: "collection", Reference: "order-0000002", Amount: 300, Channel: "TELECEL", Party: "233201234567"},
		{Tenant: "t", Actor: "ama", Kind: "payout", Reference: "order-0000003", Amount: 100, Channel: "BANK", Party: "0011223344", Bank: "bank-1"},
	}
	if got, _, err := ReadClaims(strings.NewReader(good), sheet.Options{}, "t", "ama"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for bad, says := range map[string]string{
		"payout,r,10": "channel", "bundle,r,1,0244000001,MTN": "kind", "payout,,1,0244000001,MTN": "reference", "payout,r,-1,0244000001,MTN": "amount",
		"payout,r,x,0244000001,MTN": "amount", "payout,r,1,12,MTN": "party", "payout,r,1,0244000001,GLO": "channel", "collection,r,1,0011,BANK,b": "bank",
		"payout,r,1,0011,BANK": "bank", "payout,r,1,0244000001,MTN,b": "party", "\"payout": "Line 2",
	} {
		if _, _, err := ReadClaims(strings.NewReader("payout,order-0000001,10.50,0244000001,MTN\n"+bad+"\n"), sheet.Options{}, "t", "ama"); !problem.Is(err, problem.Malformed) ||
			!strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "Line 2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Files of claims are read in the forms that programs write. If a spreadsheet has damaged a value, the file is
// refused.
func TestReadClaims_forms(t *testing.T) {
	t.Parallel()
	const good = "sep=;\r\nType;Client reference;Amount (GHS);Phone number;Network;Note\r\nPayout;order-0000001;10.50;=\"0244000001\";mtn;x\r\n;;;;;\r\n"
	want := []Claim{{Tenant: "t", Actor: "ama", Kind: "payout", Reference: "order-0000001", Amount: 1050, Channel: "MTN", Party: "233244000001"}}
	if got, _, err := ReadClaims(strings.NewReader(good), sheet.Options{}, "t", "ama"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	const other = "Kind,Order,Amount,Party,Channel\npayout,order-0000001,10.50,0244000001,MTN\n"
	if _, _, err := ReadClaims(strings.NewReader(other), sheet.Options{}, "t", "ama"); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "no column for reference") {
		t.Errorf("%v", err)
	}
	o := sheet.Options{Columns: map[string]string{"reference": "Order"}}
	if got, _, err := ReadClaims(strings.NewReader(other), o, "t", "ama"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	book := excelize.NewFile()
	for cell, value := range map[string]any{"A1": "kind", "B1": "reference", "C1": "amount", "D1": "party", "E1": "channel",
		"A2": "payout", "B2": "order-0000001", "C2": 10.5, "D2": 244000001, "E2": "MTN"} {
		if err := book.SetCellValue("Sheet1", cell, value); err != nil {
			t.Fatal(err)
		}
	}
	read := func() ([]Claim, error) {
		var file bytes.Buffer
		if err := book.Write(&file); err != nil {
			t.Fatal(err)
		}
		got, _, err := ReadClaims(&file, sheet.Options{}, "t", "ama")
		return got, err
	}
	if got, err := read(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	_ = book.SetCellValue("Sheet1", "B2", int64(1234567890123456))
	if got, err := read(); !problem.Is(err, problem.Malformed) || !strings.Contains(err.Error(), "16 digits") {
		t.Errorf("%+v, %v", got, err)
	}
	_ = book.SetCellValue("Sheet1", "B2", time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)) // a spreadsheet made a date of the typed text 1-11
	if got, err := read(); !problem.Is(err, problem.Malformed) || !strings.Contains(err.Error(), "Line 2: reference has a date") {
		t.Errorf("%+v, %v", got, err)
	}
}
