package book

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/history"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

var historyStart = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// fakeList is the model of a history list, oldest first.
type fakeList struct {
	tenant string
	kind   Kind
	rows   []Payment
}

// append adds rows in one transaction, as acceptance does.
func (s *fakeList) append(t testing.TB, d *db.DB, rows []Payment) {
	t.Helper()
	var placed []Payment
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		placed = slices.Clone(rows)
		list := history.List{Tenant: s.tenant, Kind: string(s.kind)}
		ends, counts := history.Ends{}, history.Tally{}
		ends.Add(list)
		if err := tx.Gather(ends.LockQuery()); err != nil {
			return err
		}
		pointers := make([]*Payment, len(placed))
		for i := range placed {
			pay := &placed[i]
			pay.Seq, pay.CreatedAt = ends.Append(list, pay.CreatedAt)
			counts.Begins(list, pay.Seq, pay.Status.counted())
			pointers[i] = pay
		}
		ends.Defer(tx)
		db.Insert(tx, "payments", insertColumns, pointers)
		counts.Defer(tx, 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.rows = append(s.rows, placed...)
}

// settle returns rows a final status, as settlement does.
func (s *fakeList) settle(t testing.TB, d *db.DB, shard int, settled map[int]Status) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		counts := history.Tally{}
		var rows []Payment
		for i, to := range settled {
			pay := s.rows[i]
			counts.Changes(listOf(pay), pay.Seq, pay.Status.counted(), to.counted())
			pay.Status = to
			rows = append(rows, pay)
		}
		tx.Defer(`UPDATE payments SET status = r.status, settled_at = 1 FROM rows($1) AS r WHERE payments.id = r.id`, int64(len(rows)), db.RowsOf([]db.Column[Payment]{
			{Name: "id", Text: func(p Payment) string { return p.ID }},
			{Name: "status", Text: func(p Payment) string { return string(p.Status) }},
		}, rows))
		counts.Defer(tx, shard)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, to := range settled {
		s.rows[i].Status, s.rows[i].SettledAt = to, db.FromMicros(1)
	}
}

// newRow returns a payment as acceptance creates it, without its position in the list.
func (s *fakeList) newRow(at time.Time) Payment {
	id := uuid.Must(uuid.NewV7()).String()
	return Payment{
		ID: id, Tenant: s.tenant, Kind: s.kind, Mode: "test", Channel: "MTN", Reference: id, ProviderReference: uuid.NewString(),
		Amount: 100, Account: "233241234567", Status: StatusPending, Rail: "mtn", Attempt: 1, Submissions: 1, CreatedAt: at,
	}
}

// want computes the page by checking every row.
func (s *fakeList) want(f Filter) (refs []string, total int64) {
	var all []string
	for _, pay := range slices.Backward(s.rows) {
		d := clock.Day(pay.CreatedAt)
		switch {
		case f.Status != "" && pay.PublicStatus() != f.Status:
		case f.Reference != "" && pay.Reference != f.Reference:
		case !f.From.IsZero() && d < clock.Day(f.From):
		case !f.To.IsZero() && d > clock.Day(f.To):
		default:
			all = append(all, pay.Reference)
		}
	}
	first := min((f.Page-1)*f.Size, len(all))
	return all[first:min(first+f.Size, len(all))], int64(len(all))
}

func (s *fakeList) compare(t *testing.T, p *Reader, f Filter) {
	t.Helper()
	page, err := p.History(t.Context(), s.tenant, f)
	if err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
	refs, total := s.want(f)
	var got []string
	for _, row := range page.Rows {
		got = append(got, row.Reference)
	}
	if page.Total != total || !slices.Equal(got, refs) {
		t.Fatalf("%+v: %d in total and rows %v, want %d and %v", f, page.Total, got, total, refs)
	}
	from, to := int64(0), int64(0)
	if len(refs) > 0 {
		from = int64((f.Page-1)*f.Size) + 1
		to = from + int64(len(refs)) - 1
	}
	if last := max(1, (total+int64(f.Size)-1)/int64(f.Size)); page.From != from || page.To != to || page.LastPage != last {
		t.Fatalf("%+v: from %d to %d last %d, want %d, %d, %d", f, page.From, page.To, page.LastPage, from, to, last)
	}
}

// randomFilter returns filters with any page number, also past the end.
func (s *fakeList) randomFilter(r *rand.Rand) Filter {
	f := Filter{Kind: s.kind, Size: 1 + r.IntN(MaxPageSize)}
	if r.IntN(3) > 0 {
		f.Status = publicStatuses[r.IntN(len(publicStatuses))]
	}
	anyDay := func() time.Time {
		span := s.rows[len(s.rows)-1].CreatedAt.Sub(s.rows[0].CreatedAt) + 72*time.Hour
		return s.rows[0].CreatedAt.Add(time.Duration(r.Int64N(int64(span))) - 36*time.Hour).Truncate(24 * time.Hour)
	}
	if r.IntN(2) == 0 {
		f.From = anyDay()
	}
	if r.IntN(2) == 0 {
		f.To = anyDay()
		if f.To.Before(f.From) {
			f.From, f.To = f.To, f.From
		}
	}
	if r.IntN(50) == 0 {
		f.Reference = s.rows[r.IntN(len(s.rows))].Reference
	}
	_, total := s.want(Filter{Kind: f.Kind, Status: f.Status, Reference: f.Reference, From: f.From, To: f.To, Page: 1, Size: 1})
	f.Page = 1 + r.IntN(int(total)/f.Size+2)
	return f
}

// After random appends and settlements, the pages equal those of a model. The blocks of large lists are tested in
// package history.
func TestHistory_matchesModel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := NewReader(d, nil, clock.NewManual(historyStart.AddDate(1, 0, 0)))
		r := rand.New(rand.NewPCG(3, 14))
		for _, size := range []int{1, 61, 200} {
			s := &fakeList{tenant: fmt.Sprintf("tenant-%d", size), kind: KindCollection}
			at := historyStart
			for len(s.rows) < size {
				var batch []Payment
				for range min(1+r.IntN(1+size/10), size-len(s.rows)) {
					batch = append(batch, s.newRow(at))
					at = at.Add(time.Duration(r.IntN(int(20*24*time.Hour) / size)))
				}
				s.append(t, d, batch)
				settled := map[int]Status{}
				for i := range s.rows {
					if s.rows[i].Status.Open() && r.IntN(2) == 0 {
						settled[i] = []Status{StatusSuccess, StatusSuccess, StatusSuccess, StatusFailed, StatusDeclined}[r.IntN(5)]
					}
					if s.rows[i].Status == StatusFailed && r.IntN(20) == 0 {
						settled[i] = StatusSuccess // paid after it failed
					}
				}
				s.settle(t, d, r.IntN(3), settled)
			}
			for range 100 {
				s.compare(t, p, s.randomFilter(r))
			}
		}
	})
}

func TestHistory_empty(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := NewReader(d, nil, clock.NewManual(historyStart.AddDate(1, 0, 0)))
		for _, f := range []Filter{
			{Kind: KindPayout}, {Kind: KindPayout, Status: "success"}, {Kind: KindPayout, Status: "pending", Page: 9},
			{Kind: KindPayout, Reference: "none-such-reference"}, {Kind: KindPayout, From: historyStart, To: historyStart},
		} {
			page, err := p.History(t.Context(), "nobody", f)
			if err != nil {
				t.Fatalf("%+v: %v", f, err)
			}
			if page.Total != 0 || len(page.Rows) != 0 || page.LastPage != 1 || page.From != 0 || page.To != 0 {
				t.Fatalf("%+v: %+v", f, page)
			}
		}
	})
}

func TestHistory_refusesBadFilters(t *testing.T) {
	p := &Reader{}
	for field, f := range map[string]Filter{
		"status":    {Status: "done"},
		"page":      {Page: -1},
		"page_size": {Size: 101},
		"to":        {From: historyStart, To: historyStart.AddDate(0, 0, -1)},
	} {
		_, err := p.History(context.Background(), "t", f)
		if names := problem.From(err).FieldNames(); !slices.Equal(names, []string{field}) {
			t.Errorf("%+v: the bad fields are %v, want %s", f, names, field)
		}
	}
}

// BenchmarkHistory compares pages of a tenant with a thousand payments and of one with a million in the same
// database. Both should cost the same; times-of-1000 is their ratio.
func BenchmarkHistory(b *testing.B) {
	const small, big = 1_000, 1_000_000
	for _, engine := range dbtest.Engines() {
		b.Run(engine.String(), func(b *testing.B) {
			d := dbtest.Open(b, engine)
			p := NewReader(d, nil, clock.NewManual(historyStart.AddDate(1, 0, 0)))
			seedHistory(b, d, "small", small)
			seedHistory(b, d, "big", big)
			from := historyStart.AddDate(0, 0, 10)
			to := historyStart.AddDate(0, 0, 50)
			for _, c := range []struct {
				name   string
				filter Filter
			}{
				{"all", Filter{}},
				{"success", Filter{Status: "success"}},
				{"failed", Filter{Status: "failed"}},
				{"pending", Filter{Status: "pending"}},
				{"days", Filter{From: from, To: to}},
				{"days-failed", Filter{From: from, To: to, Status: "failed"}},
				{"hundred", Filter{Size: MaxPageSize}},
			} {
				for _, where := range []string{"first", "middle", "last"} {
					b.Run(c.name+"/"+where, func(b *testing.B) {
						tenants := []string{"small", "big"}
						filters := map[string]Filter{}
						for _, tenant := range tenants {
							f := c.filter
							f.Kind = KindPayout
							whole, err := p.History(b.Context(), tenant, f)
							if err != nil || whole.Total == 0 {
								b.Fatalf("%+v: %v", whole, err)
							}
							f.Page = map[string]int{"first": 1, "middle": int(whole.LastPage+1) / 2, "last": int(whole.LastPage)}[where]
							filters[tenant] = f
						}
						took := map[string]time.Duration{}
						b.ResetTimer()
						for range b.N { // alternating, so that both are measured under the same noise
							for _, tenant := range tenants {
								begun := time.Now()
								if page, err := p.History(b.Context(), tenant, filters[tenant]); err != nil || len(page.Rows) == 0 {
									b.Fatalf("%+v: %v", page, err)
								}
								took[tenant] += time.Since(begun)
							}
						}
						b.ReportMetric(float64(took["big"].Microseconds())/float64(b.N), "µs/page")
						b.ReportMetric(float64(took["big"])/float64(took["small"]), "times-of-1000")
						b.ReportMetric(0, "ns/op")
					})
				}
			}
		})
	}
}

// seedHistory stores n payments over ninety days. 4 % of them have failed and 3 % are open.
func seedHistory(b *testing.B, d *db.DB, tenant string, n int) {
	b.Helper()
	s := &fakeList{tenant: tenant, kind: KindPayout}
	step := 90 * 24 * time.Hour / time.Duration(n)
	r := rand.New(rand.NewPCG(1, 2))
	for made := 0; made < n; {
		var batch []Payment
		for range min(5000, n-made) {
			row := s.newRow(historyStart.Add(time.Duration(made) * step))
			switch r := r.IntN(1000); {
			case r < 30:
			case r < 70:
				row.Status, row.SettledAt = StatusFailed, row.CreatedAt.Add(time.Second)
			default:
				row.Status, row.SettledAt = StatusSuccess, row.CreatedAt.Add(time.Second)
			}
			batch = append(batch, row)
			made++
		}
		s.append(b, d, batch)
		s.rows = nil
	}
}
