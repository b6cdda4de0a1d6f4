package batch

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
)

// jobKind is the kind of the job that accepts the rows of a batch. Stored; never renamed.
const jobKind = "batch"

// troubleTime is the pause after an error of our own.
const troubleTime = 2 * time.Second

// payload is the stored payload of the job.
type payload struct {
	Version int    `json:"v"`
	Tenant  string `json:"tenant"`
}

// addJob adds the job of a running batch. A resumed batch gets another job than before, because the old one may not
// have ended yet.
func (s *Batches) addJob(tx *db.Tx, b Batch) {
	s.jobs.Add(tx, jobs.Job{ID: b.ID + "/" + strconv.FormatInt(b.version, 10), Kind: jobKind, Subject: b.ID, Payload: payloadOf(b)})
}

func payloadOf(b Batch) json.RawMessage {
	text, err := json.Marshal(payload{1, b.Tenant})
	if err != nil {
		panic("batch: a payload of strings does not encode: " + err.Error())
	}
	return text
}

// tenantOf returns the tenant of a job.
func tenantOf(j jobs.Job) string {
	var p payload
	if json.Unmarshal(j.Payload, &p) != nil {
		return ""
	}
	return p.Tenant
}
