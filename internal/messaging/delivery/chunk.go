package delivery

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/tenant"
)

// chunk is a part of a campaign's recipients, the unit of delivery.
type chunk struct {
	Tenant     string
	Campaign   string
	No         int64
	State      string
	Recipients []msisdn.MSISDN
	Texts      []string // by recipient; nil: all get the campaign's text
	CreatedAt  time.Time
	// Small is set for the only chunk of a small campaign. The chunk has no row of its own; its recipients, turn and
	// claim are in the campaign's row.
	Small bool
}

// The states of a chunk. A staged chunk becomes ready when the campaign is charged. A finished chunk is deleted.
const (
	chunkStaged = "staged"
	chunkReady  = "ready"
)

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
	{Name: "texts", Text: func(c chunk) string { return writeTexts(c.Texts) }},
}

const (
	chunkThere  = `SELECT 1 FROM chunks WHERE tenant = $1 AND campaign = $2 AND no = $3`
	readyChunks = `UPDATE chunks SET state = 'ready' WHERE tenant = $1 AND campaign = $2 AND state = 'staged'`
	dropStaged  = `DELETE FROM chunks WHERE tenant = $1 AND campaign = $2 AND state = 'staged'`
)

const (
	// bulkWorkers and smallWorkers are the numbers of chunks of one mode that are delivered at once. Small campaigns
	// have their own workers, so that a one-time password does not wait for a large campaign.
	bulkWorkers  = 16
	smallWorkers = 256
)

// The kinds of a chunk's job are stored and never change. Each mode has its own kind, because one node has the
// connections of a mode.
func bulkKind(mode tenant.Mode) string { return "sms_bulk_" + string(mode) }

func smallKind(mode tenant.Mode) string { return "sms_small_" + string(mode) }

// ownTextsKind is the kind of chunks whose recipients have their own texts. The previous release did not register this kind: it
// would send the text with its fields unfilled.
func ownTextsKind(mode tenant.Mode) string { return "sms_own_texts_" + string(mode) }

// chunkPayload is the stored payload of a chunk's job, version 1.
type chunkPayload struct {
	Version  int    `json:"v"`
	Tenant   string `json:"tenant"`
	Campaign string `json:"campaign"`
	Chunk    int64  `json:"chunk"`
	Alone    bool   `json:"alone,omitempty"`
}

// payload returns the payload that identifies the chunk in a job.
func (k chunk) payload() chunkPayload { return chunkPayload{1, k.Tenant, k.Campaign, k.No, k.Small} }

// job returns the chunk's job.
func (p chunkPayload) job(kind string) (jobs.Job, error) {
	payload, err := json.Marshal(p)
	if err != nil {
		return jobs.Job{}, fmt.Errorf("encode the payload of a chunk: %w", err)
	}
	return jobs.Job{ID: fmt.Sprintf("%s/%d", p.Campaign, p.Chunk), Kind: kind, Subject: p.Campaign, Payload: payload}, nil
}
