package app

import (
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/mailtest"
)

// publicly makes the links in mails lead to this server, at a free port.
func publicly(t *testing.T) func(*config.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return func(c *config.Server) { c.Listen, c.PublicURL = l.Addr().String(), "http://"+l.Addr().String() }
}

var forgottenLink = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+(/forgotten/new\?t=\S+)`)

// A forgotten password is replaced with a link by mail. The link works once and ends all sessions, and the second factor stays. An
// unknown address gets the same answer and no mail. The text of the mail is not stored.
func TestForgotten_linkByMail(t *testing.T) {
	mails := mailtest.Start(t, nil)
	b := browse(t, mailing(mails), publicly(t))
	b.signIn(b.ready.SignInURL)
	one := b.enlists("ama@demo.example", demoTenant, roles.Owner)
	answer := b.post(http.StatusOK, "/forgotten", "email", "Ama@demo.example").text
	if other := b.post(http.StatusOK, "/forgotten", "email", "nobody@demo.example").text; other != answer {
		t.Error("an unknown address has another answer")
	}
	m := b.await(mails, "<ama@demo.example>", "New password", "second factor stays")
	link := forgottenLink.FindStringSubmatch(m.Body)
	if link == nil {
		t.Fatal(m.Body)
	}
	b.want(http.StatusOK, link[1], "ama@demo.example") // a mail program that opens the link does not use it up
	token := strings.TrimPrefix(link[1], "/forgotten/new?t=")
	b.post(http.StatusUnprocessableEntity, "/forgotten/new", "t", token, "password", "short")
	b.post(http.StatusOK, "/forgotten/new", "t", token, "password", "another green market stall")
	if p := b.do(http.MethodPost, "/forgotten/new", url.Values{"t": {token}, "password": {"a third green market stall"}}); p.StatusCode != http.StatusUnauthorized {
		t.Errorf("a second use: %d %s", p.StatusCode, p.text)
	}
	b.post(http.StatusUnprocessableEntity, "/sign-in", "email", "ama@demo.example", "password", "another green market stall") // sign-in without a code
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"60"}})
	if _, err := b.identity.Visit(t.Context(), one.Token, false); err == nil {
		t.Error("the session goes on")
	}
	b.post(http.StatusSeeOther, "/sign-in", "email", "ama@demo.example", "password", "another green market stall", "code", b.codeNow(one.Key))
	var texts, unknown int
	if err := b.db.Read(t.Context(), func(tx *db.Tx) error {
		if _, err := tx.One(`SELECT count(*) FROM notice_messages WHERE secret = 1 AND body <> ''`, nil, &texts); err != nil {
			return err
		}
		_, err := tx.One(`SELECT count(*) FROM notice_messages WHERE address = 'nobody@demo.example'`, nil, &unknown)
		return err
	}); err != nil || texts != 0 || unknown != 0 {
		t.Errorf("%d texts are kept, %d mails to nobody, %v", texts, unknown, err)
	}
}

// Requests for new passwords are limited for each account and address.
func TestForgotten_isLimited(t *testing.T) {
	mails := mailtest.Start(t, nil)
	b := browse(t, mailing(mails), publicly(t))
	for range 10 {
		b.post(http.StatusOK, "/forgotten", "email", "ama@demo.example")
	}
	if p := b.do(http.MethodPost, "/forgotten", url.Values{"email": {"ama@demo.example"}}); p.StatusCode != http.StatusTooManyRequests || p.Header.Get("Retry-After") == "" {
		t.Errorf("%d", p.StatusCode)
	}
}

// Without a mail server, the page refers the person to an operator.
func TestForgotten_withoutMail(t *testing.T) {
	b := browse(t)
	b.want(http.StatusOK, "/forgotten", "Ask an operator")
}
