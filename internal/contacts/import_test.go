package contacts

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/test/dbtest"
)

func TestImport_reportsBadRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		for name, each := range map[string]struct {
			file  string
			added int
			bad   string
		}{
			"heading":           {"First Name,Surname,Phone,Other\nAma,Mensah,0241000001,x\nKofi,Owusu,+233 24 100 0002,y\n", 2, ""},
			"no heading":        {"0241000001,Ama\n0241000002\n", 2, ""},
			"semicolons":        {"\xef\xbb\xbfphone_number;first_name\r\n0241000001;Ama\r\n", 1, ""},
			"tabs":              {"phone\tname\n0241000001\tAma, the first\n", 1, ""},
			"bad rows":          {"phone,name\n0241000001,Akɔsua\nnobody,Kofi\n0241000002,\xff\n\"broken\"x,y\n0241000003,Yaa\n,\n", 2, "3 4 5"},
			"an address book":   {"Name,E-mail 1 - Value,Phone 1 - Value\nAma,ama@example.com,+233 24 100 0001\n", 1, ""},
			"sep":               {"sep=;\r\nPhone No.;Name\r\n0241000001;Ama\r\n", 1, ""},
			"a text formula":    {"Mobile Number\n=\"0241000001\"\n", 1, ""},
			"rows of nothing":   {"Mobile Phone,Name\n,\n0241000001,Ama\n,\n,\n", 1, ""},
			"Number, not Phone": {"Phone,Number\nNokia,0241000001\nTecno,0241000002\n", 2, ""},
			"a quote left open": {"phone,name\n0241000001,Ama\n0241000002,\"Kofi\n" + strings.Join(numbers(1_100)[10:], "\n") + "\n", 1_091, "3"},
			"two left open":     {"phone,name\n0241000001,\"Ama\n0241000002,Kofi\n0241000003,Yaa\"\n0241000004\n", 2, "2 4"},
			"open at its end":   {"0241000001,Ama\n0241000002,\"Kofi", 1, "2"},
			"a field of lines":  {"phone,address,name\n0241000001,\"12 Ring Road,\n\nAccra \"\"North\"\"\",Ama\n0241000002,,Kofi\n", 2, ""},
			"ends of CR":        {"phone,name\r0241000001,Ama\r0241000002,Kofi\r", 2, ""},
			"a line too long":   {"0241000001\n0241000002," + strings.Repeat("x", 64<<10) + "\n0241000003\n", 2, "2"},
			"duplicates":        {"phone\n0241000001\n233241000001\n", 1, ""},
			"more than one set": {"phone\n" + strings.Join(numbers(1_100), "\n") + "\nnobody\n", 1_100, "1102"},
		} {
			g := f.group()
			calls := 0
			done, err := f.file(g.ID, each.file, func(Imported) { calls++ })
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var bad []string
			for _, b := range done.Bad {
				bad = append(bad, fmt.Sprint(b.Row))
				if b.Text == "" {
					t.Errorf("%s: line %d is bad for no reason", name, b.Row)
				}
			}
			if _, total, _ := f.Contacts(t.Context(), "shop", g.ID, 1, 1); int(total) != each.added || done.Added != each.added || strings.Join(bad, " ") != each.bad {
				t.Errorf("%s: %d added, %d in the group, bad %v; %+v", name, done.Added, total, bad, done)
			}
			if want := done.Rows/atOnce + 1; calls != want {
				t.Errorf("%s: told %d times, expected %d", name, calls, want)
			}
		}
		g := f.group()
		for name, file := range map[string]string{"empty": "", "no numbers": "a,b\nc,d\n", "not CSV": "\"a"} {
			if _, err := f.file(g.ID, file, nil); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := f.file("nobody's", "0241000001\n", nil)
		wantKind(t, err, problem.NotFound)
	})
}

// If an import into a new group fails at any set, no group and no contacts remain.
func TestImportNew_failureLeavesNoRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{Contacts: 1_500})
		rows := f.table("phone\n" + strings.Join(numbers(1_600), "\n") + "\n")
		_, done, err := f.ImportNew(t.Context(), "shop", "Customers", rows, nil)
		wantKind(t, err, problem.Invalid)
		if done.Added != 1_000 {
			t.Errorf("the second set was to fail: %+v", done)
		}
		groups, err := f.Groups(t.Context(), "shop")
		if stored, _, _ := f.Stored(t.Context(), "shop"); err != nil || len(groups) > 0 || stored.Used > 0 {
			t.Errorf("%v and %d contacts are left, %v", groups, stored.Used, err)
		}
		gone, cancel := context.WithCancel(t.Context())
		_, _, err = f.ImportNew(gone, "shop", "Customers", f.table("phone\n"+strings.Join(numbers(1_400), "\n")), func(Imported) { cancel() })
		if groups, _ := f.Groups(t.Context(), "shop"); err == nil || len(groups) > 0 {
			t.Errorf("%v are left of an import that was broken off, %v", groups, err)
		}
		g, done, err := f.ImportNew(t.Context(), "shop", "Customers", f.table("phone\n0241000001\n"), nil)
		if groups, _ := f.Groups(t.Context(), "shop"); err != nil || done.Added != 1 || len(groups) != 1 || groups[0].ID != g.ID {
			t.Errorf("%+v, %v, %v", done, groups, err)
		}
	})
}

// file imports a file.
func (f *fixture) file(group, text string, progress func(Imported)) (Imported, error) {
	file, err := sheet.Open(strings.NewReader(text))
	if err != nil {
		return Imported{}, err
	}
	defer func() { _ = file.Close() }()
	rows, err := file.Table(ImportForm(), sheet.Options{})
	if err != nil {
		return Imported{}, err
	}
	return f.Import(f.t.Context(), "shop", group, rows, progress)
}

// table opens a valid file.
func (f *fixture) table(text string) *sheet.Table {
	f.t.Helper()
	file, err := sheet.Open(strings.NewReader(text))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = file.Close() })
	rows, err := file.Table(ImportForm(), sheet.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	return rows
}
