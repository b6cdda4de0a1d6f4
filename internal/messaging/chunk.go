package messaging

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/tenant"
)

// The states of a chunk: staged -> ready, with the charge. One that is over is deleted.
const (
	chunkStaged = "staged"
	chunkReady  = "ready"
)

// chunk is a part of a campaign's recipients, and the unit of its delivery.
type chunk struct {
	Tenant     string
	Campaign   string
	No         int64
	State      string
	Recipients []msisdn.MSISDN
	CreatedAt  time.Time
	// Small says that it is all of a small campaign. It has no row: its recipients, its turn and its mark are in
	// the campaign's.
	Small bool
}

var chunkColumns = []db.Column[chunk]{
	{Name: "tenant", Text: func(c chunk) string { return c.Tenant }},
	{Name: "campaign", Text: func(c chunk) string { return c.Campaign }},
	{Name: "no", Int: func(c chunk) int64 { return c.No }},
	{Name: "state", Text: func(c chunk) string { return c.State }},
	{Name: "turn", Int: func(chunk) int64 { return 0 }},
	{Name: "begun", Int: func(chunk) int64 { return 0 }},
	{Name: "marked_at", Int: func(chunk) int64 { return 0 }},
	{Name: "size", Int: func(c chunk) int64 { return int64(len(c.Recipients)) }},
	{Name: "recipients", Text: func(c chunk) string { return writeList(c.Recipients) }},
	{Name: "created_at", Time: func(c chunk) time.Time { return c.CreatedAt }},
}

const (
	chunkThere  = `SELECT 1 FROM chunks WHERE tenant = $1 AND campaign = $2 AND no = $3`
	readyChunks = `UPDATE chunks SET state = 'ready' WHERE tenant = $1 AND campaign = $2 AND state = 'staged'`
	dropStaged  = `DELETE FROM chunks WHERE tenant = $1 AND campaign = $2 AND state = 'staged'`
)

// The kinds of a chunk's job, permanent names. Modes are apart, because the connections of a mode are on
// one node.
func bulkKind(mode tenant.Mode) string { return "sms_bulk_" + string(mode) }

func smallKind(mode tenant.Mode) string { return "sms_small_" + string(mode) }

// chunkPayload is the stored payload of a chunk's job, version 1.
type chunkPayload struct {
	Version  int    `json:"v"`
	Tenant   string `json:"tenant"`
	Campaign string `json:"campaign"`
	Chunk    int64  `json:"chunk"`
	Alone    bool   `json:"alone,omitempty"`
}

// payload says in a job which chunk is meant.
func (k chunk) payload() chunkPayload { return chunkPayload{1, k.Tenant, k.Campaign, k.No, k.Small} }

// job is a job of the chunk.
func (p chunkPayload) job(kind string) (jobs.Job, error) {
	payload, err := json.Marshal(p)
	if err != nil {
		return jobs.Job{}, fmt.Errorf("the payload of a chunk: %w", err)
	}
	return jobs.Job{ID: fmt.Sprintf("%s/%d", p.Campaign, p.Chunk), Kind: kind, Subject: p.Campaign, Payload: payload}, nil
}

const (
	// bulkWorkers and smallWorkers are the chunks of one mode that are worked on at once. Single
	// messages have workers of their own, so that a one-time password does not wait for a campaign.
	bulkWorkers  = 16
	smallWorkers = 256
)
