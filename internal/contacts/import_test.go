package contacts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
	"github.com/makola/makola/internal/problem"
)

func TestAFileIsReadWhateverItsFormAndItsBadRowsAreReported(t *testing.T) {
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
			"bad rows":          {"phone,name\n0241000001,Ama\nnobody,Kofi\n0241000002,\xff\n\"broken\"x,y\n0241000003,Yaa\n,\n", 2, "3 4 5 7"},
			"a quote left open": {"phone,name\n0241000001,Ama\n0241000002,\"Kofi\n" + strings.Join(numbers(1_100)[10:], "\n") + "\n", 1_091, "3"},
			"two left open":     {"phone,name\n0241000001,\"Ama\n0241000002,Kofi\n0241000003,Yaa\"\n0241000004\n", 2, "2 4"},
			"open at its end":   {"0241000001,Ama\n0241000002,\"Kofi", 1, "2"},
			"a field of lines":  {"phone,address,name\n0241000001,\"12 Ring Road,\n\nAccra \"\"North\"\"\",Ama\n0241000002,,Kofi\n", 2, ""},
			"ends of CR":        {"phone,name\r0241000001,Ama\r0241000002,Kofi\r", 2, ""},
			"a line too long":   {"0241000001\n0241000002," + strings.Repeat("x", maxLine) + "\n0241000003\n", 2, "2"},
			"duplicates":        {"phone\n0241000001\n233241000001\n", 1, ""},
			"more than one set": {"phone\n" + strings.Join(numbers(1_100), "\n") + "\nnobody\n", 1_100, "1102"},
		} {
			g := f.group()
			calls := 0
			done, err := f.Import(t.Context(), "shop", g.ID, strings.NewReader(each.file), func(Imported) { calls++ })
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
			if _, err := f.Import(t.Context(), "shop", g.ID, strings.NewReader(file), nil); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := f.Import(t.Context(), "shop", "nobody's", strings.NewReader("0241000001\n"), nil)
		wantKind(t, err, problem.NotFound)
	})
}
