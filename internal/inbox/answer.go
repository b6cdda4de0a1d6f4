package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// Answer is the state of the answer to a text.
type Answer string

// The states: due -> sent or refused. A text without a change of the list has none.
const (
	AnswerDue     Answer = "due"
	AnswerSent    Answer = "sent"
	AnswerRefused Answer = "refused" // the account has no credits, or no number to send from
)

const (
	answerKind    = "sms_answer" // permanent: rows outlive programs
	answerWorkers = 4
	// answerAgain is the time in which a handset gets one answer of an account to each word. So two automatic
	// answerers end after one answer each.
	answerAgain = 24 * time.Hour
	// answerFor is how long an answer is tried. A later answer would surprise the person.
	answerFor   = time.Hour
	answerPause = time.Minute
	maxName     = 40 // characters of an account's name in an answer
)

// answerPayload is the payload of an answer's job, version 1.
type answerPayload struct {
	Version int    `json:"v"`
	Text    string `json:"text"`
}

// answerJob is the job that answers a text.
func answerJob(t Text) jobs.Job {
	payload, err := json.Marshal(answerPayload{1, t.ID})
	if err != nil {
		panic(fmt.Sprintf("inbox: %v", err)) // strings always marshal
	}
	return jobs.Job{ID: "answer/" + t.ID, Kind: answerKind, Payload: payload}
}

const (
	answeredLately = `SELECT 1 FROM inbox_texts WHERE sender = $1 AND received_at >= $2 AND tenant = $3 AND word = $4 AND answer <> '' LIMIT 1`
	textByID       = `SELECT ` + textFields + ` FROM inbox_texts WHERE id = $1`
	endAnswer      = `UPDATE inbox_texts SET answer = $2 WHERE id = $1 AND answer = 'due'`
)

// answerDue reports whether a text is to be answered.
func (s *Store) answerDue(tx *db.Tx, t Text) (bool, error) {
	var one int64
	lately, err := tx.One(answeredLately, []any{t.From, t.ReceivedAt.Add(-answerAgain), t.Tenant, t.Word}, &one)
	return !lately, err
}

// sendAnswer handles the job of an answer.
func (s *Store) sendAnswer(ctx context.Context, job jobs.Job) jobs.Outcome {
	var p answerPayload
	if err := json.Unmarshal(job.Payload, &p); err != nil {
		return jobs.Dead(fmt.Errorf("inbox: parse the payload of an answer: %w", err))
	}
	var t Text
	err := s.DB.Read(ctx, func(tx *db.Tx) error { return tx.Query(textByID, []any{p.Text}, t.scan) })
	if err != nil {
		return jobs.Retry(err)
	}
	number, erased := msisdn.Parse(t.From)
	if t.Answer != AnswerDue || erased != nil {
		return jobs.Done()
	}
	end := AnswerSent
	switch err := s.answer(ctx, t, number); {
	case s.Clock.Age(t.ReceivedAt) >= answerFor, problem.Is(err, problem.InsufficientCredits), problem.Is(err, problem.Invalid), problem.Is(err, problem.Forbidden):
		end = AnswerRefused
	case err != nil:
		return jobs.RetryAfter(answerPause, err)
	}
	if _, err := s.DB.Exec(ctx, endAnswer, t.ID, end); err != nil {
		return jobs.Retry(err)
	}
	return jobs.Done()
}

// answer sends the answer from the number that the text came to. The id of the text makes it one message, however
// often it is tried.
func (s *Store) answer(ctx context.Context, t Text, to msisdn.MSISDN) error {
	account, err := s.Tenants.Get(ctx, t.Tenant)
	if err != nil || s.Clock.Age(t.ReceivedAt) >= answerFor {
		return err
	}
	name := usertext.Cut(account.Name, maxName)
	text := fmt.Sprintf("You get no more messages from %s. Send %s to %s to get them again.", name, about("START", t.Keyword), t.To)
	if t.Word == Start {
		text = fmt.Sprintf("You get messages from %s again. Send %s to %s to end them.", name, about("STOP", t.Keyword), t.To)
	}
	return s.Messaging.Answer(ctx, messaging.Answer{Tenant: t.Tenant, ID: t.ID, From: t.To, To: to, Text: text})
}

// about is a word with the keyword that it is about.
func about(word, keyword string) string {
	if keyword == "" {
		return word
	}
	return word + " " + keyword
}
