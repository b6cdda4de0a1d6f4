package delivery

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
)

// Kind is the kind of a campaign row.
type Kind string

// The kinds of a campaign. A one-time password is a campaign with one recipient. Its template is stored, never its
// text.
const (
	KindCampaign Kind = "campaign"
	KindOTP      Kind = "otp"
)

// CampaignStatus is the state of a campaign. Values are stored and never change.
type CampaignStatus string

// The states of a campaign. An active campaign becomes done, or an operator stops it.
const (
	CampaignActive  CampaignStatus = "active"
	CampaignStopped CampaignStatus = "stopped"
	CampaignDone    CampaignStatus = "done"
)

const (
	// chunkSize is the maximum number of recipients in a chunk. All chunks except the last have this many.
	chunkSize = 1_000
	// stagedAbove is the maximum number of recipients that are stored in the transaction that charges them. A longer
	// list is stored before the charge, so that the charge's transaction is short.
	stagedAbove = chunkSize
	// SmallSize is the maximum number of recipients of a small campaign, which needs no row for its chunk. Chunks of
	// small campaigns have their own workers.
	SmallSize = 10
)

// Campaign is one accepted request to send.
type Campaign struct {
	Tenant          string
	ID              string
	Mode            tenant.Mode
	Kind            Kind
	SenderID        string
	Sender          string // the name as sent
	Message         string // for a one-time password: its template
	Encoding        smstext.Encoding
	Segments        int64 // of one recipient
	Credits         int64 // of one recipient
	Recipients      int64 // number of charged recipients
	Invalid         int64 // recipients that are not numbers
	Excluded        int64 // recipients that were left out because they opted out
	Status          CampaignStatus
	Key             string // access key of the request
	IdempotencyKey  string
	IdempotencyHash string
	CreatedAt       time.Time
	Left            int64     // chunks that are not done; 1 or 0 when a small campaign is read
	Refunded        int64     // messages whose credits were given back
	StartsAt        time.Time // no message goes out earlier; zero: at once
	Promotional     bool      // messages are sent only in the hours of promotional texts

	// The fields of the only chunk of a small campaign.
	numbers   []msisdn.MSISDN
	turn      int64 // turn of its delivery
	claimedAt time.Time
}

// Cost returns the charge of the campaign in credits.
func (c Campaign) Cost() int64 { return c.Credits * c.Recipients }

// campaignKey identifies a campaign.
type campaignKey struct{ tenant, id string }

var campaignColumns = []db.Column[Campaign]{
	{Name: "tenant", Text: func(c Campaign) string { return c.Tenant }},
	{Name: "id", Text: func(c Campaign) string { return c.ID }},
	{Name: "mode", Text: func(c Campaign) string { return string(c.Mode) }},
	{Name: "kind", Text: func(c Campaign) string { return string(c.Kind) }},
	{Name: "sender_id", Text: func(c Campaign) string { return c.SenderID }},
	{Name: "sender", Text: func(c Campaign) string { return c.Sender }},
	{Name: "message", Text: func(c Campaign) string { return c.Message }},
	{Name: "encoding", Text: func(c Campaign) string { return string(c.Encoding) }},
	{Name: "segments", Int: func(c Campaign) int64 { return c.Segments }},
	{Name: "credits", Int: func(c Campaign) int64 { return c.Credits }},
	{Name: "recipients", Int: func(c Campaign) int64 { return c.Recipients }},
	{Name: "invalid", Int: func(c Campaign) int64 { return c.Invalid }},
	{Name: "excluded", Int: func(c Campaign) int64 { return c.Excluded }},
	{Name: "status", Text: func(c Campaign) string { return string(c.Status) }},
	{Name: "access_key", Text: func(c Campaign) string { return c.Key }},
	{Name: "idempotency_key", Text: func(c Campaign) string { return c.IdempotencyKey }},
	{Name: "idempotency_hash", Text: func(c Campaign) string { return c.IdempotencyHash }},
	{Name: "created_at", Time: func(c Campaign) time.Time { return c.CreatedAt }},
	{Name: "numbers", Text: func(c Campaign) string { return writeList(c.numbers) }},
	{Name: "turn", Int: func(c Campaign) int64 { return c.turn }},
	{Name: "marked_at", Time: func(c Campaign) time.Time { return c.claimedAt }},
	{Name: "left_over", Int: func(c Campaign) int64 { return c.Left }},
	{Name: "refunded", Int: func(c Campaign) int64 { return c.Refunded }},
	{Name: "starts_at", Time: func(c Campaign) time.Time { return c.StartsAt }},
	{Name: "promotional", Int: func(c Campaign) int64 { return oneIf(c.Promotional) }},
}

func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// answers reports whether the campaign is the answer to a text from a handset, which goes to numbers that opted out.
func (c Campaign) answers() bool { return c.SenderID == "" }

// waitingOfSmall counts the recipients of a small campaign c that are not final: they have no message row, or one
// that is queued again.
const waitingOfSmall = `c.recipients - (SELECT count(*) FROM messages x WHERE x.tenant = c.tenant AND x.campaign = c.id AND x.no >= 0
	AND x.status NOT IN ('queued', 'sending'))`

// CampaignFields are the columns of a campaign c in the order that Scan expects.
const CampaignFields = `c.tenant, c.id, c.mode, c.kind, c.sender_id, c.sender, c.message, c.encoding, c.segments, c.credits, c.recipients,
	c.invalid, c.excluded, c.status, c.access_key, c.idempotency_key, c.idempotency_hash, c.created_at, c.numbers,
	c.left_over, c.refunded, c.starts_at, c.promotional, CASE WHEN c.numbers = '' THEN 0 ELSE ` + waitingOfSmall + ` END`

// Scan reads a row of CampaignFields.
func (c *Campaign) Scan(r *db.Row) error {
	var mode, kind, encoding, status, numbers string
	var waiting int64
	err := r.Scan(&c.Tenant, &c.ID, &mode, &kind, &c.SenderID, &c.Sender, &c.Message, &encoding, &c.Segments, &c.Credits,
		&c.Recipients, &c.Invalid, &c.Excluded, &status, &c.Key, &c.IdempotencyKey, &c.IdempotencyHash, &c.CreatedAt, &numbers,
		&c.Left, &c.Refunded, &c.StartsAt, &c.Promotional, &waiting)
	c.Mode, c.Kind, c.Encoding, c.Status = tenant.Mode(mode), Kind(kind), smstext.Encoding(encoding), CampaignStatus(status)
	switch c.numbers = parseList(numbers); {
	case waiting > 0:
		c.Left = 1
	case len(c.numbers) > 0 && c.Status == CampaignActive:
		c.Status = CampaignDone
	}
	return err
}

const (
	campaignThere  = `SELECT 1 FROM campaigns WHERE tenant = $1 AND id = $2`
	selectCampaign = `SELECT ` + CampaignFields + ` FROM campaigns c WHERE c.tenant = $1 AND c.id = $2`
)

const chunksOf = `SELECT no, recipients FROM chunks WHERE tenant = $1 AND campaign = $2 AND no >= $3 AND no <= $4 AND state = 'ready' ORDER BY no`

// Waiting returns the recipients at the places from <= place < to, by place. It is for recipients without a message
// row, but some may have one.
func (c *Campaign) Waiting(tx *db.Tx, from, to int64) (map[int64]msisdn.MSISDN, error) {
	waiting := map[int64]msisdn.MSISDN{}
	add := func(first int64, list []msisdn.MSISDN) {
		for i, n := range list {
			if place := first + int64(i); place >= from && place < to {
				waiting[place] = n
			}
		}
	}
	if add(0, c.numbers); len(c.numbers) > 0 {
		return waiting, nil
	}
	err := tx.Query(chunksOf, []any{c.Tenant, c.ID, from / chunkSize, (to - 1) / chunkSize}, func(r *db.Row) error {
		var no int64
		var list string
		err := r.Scan(&no, &list)
		add(no*chunkSize, parseList(list))
		return err
	})
	return waiting, err
}

// writeList returns recipients in their stored form.
func writeList(recipients []msisdn.MSISDN) string {
	var text strings.Builder
	text.Grow(len(recipients) * 13)
	for i, n := range recipients {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(string(n))
	}
	return text.String()
}

// parseList parses the result of writeList.
func parseList(text string) []msisdn.MSISDN {
	if text == "" {
		return nil
	}
	words := strings.Split(text, ",")
	list := make([]msisdn.MSISDN, len(words))
	for i, word := range words {
		list[i] = msisdn.MSISDN(word)
	}
	return list
}

// writeTexts returns the texts of recipients in their stored form.
func writeTexts(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	stored, _ := json.Marshal(texts) // a list of strings can always be encoded
	return string(stored)
}

// parseTexts parses the result of writeTexts.
func parseTexts(stored string) (texts []string, err error) {
	if stored == "" {
		return nil, nil
	}
	if err = json.Unmarshal([]byte(stored), &texts); err != nil {
		err = fmt.Errorf("parse the texts of a chunk: %w", err)
	}
	return texts, err
}
