package delivery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/smstest"
)

func TestIdempotencyKey_expiresAfterADay(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{})
		const old, young = keysAtOnce + 10, 20
		var campaigns []Campaign
		for i := range old + young {
			c := Campaign{Tenant: fmt.Sprintf("tenant %d", i%3), ID: fmt.Sprintf("campaign %d", i), Mode: tenant.Live, Kind: KindCampaign, Segments: 1, Credits: 1,
				Recipients: 1, Status: CampaignDone, IdempotencyKey: fmt.Sprintf("key %d", i), CreatedAt: smstest.Morning}
			if i >= old {
				c.CreatedAt = smstest.Morning.Add(time.Second)
			}
			campaigns = append(campaigns, c)
		}
		h.Write(func(tx *db.Tx) error {
			for set := range slices.Chunk(campaigns, 1_000) {
				db.Insert(tx, "campaigns", campaignColumns, set)
			}
			return nil
		})
		if err := h.retention().dropOldKeys(t.Context(), smstest.Morning.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, whole := h.Count("SELECT count(*) FROM campaigns WHERE idempotency_key <> ''"), h.Count("SELECT count(*) FROM campaigns WHERE idempotency_key <> '' AND created_at > $1", smstest.Morning); n != young || whole != young {
			t.Errorf("%d keys are left, %d of %d young ones", n, whole, young)
		}
	})
}

func TestSweep_stagedChunksWithoutCharge(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 3_000})
		// These are the rows of a node that dies after it stored the chunks and before the charge.
		a := &admission{tenant: h.Tenant, campaign: Campaign{Tenant: "shop", ID: "dead"}}
		for no := range int64(3) {
			a.chunks = append(a.chunks, chunk{Tenant: "shop", Campaign: "dead", No: no, Recipients: []msisdn.MSISDN{"233241234567"}, CreatedAt: h.clock.Now()})
		}
		if err := h.admissions.stage(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		h.Pass(sweepEvery)
		if n := h.Count("SELECT count(*) FROM chunks"); n != 3 {
			t.Errorf("%d of 3 chunks are left that may still be charged", n)
		}
		h.Pass(stagedFor)
		if n := h.Count("SELECT count(*) FROM chunks"); n != 0 {
			t.Errorf("%d orphans were not swept", n)
		}
		h.sound()
	})
}

func TestAdmission_retryRecognizesItself(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10, sleep: true})
		a := h.order("hello", "0241234567").admission()
		for range 3 { // group commit repeats a batch whose answer was lost
			v, err := h.admissions.admit(t.Context(), []*admission{a})
			if err != nil || v[0].Err != nil || v[0].Value.campaign.ID != a.campaign.ID || v[0].Value.replayed {
				t.Fatalf("%+v, %v", v, err)
			}
		}
		h.WantBalance(9)
		h.sound()
	})
}
