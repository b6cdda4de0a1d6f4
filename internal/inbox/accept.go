package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
	"github.com/makola/makola/internal/webhook"
)

// Limits of texts.
const (
	// MaxText is the most characters of a text; a longer one is cut.
	MaxText = 4_000
	// repeatWithin is the time in which an operator sends a text again whose acknowledgement was lost.
	repeatWithin = 10 * time.Minute
	// fromOne is the most texts of one handset in floodTime that are stored. The words of later ones still count.
	fromOne   = 100
	floodTime = time.Hour
	// maxUnassigned is the most texts without an account that are kept.
	maxUnassigned = 10_000
)

// Text is a text from a handset.
type Text struct {
	ID, Tenant string // Tenant is empty if no account has the number
	Mode       tenant.Mode
	From, To   string
	Keyword    string
	Message    string
	Encoding   smstext.Encoding
	Parts      int64
	Missing    int64 // parts that never came
	Word       Word  // empty: none
	Answer     Answer
	ReceivedAt time.Time

	digest, session string
	sequence        int64
}

// text is the text of a message of one part.
func (r received) text() Text {
	return Text{ID: r.id, Mode: r.mode, From: r.From, To: r.To, Message: usertext.Cut(readable(r.Octets, r.Encoding), MaxText), Encoding: r.Encoding,
		Parts: 1, ReceivedAt: r.At, session: r.Session, sequence: int64(r.Sequence)}
}

// readable decodes octets without control characters. Binary data is written in hexadecimal.
func readable(octets []byte, e smstext.Encoding) string {
	if e == smstext.Binary {
		return hex.EncodeToString(octets)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(smstext.Decode(octets, e), "\ufffd"))
}

const (
	textFields = `id, tenant, mode, sender, number, keyword, message, encoding, parts, missing, word, answer, received_at`
	insertText = `INSERT INTO inbox_texts (` + textFields + `, digest, session, sequence)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`
	// A person who sends a text twice makes two units of one session.
	sameText = `SELECT 1 FROM inbox_texts WHERE digest = $1 AND received_at >= $2 AND NOT (session = $3 AND sequence <> $4) LIMIT 1`
	countOf  = `SELECT count(*) FROM inbox_texts WHERE sender = $1 AND received_at >= $2`
	nobodys  = `SELECT count(*) FROM inbox_texts WHERE tenant = ''`
)

func (t *Text) scan(r *db.Row) error {
	return r.Scan(&t.ID, &t.Tenant, &t.Mode, &t.From, &t.To, &t.Keyword, &t.Message, &t.Encoding, &t.Parts, &t.Missing, &t.Word, &t.Answer, &t.ReceivedAt)
}

// accept stores a whole text for each account that it is for. The lock on the number keeps two nodes from storing one
// text at the same time.
func (s *Store) accept(tx *db.Tx, t Text) (outcome, error) {
	numbers, err := readNumbers(tx, keywordsOf+tx.ForUpdate(), t.Mode, t.To)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(t.Mode), t.From, t.To, t.Message}, "\x00")))
	t.digest = hex.EncodeToString(sum[:])
	var one, lately int64
	if again, err := tx.One(sameText, []any{t.digest, t.ReceivedAt.Add(-repeatWithin), t.session, t.sequence}, &one); err != nil || again {
		return repeated, err
	}
	if _, err := tx.One(countOf, []any{t.From, t.ReceivedAt.Add(-floodTime)}, &lately); err != nil {
		return "", err
	}
	var owners []Number
	if t.Word, owners = s.ownersOf(numbers, t.Message); len(owners) == 0 {
		return s.acceptUnassigned(tx, t, lately)
	}
	for i, n := range owners {
		own := t
		if i > 0 {
			own.ID = uuid.Must(uuid.NewV7()).String()
		}
		if err := s.acceptFor(tx, n, own, lately < fromOne); err != nil {
			return "", err
		}
	}
	if lately >= fromOne {
		return dropped, nil
	}
	return stored, nil
}

// ownersOf returns the meaning of a text and the accounts that it is for. A keyword leads to its account, and anything
// else to the account of the whole number. STOP and START without a keyword are for all accounts of the number.
func (s *Store) ownersOf(numbers []Number, text string) (Word, []Number) {
	word, about := s.wordOf(text)
	if word != "" && about == "" {
		var owners []Number
		for _, n := range numbers {
			if !slices.ContainsFunc(owners, func(o Number) bool { return o.Tenant == n.Tenant }) {
				owners = append(owners, n)
			}
		}
		return word, owners
	}
	first := about
	if word == "" {
		if words := foldAll(text, 1); len(words) > 0 {
			first = words[0]
		}
	}
	for _, keyword := range []string{first, ""} {
		if i := slices.IndexFunc(numbers, func(n Number) bool { return n.Keyword == keyword }); i >= 0 {
			if keyword == "" {
				word = "" // the word is no keyword of this number, so the text is a sentence
			}
			return word, numbers[i : i+1]
		}
	}
	return "", nil
}

// acceptUnassigned stores a text without an account, for operators.
func (s *Store) acceptUnassigned(tx *db.Tx, t Text, lately int64) (outcome, error) {
	var kept int64
	if _, err := tx.One(nobodys, nil, &kept); err != nil {
		return "", err
	}
	if kept >= maxUnassigned || lately >= fromOne {
		return dropped, nil
	}
	t.Word = ""
	return unassigned, s.insert(tx, t)
}

// acceptFor gives a text to an account. The list of opt-outs follows a word in any case. keep is whether the text is stored.
func (s *Store) acceptFor(tx *db.Tx, n Number, t Text, keep bool) error {
	t.Tenant, t.Keyword = n.Tenant, n.Keyword
	changed, err := s.obey(tx, t)
	if err != nil || !keep {
		return err
	}
	if changed && n.Answers {
		due, err := s.answerDue(tx, t)
		if err != nil {
			return err
		}
		if due {
			t.Answer = AnswerDue
			s.Jobs.Add(tx, answerJob(t))
		}
	}
	if err := s.insert(tx, t); err != nil {
		return err
	}
	return s.notify(tx, t)
}

func (s *Store) insert(tx *db.Tx, t Text) error {
	_, err := tx.Exec(insertText, t.ID, t.Tenant, t.Mode, t.From, t.To, t.Keyword, t.Message, t.Encoding, t.Parts, t.Missing, t.Word, t.Answer, t.ReceivedAt,
		t.digest, t.session, t.sequence)
	return err
}

// obey updates the account's list of numbers without campaigns, and reports whether the list changed.
func (s *Store) obey(tx *db.Tx, t Text) (changed bool, err error) {
	number, err := msisdn.Parse(t.From)
	if err != nil || t.Word == "" {
		return false, nil
	}
	if t.Word == Stop {
		return s.Contacts.StopByText(tx, t.Tenant, fmt.Sprintf("text to %s", t.To), number)
	}
	return s.Contacts.StartByText(tx, t.Tenant, number)
}

// event is the body of sms.received.
type event struct {
	Event      string    `json:"event"`
	ID         string    `json:"id"`
	From       string    `json:"from"`
	To         string    `json:"to"`
	Keyword    string    `json:"keyword"`
	Text       string    `json:"text"`
	Complete   bool      `json:"complete"`
	OptOut     Word      `json:"opt_out"`
	ReceivedAt time.Time `json:"received_at"`
}

// notify queues the event of a text for an account that has set an address.
func (s *Store) notify(tx *db.Tx, t Text) error {
	account, err := s.Tenants.Unlocked(tx, t.Tenant)
	if err != nil || account.SMSURL == "" {
		return err
	}
	from := t.From
	if m, err := msisdn.Parse(from); err == nil {
		from = m.Local()
	}
	body, err := json.Marshal(event{Event: string(webhook.Received), ID: t.ID, From: from, To: t.To, Keyword: t.Keyword, Text: t.Message, Complete: t.Missing == 0,
		OptOut: t.Word, ReceivedAt: t.ReceivedAt.UTC()})
	if err != nil {
		return fmt.Errorf("inbox: encode the event of a text: %w", err)
	}
	return s.Webhooks.Queue(tx, webhook.Event{Tenant: t.Tenant, Mode: string(t.Mode), Subject: t.ID, Kind: webhook.Received, URL: account.SMSURL, Body: body, First: true})
}
