package changes

import (
	"fmt"
	"testing"

	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// nextDay returns the day that closes next. The first day is a year before the tests.
func (f *fixture) nextDay() closing.Day {
	f.t.Helper()
	last, err := f.Closing.LastClosed(f.t.Context(), ledger.GHS)
	if err != nil {
		f.t.Fatal(err)
	}
	if last.Revision == 0 {
		return closing.DayOf(start) - 365
	}
	return last.Day + 1
}

// closeNext closes the next day directly, without a request.
func (f *fixture) closeNext() closing.Day {
	f.t.Helper()
	day := f.nextDay()
	figures, err := f.Closing.Figures(f.t.Context(), ledger.GHS, day)
	if err != nil {
		f.t.Fatal(err)
	}
	f.tx(func(tx *db.Tx) error { return f.Closing.Close(tx, figures, "act") })
	return day
}

// closingExamples returns examples of the kinds about the days of the books.
func closingExamples() map[string]example {
	today := closing.DayOf(start).String()
	return map[string]example{
		KindDayStatement: {ask: func(x *examples, id string) (Request, error) {
			return x.request(KindDayStatement, id, "mode", "live", "day", today, "balances", fmt.Sprintf("bank/gcb=%d.00 float/hubtel=", x.n))
		}},
		KindDayException: {ask: func(x *examples, id string) (Request, error) {
			return x.request(KindDayException, id, "mode", "live", "day", today, "account", "bank/gcb", "way", "less", "amount", fmt.Sprint(x.n), "text", "a cheque")
		}},
		KindCloseDay: {ask: func(x *examples, id string) (Request, error) {
			return x.request(KindCloseDay, id, "mode", "live", "day", x.nextDay().String())
		}},
		KindReopenDay: {ask: func(x *examples, id string) (Request, error) {
			return x.request(KindReopenDay, id, "mode", "live", "day", x.closeNext().String())
		}},
		KindAccountCode: {ask: func(x *examples, id string) (Request, error) {
			return x.request(KindAccountCode, id, "account", "wallet:*", "accountant_code", fmt.Sprintf("21%02d", x.n))
		}},
	}
}

// Two people sign a day with the figures that both saw. If the figures changed in between, the day is not signed.
func TestCloseDay_signedByTwoPeople(t *testing.T) {
	each(t, func(f *fixture) {
		f.account("gcb")
		x := &examples{fixture: f}
		x.boss = f.join("treasurer@example.com", roles.Treasury)
		day := closing.DayOf(start) - 1
		ask := func() Request {
			request, err := x.request(KindCloseDay, newID(), "mode", "live", "day", day.String())
			if err != nil || request.State != Waiting || request.Needs != 1 {
				f.t.Fatal(request, err)
			}
			return request
		}
		if _, err := x.request(KindCloseDay, newID(), "mode", "live", "day", closing.DayOf(start).String()); !problem.Is(err, problem.Invalid) {
			f.t.Error("a day that runs", err)
		}
		request := ask()
		if _, err := f.Approve(f.t.Context(), x.boss, request.ID, request.Digest); problem.From(err).Code != "own_act" && !problem.Is(err, problem.Forbidden) {
			f.t.Error(err)
		}
		f.tx(func(tx *db.Tx) error {
			return f.Closing.SetTheirs(tx, ledger.GHS, day, []closing.Balance{{Account: "bank/gcb", Amount: money.Cedi}}, "yaa")
		})
		if done, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest); err == nil && done.State == Done {
			f.t.Error("other figures were signed", done)
		}
		request = ask()
		seen, err := f.Review(f.t.Context(), f.first.Place, request.ID)
		if err != nil {
			f.t.Fatal(err)
		}
		done, err := f.Approve(f.t.Context(), f.first, request.ID, seen.Shown)
		if err != nil || done.State != Done {
			f.t.Fatalf("%+v, %v", done, err)
		}
		if last, err := f.Closing.LastClosed(f.t.Context(), ledger.GHS); err != nil || last.Day != day || last.Request != request.ID {
			f.t.Error(last, err)
		}
	})
}
