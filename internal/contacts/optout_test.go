package contacts

import (
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

const ama, kofi, yaa msisdn.MSISDN = "233240000001", "233240000002", "233240000003"

func (f *fixture) without(tenant string, list ...msisdn.MSISDN) (kept []msisdn.MSISDN) {
	f.t.Helper()
	if err := f.db.Read(f.t.Context(), func(tx *db.Tx) (err error) {
		kept, err = WithoutOptOuts(tx, tenant, list)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
	return kept
}

func TestOptOut_untilOptIn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		other := node(t, d, config.Quotas{})
		some := func(of *fixture, want bool) {
			t.Helper()
			if got, err := of.HasOptOuts(t.Context(), "shop"); err != nil || got != want {
				t.Errorf("a list: %v, %v, want %v", got, err, want)
			}
		}
		some(f, false)
		some(other, false)
		for range 2 { // the second changes nothing
			f.write(func(tx *db.Tx) error { f.OptOut(tx, "shop", " asked for it ", kofi, ama); return nil })
		}
		some(f, true)
		other.clock.Advance(time.Second)
		some(other, true)
		if kept := f.without("shop", yaa, kofi, ama); !slices.Equal(kept, []msisdn.MSISDN{yaa}) {
			t.Errorf("kept %v", kept)
		}
		if kept := f.without("neighbour", yaa, kofi, ama); len(kept) != 3 {
			t.Errorf("a neighbour keeps %v", kept)
		}
		list, err := f.OptOuts(t.Context(), "shop", "", 10)
		if err != nil || len(list) != 2 || list[0].MSISDN != ama || list[0].Reason != "asked for it" || !list[0].CreatedAt.Equal(morning) {
			t.Errorf("the list is %+v, %v", list, err)
		}
		if rest, err := f.OptOuts(t.Context(), "shop", ama, 10); err != nil || len(rest) != 1 || rest[0].MSISDN != kofi {
			t.Errorf("after the first it is %+v, %v", rest, err)
		}
		for _, want := range []bool{true, false} {
			f.write(func(tx *db.Tx) error {
				was, err := f.OptIn(tx, "shop", ama)
				if was != want {
					t.Errorf("it was on the list: %v", was)
				}
				return err
			})
		}
		if kept := f.without("shop", yaa, kofi, ama); !slices.Equal(kept, []msisdn.MSISDN{yaa, ama}) {
			t.Errorf("kept %v", kept)
		}
	})
}

func TestRecipients_readOwnGroupsOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		large, small := f.group(numbers(2_001)...), f.group(string(ama))
		read := func(tenant string, ids ...string) (got []msisdn.MSISDN, err error) {
			err = f.db.Read(t.Context(), func(tx *db.Tx) error {
				got = nil
				groups, err := OwnGroups(tx, tenant, ids)
				for _, g := range groups {
					if err := Numbers(tx, g, func(n msisdn.MSISDN) { got = append(got, n) }); err != nil {
						return err
					}
				}
				return err
			})
			return got, err
		}
		if got, err := read("shop", small.ID, large.ID, small.ID); err != nil || len(got) != 2_002 || got[0] != ama || got[2_001] != "233240002000" {
			t.Errorf("%d numbers, %v", len(got), err)
		}
		_, foreign := read("neighbour", small.ID)
		_, unknown := read("neighbour", "019f0000-0000-7000-8000-000000000000")
		if !problem.Is(foreign, problem.Forbidden) || !problem.Is(unknown, problem.Forbidden) || foreign.Error() != unknown.Error() {
			t.Errorf("of another tenant: %v; unknown: %v", foreign, unknown)
		}
	})
}
