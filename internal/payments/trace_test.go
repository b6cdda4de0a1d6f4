package payments

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/trace"
)

// The trace of a request is sent to the provider, and to the receiver with every attempt, also after another node
// took over the row. A payment without a trace sends none.
func TestTrace_followsThePayment(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, given := range []string{parent, ""} {
		t.Run("given "+given, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				var mu sync.Mutex
				var atProvider, atReceiver []string
				receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					if atReceiver = append(atReceiver, r.Header.Get("traceparent")); len(atReceiver) == 1 {
						w.WriteHeader(http.StatusInternalServerError)
					}
				}))
				defer receiver.Close()
				h := newFixture(t, d)
				n := h.node("a")
				h.first.script(always(pending), always(success))
				h.first.slow = func(ctx context.Context) provider.Outcome {
					mu.Lock()
					defer mu.Unlock()
					atProvider = append(atProvider, trace.From(ctx))
					return pending
				}
				c, r := h.caller(), h.payout()
				c.Trace, r.CallbackURL = given, receiver.URL
				pay, _, err := n.Payout(t.Context(), c, r)
				if err != nil {
					t.Fatal(err)
				}
				n.pass(time.Minute)
				if kept := n.must(book.KindPayout, pay.ID); kept.Details.Trace != given || kept.Status != book.StatusSuccess {
					t.Errorf("the payment keeps %q, status %s", kept.Details.Trace, kept.Status)
				}
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(atProvider, []string{given}) || !slices.Equal(atReceiver, []string{given, given}) {
					t.Errorf("the provider got %q, the receiver %q", atProvider, atReceiver)
				}
				n.books()
			})
		})
	}
}
