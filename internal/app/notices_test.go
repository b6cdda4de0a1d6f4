package app

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/test/mailtest"
)

// mailing sets a mail server of the test.
func mailing(s *mailtest.Server) func(*config.Server) {
	return func(c *config.Server) {
		c.SMTP = config.SMTP{Host: s.Host, Port: s.Port, From: "Makola <notices@pay.example>", TLS: "none"}
	}
}

// A payout that awaits approval is a mail to the account's signatory, with a link to the public URL where one is set.
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

// round makes a round of notices.
func (b *browsed) round() {
	b.t.Helper()
	if err := b.notices.Work(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// await waits for a mail to an address that has all texts.
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
