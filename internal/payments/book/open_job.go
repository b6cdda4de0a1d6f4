package book

import (
	"encoding/json"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
)

// JobKind is the kind of the one job that an open payment has. Its id and its
// subject are the payment's. Refunds have a kind of their own, so that a node of a release without refunds never runs one as a payout.
const (
	JobKind       = "payment"
	RefundJobKind = "refund"
)

// JobPayload is what the job of an open payment says in its row; the rest is in the payment's.
type JobPayload struct {
	Version int    `json:"v"`
	Tenant  string `json:"tenant"`
	Kind    Kind   `json:"kind"`
	Rail    string `json:"rail"`
	At      int64  `json:"at"` // microseconds: when the payment opened
}

// JobOf returns the job of a payment that opens at a moment.
func JobOf(p Payment, at time.Time) jobs.Job {
	b, err := json.Marshal(JobPayload{Version: 1, Tenant: p.Tenant, Kind: p.Kind, Rail: p.Rail, At: db.Micros(at)})
	if err != nil {
		panic("book: a payload of strings does not encode: " + err.Error())
	}
	kind := JobKind
	if p.RefundOf != "" {
		kind = RefundJobKind
	}
	return jobs.Job{ID: p.ID, Kind: kind, Subject: p.ID, Payload: b}
}

// PayloadOf reads what a job's row says.
func PayloadOf(j jobs.Job) (p JobPayload, err error) {
	err = json.Unmarshal(j.Payload, &p)
	return p, err
}
