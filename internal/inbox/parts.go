package inbox

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
)

// Limits of parts that wait for the rest of their text. A part beyond them becomes a text of its own.
const (
	maxParts      = 10_000 // stored parts of all handsets
	maxPartsOfOne = 60     // stored parts of one handset
	// partsWait is how long a text waits for its last part, from its first.
	partsWait = 10 * time.Minute
)

// partKey identifies the text of a part.
type partKey struct {
	mode             tenant.Mode
	sender, number   string
	reference, total int64
}

func (k partKey) args(more ...any) []any {
	return append([]any{k.mode, k.sender, k.number, k.reference, k.total}, more...)
}

// part is a stored part.
type part struct {
	no       int64
	encoding smstext.Encoding
	octets   []byte
	at       time.Time
	joined   time.Time
}

const (
	ofText     = ` FROM inbox_parts WHERE mode = $1 AND sender = $2 AND number = $3 AND reference = $4 AND total = $5`
	partsOf    = `SELECT no, encoding, octets, received_at, joined_at` + ofText + ` ORDER BY no`
	dropParts  = `DELETE` + ofText
	insertPart = `INSERT INTO inbox_parts (mode, sender, number, reference, total, no, encoding, octets, received_at, joined_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)`
	joinParts    = `UPDATE inbox_parts SET joined_at = $6 WHERE mode = $1 AND sender = $2 AND number = $3 AND reference = $4 AND total = $5 AND joined_at = 0`
	waitingParts = `SELECT count(*), coalesce(sum(CASE WHEN sender = $1 THEN 1 ELSE 0 END), 0) FROM inbox_parts WHERE joined_at = 0`
)

// takePart stores a part, and the text with its last part.
func (s *Store) takePart(tx *db.Tx, r received) (outcome, error) {
	key := partKey{r.mode, r.From, r.To, int64(r.Reference), int64(r.Parts)}
	there, err := readParts(tx, key)
	if err != nil {
		return "", err
	}
	if len(there) > 0 && !continues(there, r) {
		if known(there, r) {
			return repeated, nil
		}
		if err := s.replace(tx, key, there); err != nil {
			return "", err
		}
		there = nil
	}
	var all, ofOne int64
	if _, err := tx.One(waitingParts, []any{r.From}, &all, &ofOne); err != nil {
		return "", err
	}
	if all >= maxParts || ofOne >= maxPartsOfOne {
		alone := r.text()
		alone.Parts, alone.Missing = int64(r.Parts), int64(r.Parts-1)
		return s.accept(tx, alone)
	}
	if _, err := tx.Exec(insertPart, key.args(r.Part, r.Encoding, hex.EncodeToString(r.Octets), r.At)...); err != nil {
		return "", err
	}
	if len(there)+1 < r.Parts {
		return partStored, nil
	}
	if there, err = readParts(tx, key); err != nil {
		return "", err
	}
	return s.join(tx, key, there, r)
}

func readParts(tx *db.Tx, key partKey) ([]part, error) {
	return db.All(tx, partsOf+tx.ForUpdate(), key.args(), func(p *part, r *db.Row) error {
		var octets string
		err := r.Scan(&p.no, &p.encoding, &octets, &p.at, &p.joined)
		if err == nil {
			p.octets, err = hex.DecodeString(octets)
		}
		return err
	})
}

// continues reports whether a part belongs to the waiting parts of a text.
func continues(there []part, r received) bool {
	for _, p := range there {
		if !p.joined.IsZero() || p.no == int64(r.Part) {
			return false
		}
	}
	return true
}

// known reports whether a part is there already, as an operator sends it again.
func known(there []part, r received) bool {
	for _, p := range there {
		if p.no == int64(r.Part) && p.encoding == r.Encoding && string(p.octets) == string(r.Octets) && r.At.Sub(p.at) < repeatWithin {
			return true
		}
	}
	return false
}

// replace ends the parts of an earlier text with the same reference: handsets count references in one octet.
func (s *Store) replace(tx *db.Tx, key partKey, there []part) error {
	if there[0].joined.IsZero() {
		if _, err := s.join(tx, key, there, received{}); err != nil {
			return err
		}
	}
	_, err := tx.Exec(dropParts, key.args()...)
	return err
}

// join stores the text of parts, as many as there are. last is the part that completed it, whose connection counts.
func (s *Store) join(tx *db.Tx, key partKey, parts []part, last received) (outcome, error) {
	at := last.At
	if at.IsZero() {
		at = s.Clock.Now()
	}
	if _, err := tx.Exec(joinParts, key.args(at)...); err != nil {
		return "", err
	}
	t := Text{ID: last.id, Mode: key.mode, From: key.sender, To: key.number, Message: textOf(parts, key.total), Encoding: parts[0].encoding, Parts: key.total,
		Missing: key.total - int64(len(parts)), ReceivedAt: at, session: last.Session, sequence: int64(last.Sequence)}
	if t.ID == "" {
		t.ID, t.session = uuid.Must(uuid.NewV7()).String(), fmt.Sprintf("parts/%d/%d", key.reference, db.Micros(parts[0].at))
	}
	return s.accept(tx, t)
}

// gap stands for parts that are missing.
const gap = " [...] "

// textOf joins parts. Neighbours of one encoding are decoded together, because a cut may fall within a character.
func textOf(parts []part, total int64) string {
	var text, run = "", part{}
	flush := func() {
		if len(run.octets) > 0 {
			text += readable(run.octets, run.encoding)
		}
		run = part{}
	}
	next := int64(1)
	for _, p := range parts {
		if p.no > next {
			flush()
			text += gap
		}
		if p.encoding != run.encoding {
			flush()
		}
		run = part{encoding: p.encoding, octets: append(run.octets, p.octets...)}
		next = p.no + 1
	}
	if flush(); next <= total {
		text += gap
	}
	return usertext.Cut(text, MaxText)
}
