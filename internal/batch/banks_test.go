package batch

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// A text finds a bank only if it is the complete name, the id or the sort code. Any other text is at most a proposal.
func TestBanks_findAndPropose(t *testing.T) {
	known := banksOf([]route.Bank{{ID: "1", Code: "040100", Name: "GCB Bank"}, {ID: "2", Code: "130100", Name: "Ecobank Ghana"}, {ID: "3", Code: "300300", Name: "Access Bank Ghana"}, {ID: "4", Code: "300301", Name: "First Atlantic Bank"},
		{ID: "5", Code: "300302", Name: "First National Bank"}})
	for text, want := range map[string]string{"gcb  bank": "1", "G.C.B. Bank": "1", "040100": "1", "2": "2", "ECOBANK GHANA": "2", "GCB": "", "Ecobank": "", "": ""} {
		if bank, _ := known.find(text); bank.ID != want {
			t.Errorf("%q is the bank %q, want %q", text, bank.ID, want)
		}
	}
	for text, want := range map[string]string{"GCB": "1", "Eco bank": "2", "Ecobank Gh Ltd": "2", "Access": "3", "First": "", "First Atl": "", "Bank of Ghana": "", "Zenith": ""} {
		if bank, _ := known.propose(text); bank.ID != want {
			t.Errorf("%q proposes %q, want %q", text, bank.ID, want)
		}
	}
}

// One choice sets the bank or network for all rows with the same text. Numbers of bank accounts are not changed.
func TestSettle_oncePerText(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.banks = true
		n := f.stopped("a")
		n.set(tenant.Change{PayoutLimitBank: new(100 * money.Cedi)})
		b, err := n.upload("Salaries", strings.Join([]string{"Name,Account,Bank,Amount",
			"Ama,0011220033,GCB,10", "Kofi,0011220034,gcb ,20", "Esi,00112200-35,GCB,30", "Yaw,0241234567,,40", "Abena,0241234568,,50", "Kwame,0201234567,,60", "Adwoa,0011220036,GCB,101", "Afua,0241234569,MTN,70"}, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		list, err := n.Unsettled(t.Context(), b)
		if err != nil || len(list) != 3 || list[0].Text != "GCB" || list[0].Rows != 4 || list[0].Proposal == "" || list[1].Prefix != "024" || list[1].Rows != 2 || list[1].Proposal != "MTN" || list[2].Proposal != "TELECEL" {
			t.Fatalf("%+v (%v)", list, err)
		}
		if _, err := n.Settle(t.Context(), b.Tenant, b.ID, list[0].Key, "no bank"); !problem.Is(err, problem.Invalid) {
			t.Error(err)
		}
		for i, want := range []int{4, 2} {
			if settled, err := n.Settle(t.Context(), b.Tenant, b.ID, list[i].Key, list[i].Proposal); err != nil || settled != want {
				t.Errorf("%d rows are settled (%v)", settled, err)
			}
		}
		rows, err := n.Rows(t.Context(), b.Tenant, b.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []RowState{RowReady, RowReady, RowBad, RowReady, RowReady, RowBad, RowBad, RowReady} {
			if rows[i].State != want {
				t.Errorf("row %d is %s by %v", i+1, rows[i].State, rows[i].Problems)
			}
		}
		if r := rows[0]; r.Channel != book.ChannelBank || r.Bank == "" || r.Account != "0011220033" || r.Charges == 0 {
			t.Errorf("%+v", r)
		}
		if len(rows[2].Problems[fieldNumber]) == 0 || len(rows[6].Problems[fieldAmount]) == 0 {
			t.Errorf("%v, %v", rows[2].Problems, rows[6].Problems)
		}
		if list, err = n.Unsettled(t.Context(), b); err != nil || len(list) != 1 || list[0].Prefix != "020" {
			t.Errorf("%+v (%v)", list, err)
		}
	})
}

// One choice also sets more rows than fit into one transaction.
func TestSettle_manyRows(t *testing.T) {
	n := newFixture(t, dbtest.Open(t, db.SQLite)).stopped("a")
	b, err := n.upload("Salaries", strings.ReplaceAll(file(2500), ",MTN,", ",,"))
	if err != nil {
		t.Fatal(err)
	}
	if settled, err := n.Settle(t.Context(), b.Tenant, b.ID, unsettledMissing+"024", "MTN"); err != nil || settled != 2500 {
		t.Errorf("%d rows are settled (%v)", settled, err)
	}
	if is, err := n.Count(t.Context(), n.is(b.ID)); err != nil || is.Rows[RowReady] != 2500 {
		t.Errorf("%+v (%v)", is, err)
	}
}

// Rows to bank accounts are frozen, run and reported like rows to wallets. The template lists the banks.
func TestBatch_paysBankAccounts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n, banks := f.nodeOfBanks("a")
		var template bytes.Buffer
		if err := WriteTemplate(&template, sheet.XLSX, banks); err != nil {
			t.Fatal(err)
		}
		file, err := sheet.Open(bytes.NewReader(template.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if preview, err := file.Preview(Form(), "Banks", 100); err != nil || !slices.ContainsFunc(preview.Sample, func(row []string) bool { return row[0] == banks[0].Name && row[1] == banks[0].Code }) {
			t.Errorf("%+v (%v)", preview, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		b, err := n.upload("Suppliers", "number,network or bank,amount,name\n0011220033,"+banks[0].Name+",10,Ama\n0011220034,"+banks[0].Code+",20,Kofi\n0241234567,MTN,30,Esi\n")
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		if b, err = n.Request(t.Context(), b.Tenant, b.ID, ""); err != nil {
			t.Fatal(err)
		}
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		results, err := n.Results(t.Context(), b.Tenant, b.ID, 1)
		if err != nil || len(results) != 3 || slices.ContainsFunc(results, func(r Result) bool { return r.Status != "success" }) {
			t.Fatalf("%+v (%v)", results, err)
		}
		paid, err := n.payments.ByIDs(t.Context(), []string{results[0].Payment})
		if pay := paid[results[0].Payment]; err != nil || pay.Channel != book.ChannelBank || pay.BankID != banks[0].ID || pay.Account != "0011220033" || pay.AccountName != "REGISTERED 0011220033" {
			t.Errorf("%+v (%v)", pay, err)
		}
		if is := n.is(b.ID); is.Status != Finished || n.wallet() != funds-b.Total() {
			t.Errorf("%s, the wallet has %s", is.Status, n.wallet())
		}
		n.sound()
	})
}

// A missing network is proposed by its name.
func TestDraft_proposedNetwork(t *testing.T) {
	n := newFixture(t, dbtest.Open(t, db.SQLite)).stopped("a")
	b, err := n.upload("Salaries", "number,network,amount\n0201234567,,5\n0271234567,,5\n")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := n.Rows(t.Context(), b.Tenant, b.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"Telecel", "AirtelTigo"} {
		if why := strings.Join(rows[i].Problems[fieldNetwork], "; "); why != "is missing; by the number it may be "+name {
			t.Error(why)
		}
	}
}
