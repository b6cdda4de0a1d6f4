package batch

import (
	"encoding/json"
	"strconv"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
)

// jobKind is the kind of the job that accepts the rows of a batch. Stored; never renamed.
const jobKind = "batch"

// payload is the stored payload of the job.
type payload struct {
	Version int    `json:"v"`
	Tenant  string `json:"tenant"`
}

// addJob adds the job of a batch that runs. A batch that is resumed has another job than before: the old one may not have
// ended yet.
func (s *Batches) addJob(tx *db.Tx, b Batch) {
	text, err := json.Marshal(payload{1, b.Tenant})
	if err != nil {
		panic("batch: a payload of strings does not encode: " + err.Error())
	}
	s.jobs.Add(tx, jobs.Job{ID: b.ID + "/" + strconv.FormatInt(b.version, 10), Kind: jobKind, Subject: b.ID, Payload: text})
}
