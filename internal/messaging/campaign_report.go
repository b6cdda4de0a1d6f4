package messaging

import (
	"cmp"
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/smstext"
)

// Message is the state of one recipient of a campaign.
type Message struct {
	Recipient   string // a number in its 233 form, or the text of an invalid one
	Status      Status
	Segments    int64 // as mobile operators count them
	Encoding    smstext.Encoding
	Credits     int64 // charged and kept; 0 after a refund, and for an invalid recipient
	SubmittedAt time.Time
	DeliveredAt time.Time
	Error       string
}

// sentRow is the stored row of a message.
type sentRow struct {
	Recipient   string
	Status      Status
	Accepted    int64
	SubmittedAt time.Time
	DeliveredAt time.Time
	Error       string
}

// MessagePage is a page of a campaign's messages. Total is their number over all pages.
type MessagePage struct {
	Campaign Campaign
	Messages []Message
	Total    int64
}

const (
	selectCampaign         = `SELECT ` + delivery.CampaignFields + ` FROM campaigns c WHERE c.tenant = $1 AND c.id = $2`
	selectCampaignAnywhere = `SELECT ` + delivery.CampaignFields + ` FROM campaigns c WHERE c.id = $1`
	messagesOf             = `SELECT no, recipient, status, accepted, submitted_at, delivered_at, error FROM messages
		WHERE tenant = $1 AND campaign = $2 AND no >= $3 AND no < $4 ORDER BY no`
)

const maxMessagesPage = 100

// Campaign returns a campaign of a tenant. It returns NotFound if the campaign does not exist or belongs to another
// tenant.
func (m *Messaging) Campaign(ctx context.Context, tenant, id string) (Campaign, error) {
	var c Campaign
	err := m.db.Read(ctx, func(tx *db.Tx) error { return tx.Query(selectCampaign, []any{tenant, id}, c.Scan) })
	if err == nil && c.ID == "" {
		err = noCampaign()
	}
	return c, err
}

// CampaignOf returns a campaign of any tenant, for operators.
func (m *Messaging) CampaignOf(ctx context.Context, id string) (Campaign, error) {
	var c Campaign
	err := m.db.Read(ctx, func(tx *db.Tx) error { return tx.Query(selectCampaignAnywhere, []any{id}, c.Scan) })
	if err == nil && c.ID == "" {
		err = noCampaign()
	}
	return c, err
}

func noCampaign() error {
	return problem.New(problem.NotFound, "campaign_not_found", "Campaign not found")
}

const (
	listCampaigns    = `SELECT ` + delivery.CampaignFields + ` FROM campaigns c WHERE c.tenant = $1 AND c.id < $2 ORDER BY c.id DESC LIMIT $3`
	listAllCampaigns = `SELECT ` + delivery.CampaignFields + ` FROM campaigns c WHERE c.id < $1 ORDER BY c.id DESC LIMIT $2`
)

// afterAnyID sorts after every id, because ids consist of hexadecimal digits and dashes.
const afterAnyID = "g"

// Campaigns lists up to limit campaigns of a tenant, newest first. An empty tenant means all tenants. The list
// continues after the campaign before, or starts with the newest if before is empty.
func (m *Messaging) Campaigns(ctx context.Context, tenant, before string, limit int) ([]Campaign, error) {
	before = cmp.Or(before, afterAnyID)
	query, args := listCampaigns, []any{tenant, before, limit}
	if tenant == "" {
		query, args = listAllCampaigns, args[1:]
	}
	return db.ReadAll(db.Bulk(ctx, tenant), m.db, query, args, (*Campaign).Scan)
}

const newestCampaign = `SELECT created_at FROM campaigns ORDER BY id DESC LIMIT 1`

// Newest returns when the newest campaign was accepted, by the clock of the node that accepted it. It is zero if
// there is no campaign.
func Newest(ctx context.Context, d *db.DB) (at time.Time, err error) {
	_, err = d.ReadOne(ctx, newestCampaign, nil, &at)
	return at, err
}

// CampaignMessages returns a page of a campaign's recipients in the order of the request, invalid ones last. Pages
// count from 1 and have 1 to 100 rows; a page after the last is empty. A recipient that delivery has not reached yet
// is reported as queued. At most maxInvalid invalid recipients are stored and counted.
func (m *Messaging) CampaignMessages(ctx context.Context, tenant, id string, page, size int64) (MessagePage, error) {
	size = min(max(size, 1), maxMessagesPage)
	page = max(page, 1)
	var p MessagePage
	err := m.db.Read(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		p = MessagePage{}
		if err := tx.Query(selectCampaign, []any{tenant, id}, p.Campaign.Scan); err != nil {
			return err
		}
		if p.Campaign.ID == "" {
			return noCampaign()
		}
		p.Total = p.Campaign.Recipients + min(p.Campaign.Invalid, maxInvalid)
		from := p.Total
		if page <= p.Total/size+1 {
			from = min((page-1)*size, p.Total)
		}
		return p.fill(tx, from, min(from+size, p.Total))
	})
	return p, err
}

// fill reads the messages at the places from <= place < to.
func (p *MessagePage) fill(tx *db.Tx, from, to int64) error {
	c := p.Campaign
	rows := map[int64]sentRow{}
	read := func(low, high int64) error {
		if low >= high {
			return nil
		}
		return tx.Query(messagesOf, []any{c.Tenant, c.ID, low, high}, func(r *db.Row) error {
			var no int64
			var msg sentRow
			err := r.Scan(&no, &msg.Recipient, &msg.Status, &msg.Accepted, &msg.SubmittedAt, &msg.DeliveredAt, &msg.Error)
			rows[no] = msg
			return err
		})
	}
	end := min(to, c.Recipients)
	if err := read(from, end); err != nil {
		return err
	}
	// Invalid recipients follow the others. Their rows have the numbers -1, -2 and so on.
	first, last := max(from, c.Recipients)-c.Recipients, to-c.Recipients
	if err := read(-last, -first); err != nil {
		return err
	}
	if missing(rows, from, end) {
		if err := p.addWaiting(tx, rows, from, end); err != nil {
			return err
		}
		if missing(rows, from, end) { // their chunk ended between the two queries, so read again
			if err := read(from, end); err != nil {
				return err
			}
		}
	}
	for place := from; place < to; place++ {
		no := place
		if place >= c.Recipients {
			no = c.Recipients - place - 1
		}
		if msg, ok := rows[no]; ok {
			p.Messages = append(p.Messages, render(c, msg))
		}
	}
	return nil
}

// missing reports whether a recipient between two places has no row.
func missing(rows map[int64]sentRow, from, end int64) bool {
	for place := from; place < end; place++ {
		if _, ok := rows[place]; !ok {
			return true
		}
	}
	return false
}

// addWaiting adds the recipients between two places that have no row yet.
func (p *MessagePage) addWaiting(tx *db.Tx, rows map[int64]sentRow, from, end int64) error {
	waiting, err := p.Campaign.Waiting(tx, from, end)
	for place, n := range waiting {
		if _, ok := rows[place]; !ok {
			rows[place] = sentRow{Recipient: string(n), Status: StatusQueued}
		}
	}
	return err
}

// render returns a message as its tenant sees it. A claimed message is shown as queued.
func render(c Campaign, msg sentRow) Message {
	t := Message{Recipient: msg.Recipient, Status: msg.Status, Segments: c.Segments, Encoding: c.Encoding, Credits: c.Credits,
		SubmittedAt: msg.SubmittedAt, DeliveredAt: msg.DeliveredAt, Error: msg.Error}
	switch {
	case msg.Status == delivery.StatusInvalid:
		t.Segments, t.Credits, t.SubmittedAt = 0, 0, time.Time{}
	case msg.Status == StatusSending:
		t.Status, t.SubmittedAt = StatusQueued, time.Time{}
	case msg.Status == StatusQueued:
		t.SubmittedAt, t.Error = time.Time{}, ""
	case msg.Status.Refunded(msg.Accepted):
		t.Credits = 0
		if msg.Status == delivery.StatusFailed {
			t.SubmittedAt = time.Time{}
		}
	}
	return t
}
