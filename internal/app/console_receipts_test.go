package app

import (
	"net/http"
	"testing"
	"time"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// Within a minute the page of providers shows unmatched receipts with the reason.
func TestProvidersPage_unmatchedReceipts(t *testing.T) {
	t.Parallel()
	b := produce(t)
	b.as(b.joins("ama@example.com", roles.Owner))
	b.clock.Advance(identity.Freshness)
	if err := b.messaging.NoteBinds(t.Context(), tenant.Live, []messaging.Bind{{Name: "mtn", Connections: 1, Bound: 1, Since: b.clock.Now()}}); err != nil {
		t.Fatal(err)
	}
	b.want(http.StatusOK, "/ops/providers", "Delivery receipts", "Matched")
	r := provider.Receipt{UpstreamID: "1a2b", State: provider.Delivered, To: "233241234567", At: b.clock.Now()}
	if err := b.messaging.Receive(t.Context(), r)(); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Minute)
	b.want(http.StatusOK, "/ops/providers", "Unmatched", "1 receipts since", "match no message, such as that of the id 1a2b")
}
