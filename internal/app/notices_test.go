package app

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/test/mailtest"
)

// mailing configures the mail server of the test.
func mailing(s *mailtest.Server) func(*config.Server) {
	return func(c *config.Server) {
		c.SMTP = config.SMTP{Host: s.Host, Port: s.Port, From: "Makola <notices@pay.example>", TLS: "none"}
	}
}

// The signatory of the account gets a mail about a payout that awaits approval. The mail has a link if a public URL is set.
func TestNotices_payoutAwaitsApproval(t *testing.T) {
	mails := mailtest.Start(t, nil)
	b := browse(t, mailing(mails))
	b.signIn(b.ready.SignInURL)
	b.holds("3000.00")
	b.waits("held-payout-0001", "3000")
	b.round()
	b.await(mails, "<signatory-from-3000.00@demo.example>", "awaits your approval", "GHS 3,000.00")
	for _, m := range mails.Mails() {
		if strings.Contains(m.Body, "0240000051") || strings.Contains(m.Body, "http") { // no public URL is set
			t.Error(m.Body)
		}
	}
}

// round runs one round of notices.
func (b *browsed) round() {
	b.t.Helper()
	if err := b.notices.Work(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// await waits for a mail to an address that contains all texts.
func (b *browsed) await(s *mailtest.Server, to string, texts ...string) mailtest.Mail {
	b.t.Helper()
	for {
	mails:
		for _, m := range s.Mails() {
			if m.To != to {
				continue
			}
			for _, text := range texts {
				if !strings.Contains(m.Subject+"\n"+m.Body, text) {
					continue mails
				}
			}
			return m
		}
		select {
		case <-s.Come():
		case <-b.t.Context().Done():
			b.t.Fatal("no mail came")
		}
	}
}

// A person chooses when to be notified. An owner cannot turn off notices about money and security. The test notice arrives. The
// page of the installation lists each message with its recipient.
func TestNotices_pages(t *testing.T) {
	mails := mailtest.Start(t, nil)
	b := browse(t, mailing(mails))
	b.signIn(b.ready.SignInURL)
	b.want(http.StatusOK, "/account", `href="/account/notices"`)
	b.want(http.StatusOK, "/account/notices", "Approvals", "Once a day", "An owner cannot choose never")
	b.post(http.StatusUnprocessableEntity, "/account/notices", "money", "never")
	b.post(http.StatusOK, "/account/notices", "money", "daily", "approvals", "never")
	b.want(http.StatusOK, "/account/notices", `<option value="never" selected`)
	b.post(http.StatusOK, "/account/notices/test")
	b.await(mails, "<"+developerEmail+">", "Test notice")
	b.until("/ops/notices", "Delivered")
	b.want(http.StatusOK, "/ops/notices", developerEmail, "Makola: Test notice", "E-mail")
}

// Without a mail server the pages state that nobody is notified.
func TestNotices_pagesWithoutMail(t *testing.T) {
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	for _, path := range []string{"/account/notices", "/ops/notices"} {
		b.want(http.StatusOK, path, "Nobody is notified", "No mail server is configured")
	}
	if p := b.do(http.MethodPost, "/account/notices/test", url.Values{}); p.StatusCode != http.StatusBadRequest {
		t.Errorf("%d %s", p.StatusCode, p.text)
	}
}

// If the mail server fails, the page shows its answer in red.
func TestNotices_failingChannelIsShown(t *testing.T) {
	mails := mailtest.Start(t, func(step mailtest.Step, _ int) mailtest.Fault {
		if step == mailtest.Recipient {
			return mailtest.Fault{Answer: "451 4.7.1 greylisted for ever"}
		}
		return mailtest.Fault{}
	})
	b := browse(t, mailing(mails))
	b.signIn(b.ready.SignInURL)
	b.post(http.StatusOK, "/account/notices/test")
	b.until("/ops/notices", "E-mail fails")
	b.want(http.StatusOK, "/ops/notices", "The last answer")
}

// The owner gets a mail about a book that does not balance.
func TestNotices_bookIsWrong(t *testing.T) {
	mails := mailtest.Start(t, nil)
	b := browse(t, mailing(mails))
	if err := b.reportBook(t.Context(), bookLedger, []string{"the assets add up to 5"}); err != nil {
		t.Fatal(err)
	}
	b.round()
	b.await(mails, "<"+developerEmail+">", "A book does not balance", "the assets add up to 5")
}
