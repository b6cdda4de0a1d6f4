package notice

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
)

// mostSMS is the length of a notice by SMS in characters: one segment.
const mostSMS = 150

// short returns a message as an SMS. The SMS has no body and no link, because a number may change its owner.
func short(title string) string {
	return strings.Map(func(r rune) rune {
		if r > '~' { // would double the number of segments
			return '?'
		}
		return r
	}, cut(title, mostSMS-len(signIn))) + signIn
}

const signIn = ". Sign in for details."

// dispatch sends a message once on its channel.
func (n *Notices) dispatch(ctx context.Context, m message) error {
	switch {
	case !n.has(m.channel):
		return errors.New("this node has no such channel")
	case m.channel == Hook:
		return n.post(ctx, m)
	case m.channel == SMS:
		number, err := n.Phone(ctx, m.person)
		if err != nil {
			return err
		}
		if number == "" {
			return errNoNumber
		}
		return n.Text(ctx, m.id, number, short(m.title))
	}
	return mailer{n.SMTP}.send(ctx, m)
}

// hookBody is the body of a request in the signed form.
type hookBody struct {
	Type string    `json:"type"`
	ID   string    `json:"id"`
	At   time.Time `json:"timestamp"`
	Data struct {
		Topic Topic  `json:"topic"`
		Title string `json:"title"`
		Text  string `json:"text"`
	} `json:"data"`
}

// slackEscapes escapes the characters that Slack reads as mentions and links.
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// post sends a message to the hook. The file is read at each attempt.
func (n *Notices) post(ctx context.Context, m message) error {
	h, err := n.Ways.Hook()
	if err != nil {
		return err
	}
	if n.Ways.HookForm == config.HookSlack {
		body, err := json.Marshal(map[string]string{"text": slackEscapes.Replace("*" + m.title + "*\n" + m.body)})
		if err != nil {
			return err
		}
		return n.Poster.Post(ctx, m.id, h.URL, body, nil)
	}
	b := hookBody{Type: "notice", ID: m.id, At: m.madeAt.UTC()}
	b.Data.Topic, b.Data.Title, b.Data.Text = m.topic, m.title, m.body
	body, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return n.Poster.Post(ctx, m.id, h.URL, body, h.Key)
}
