package sim

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/money"
)

// stated returns a provider whose statement names each line by its type and copy.
func stated(s *Sim) Provider {
	p := callbackPart(mtn, "mtnmomo")(s)
	p.Statement = func(lines []Line) [][]string {
		rows := [][]string{{"line", "amount", "fee", "balance"}}
		for _, l := range lines {
			rows = append(rows, []string{fmt.Sprintf("%s %d.%d.%d", l.Type, l.Number, l.Entry.Number, l.Copy), l.Amount.String(), l.Fee.String(), l.Balance.String()})
		}
		return rows
	}
	return p
}

// The statement of an account has each change of its float with the balance after it. A planted fault changes the lines but not the
// float.
func TestStatementLines_plantedFaults(t *testing.T) {
	for fault, want := range map[FaultKind]string{
		"":                "movement 5.00=5.00",
		StatementOmit:     "",
		StatementOff:      "movement 5.01=5.01",
		StatementTwice:    "movement 5.00=5.00, movement 5.00=10.00",
		StatementFee:      "movement 5.00=4.50",
		StatementReversed: "movement 5.00=5.00, reversal -5.00=0.00",
		StatementForeign:  "movement 5.00=5.00, foreign 77.70=82.70",
		StatementCharge:   "movement 5.00=5.00, charge -3.33=1.67",
		StatementNextDay:  "movement 5.00=5.00",
	} {
		t.Run(string(fault), func(t *testing.T) {
			s, c := newStated(t, "")
			if fault != "" {
				if err := s.Inject(Fault{Provider: mtn, Kind: fault, Count: 1}); err != nil {
					t.Fatal(err)
				}
			}
			s.enter(order(Collection, "233241234567"))
			c.Advance(48 * time.Hour)
			lines := s.lines(t, AccountCollection, time.Time{}, c.Now())
			if got := written(lines); got != want {
				t.Errorf("the statement has %q, want %q", got, want)
			}
			if got := s.Float(mtn) - s.Opening(mtn); got != 500 {
				t.Errorf("the float changed by %s", got)
			}
			if fault == StatementNextDay && !lines[0].At.Equal(start.Truncate(24*time.Hour).Add(24*time.Hour+time.Minute)) {
				t.Errorf("the line is of %v", lines[0].At)
			}
		})
	}
}

func newStated(t *testing.T, dir string) (*Sim, interface {
	Advance(time.Duration)
	Now() time.Time
}) {
	t.Helper()
	s, c := newSim(t, Options{Dir: dir})
	s.add(stated(s))
	return s, c
}

func (s *Sim) lines(t *testing.T, account string, from, until time.Time) []Line {
	t.Helper()
	list, err := s.StatementLines(mtn, account, from, until)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func written(lines []Line) string {
	var list []string
	for _, l := range lines {
		list = append(list, fmt.Sprintf("%s %s=%s", l.Type, l.Amount, l.Balance))
	}
	return strings.Join(list, ", ")
}

// The account for payouts opens with the initial float, has deposits by hand, and keeps its lines when the simulator is opened
// again. The final balance equals the float.
func TestStatementLines_paymentsAndDeposits(t *testing.T) {
	dir := t.TempDir()
	s, c := newStated(t, dir)
	s.enter(order(Payout, "233241234567"))
	c.Advance(time.Minute)
	if err := s.SetFloat(mtn, 100*money.Cedi); err != nil {
		t.Fatal(err)
	}
	paid := s.enter(order(Payout, "233241234568")).Entry
	c.Advance(time.Minute)
	s.ReverseEntry(mtn, paid.Reference)
	c.Advance(time.Minute)
	before := s.lines(t, AccountDisbursement, time.Time{}, c.Now())
	want := "movement -5.00=99999995.00, deposit -99999895.00=100.00, movement -5.00=95.00, reversal 5.00=100.00"
	if got := written(before); got != want {
		t.Errorf("the statement has %q, want %q", got, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := newStated(t, dir)
	after := again.lines(t, AccountDisbursement, time.Time{}, c.Now())
	if written(after) != written(before) || len(again.lines(t, AccountCollection, time.Time{}, c.Now())) != 0 {
		t.Errorf("opened again, the statement has %q", written(after))
	}
	if last := after[len(after)-1]; last.Copy != 1 || last.Balance != again.Float(mtn) {
		t.Errorf("the last line is %+v, and the float %s", last, again.Float(mtn))
	}
}

// A client downloads the days of a statement as a file. Another provider, account or time is refused.
func TestStatementFile_download(t *testing.T) {
	s, c := newStated(t, "")
	s.enter(order(Collection, "233241234567"))
	c.Advance(time.Minute)
	for path, want := range map[string]string{
		"mtn/collection":                               "200 movement 0.1.0,5.00",
		"mtnmomo/collection?from=2026-01-02":           "200 movement 0.1.0,5.00",
		"mtn/collection?to=2026-01-02":                 "200 movement 0.1.0,5.00",
		"mtn/collection?to=2026-01-01":                 "200 line,amount",
		"mtn/collection?from=2026-01-02T09:00:00Z":     "200 line,amount",
		"mtn/collection?from=yesterday":                "422 ",
		"mtn/savings":                                  "422 ",
		"hubtel/collection":                            "404 ",
		"mtn/collection?from=2026-01-03&to=2026-01-03": "200 line,amount",
	} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/sim/v1/statements/"+path, nil))
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); !strings.HasPrefix(got, want[:4]) || !strings.Contains(got, want[4:]) {
			t.Errorf("%s answers %s", path, got)
		}
	}
}
