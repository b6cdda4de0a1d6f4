package notice

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// forgottenKind is the kind of the jobs of forgotten passwords. It never changes, because rows outlive
// programs.
const forgottenKind = "notice-forgotten"

// Links reports whether links can be sent by mail, which needs a mail server and a public URL.
func (n *Notices) Links() bool { return n.SMTP.Enabled() && n.PublicURL != "" && n.Seal != nil }

// errNoLinks is returned if no links can be sent.
func errNoLinks() error {
	return problem.New(problem.Refused, "no_mail", "This server sends no mail. Ask an operator to reset your credentials.")
}

// Forgotten accepts a request for a new password. It does the same for every address, so neither response nor time
// reveals whether an account exists. A job looks for the person later.
func (n *Notices) Forgotten(ctx context.Context, email string, from netip.Addr) error {
	if !n.Links() {
		return errNoLinks()
	}
	email = strings.ToLower(strings.TrimSpace(email))
	if !usertext.IsEmail(email) {
		return problem.Field("email", "must be an e-mail address")
	}
	if err := n.People.TryForgotten(ctx, email, from); err != nil {
		return err
	}
	id := newID()
	text, err := json.Marshal(n.sealed(id, email))
	if err != nil {
		return err
	}
	return n.DB.Write(ctx, func(tx *db.Tx) error {
		n.Jobs.Add(tx, jobs.Job{ID: id, Kind: forgottenKind, Payload: text})
		return nil
	})
}

// forgotten finds the person of a request and sends the link. An unknown address gets nothing.
func (n *Notices) forgotten(ctx context.Context, job jobs.Job) jobs.Outcome {
	var text string
	if err := json.Unmarshal(job.Payload, &text); err != nil {
		return jobs.Dead(err)
	}
	email, err := n.open(job.ID, text)
	if err != nil {
		return jobs.Dead(err)
	}
	token, id := identity.NewForgottenToken(), newID()
	err = n.DB.Write(ctx, func(tx *db.Tx) error {
		n.Jobs.Finish(tx, job.ID)
		p, linked, found, err := n.People.Forgotten(tx, email, token)
		if err != nil || !found {
			return err
		}
		body := "Somebody asked for a new password for your account. You have no second factor, so Makola cannot send a link. Ask an operator of this server to reset your credentials.\n"
		if linked {
			body = fmt.Sprintf("Somebody asked for a new password for your account. To choose one, open this link within %d minutes. It works once:\n\n%s/forgotten/new?t=%s\n\n"+
				"Your second factor stays. All sessions and personal tokens end. If you did not ask for this, do nothing: your password stays unchanged.\n", int(identity.ForgottenLasts.Minutes()), n.PublicURL, token)
		}
		now := n.Clock.Now()
		return n.add(tx, n.secretly(message{id: id, person: p.ID, channel: Email, topic: Security, address: p.Email, title: "Makola: New password", body: body, madeAt: now, endsAt: now.Add(identity.ForgottenLasts)}))
	})
	if err != nil {
		return jobs.Retry(err)
	}
	return jobs.Done()
}

// Invite sends, in tx, the link of an invitation or a reset to the person's address. The person gets the code
// in another way.
func (n *Notices) Invite(tx *db.Tx, email, token string) error {
	if !n.Links() {
		return errNoLinks()
	}
	body := fmt.Sprintf("You are invited to Makola, or your credentials were reset. Open this link within %d hours, and choose a password. It works once:\n\n%s/first?t=%s\n\n"+
		"You also need a code of eight digits. You receive it from the person who invited you or approved this, and not by mail.\n", int(identity.InvitationLasts.Hours()), n.PublicURL, token)
	now := n.Clock.Now()
	return n.add(tx, n.secretly(message{id: newID(), channel: Email, topic: Security, address: email, title: "Makola: Your invitation", body: body, madeAt: now, endsAt: now.Add(identity.InvitationLasts)}))
}

// secretly returns a message with a sealed body.
func (n *Notices) secretly(m message) message {
	m.body, m.secret = n.sealed(m.id, m.body), true
	return m
}

// sealed returns a text sealed for the row with an id.
func (n *Notices) sealed(id, text string) string {
	return base64.StdEncoding.EncodeToString(n.Seal.Seal([]byte(text), []byte(id)))
}

// open is the reverse of sealed.
func (n *Notices) open(id, text string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", err
	}
	plain, err := n.Seal.Open(raw, []byte(id))
	return string(plain), err
}
