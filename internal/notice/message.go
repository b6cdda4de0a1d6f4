package notice

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
)

const (
	// jobKind never changes, because rows outlive programs.
	jobKind = "notice"
	// giveUpAfter is the time within which a message must be delivered.
	giveUpAfter = 24 * time.Hour
)

// message is one message to one reader.
type message struct {
	id, person  string
	channel     Channel
	topic       Topic
	address     string
	title, body string
	secret      bool   // the body is sealed
	instead     string // the message that this one replaces
	state       State
	tries       int
	madeAt      time.Time
	endsAt      time.Time // zero: the usual end
}

// State is the state of a message. Values are stored.
type State string

// The states.
const (
	Pending State = "pending"
	Sent    State = "sent"
	Failed  State = "failed"
)

const insertMessage = `INSERT INTO notice_messages (id, person, channel, topic, address, title, body, secret, instead, made_at, ends_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// payload is the content of a message's job, version 1.
type payload struct {
	Channel Channel `json:"channel"`
}

// add stores a message with its job.
func (n *Notices) add(tx *db.Tx, m message) error {
	text, err := json.Marshal(payload{m.channel})
	if err != nil {
		return err
	}
	ends := m.endsAt
	if ends.IsZero() {
		ends = m.madeAt.Add(giveUpAfter)
	}
	tx.Defer(insertMessage, 1, m.id, m.person, string(m.channel), string(m.topic), m.address, m.title, m.body, m.secret, m.instead, m.madeAt, ends)
	n.Jobs.Add(tx, jobs.Job{ID: m.id, Kind: jobKind, Payload: text})
	return nil
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
