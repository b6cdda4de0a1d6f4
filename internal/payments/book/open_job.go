package book

import (
	"encoding/json"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
)

// JobKind is the kind of the one job of an open payment. The job's id and subject are the payment's id. Refunds have
// a separate kind, so that a node of a release without refunds never submits one as a payout.
const (
	JobKind       = "payment"
	RefundJobKind = "refund"
)

// JobPayload is the stored payload of an open payment's job. All other facts are in the payment's row.
type JobPayload struct {
	Version int    `json:"v"`
	Tenant  string `json:"tenant"`
	Kind    Kind   `json:"kind"`
	Rail    string `json:"rail"`
	At      int64  `json:"at"` // microseconds; when the payment opened
}

// JobOf returns the job of a payment that opens at this time.
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

// PayloadOf decodes the payload of a payment's job.
func PayloadOf(j jobs.Job) (p JobPayload, err error) {
	err = json.Unmarshal(j.Payload, &p)
	return p, err
}
