package messaging

import (
	"errors"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/smstest"
)

// A campaign is stopped once. Messages that were not sent are not charged.
func TestStop_activeCampaign(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.SetReady(errors.New("no operator"))
		c := h.mustSend("hello", smstest.Numbers(3)...)
		stop := func(id string) error {
			return d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := h.StopCampaign(tx, id)
				return err
			})
		}
		if err := stop(c.ID); err != nil {
			t.Fatal(err)
		}
		wantKind(t, stop(c.ID), problem.Duplicate)
		wantKind(t, stop("019f0000-0000-7000-8000-000000000000"), problem.NotFound)
		h.operator.SetReady(nil)
		h.Pass(time.Minute)
		h.wantStatus(c, "3 failed")
		for _, m := range h.messages(c) {
			if m.Credits != 0 || m.Error == "" || !m.SubmittedAt.IsZero() {
				t.Errorf("%+v", m)
			}
		}
		h.WantBalance(10)
		h.sound()
	})
}
