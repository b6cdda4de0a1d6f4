package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/mailtest"
)

// watched describes the test of a watcher: how its condition begins and ends, and the text of its notice.
type watched struct {
	event      notice.Event
	watch      func(context.Context) error
	begin, end []string
	line       string
}

// Each watcher sends one notice when its condition begins, and another only after the condition has ended and begun again.
func TestNotices_everyWatcher(t *testing.T) {
	b := browse(t, mailing(mailtest.Start(t, nil)))
	now := b.clock.Now()
	day := func(n int) string { return micros(now.Truncate(24*time.Hour).AddDate(0, 0, n)) }
	soon, live := new(App), new(App) // other nodes
	soon.clock, soon.notices, soon.cfg.TLSCert = b.clock, b.notices, endingIn(t, 5*24*time.Hour)
	soon.cfg.TLSKey = strings.TrimSuffix(soon.cfg.TLSCert, ".pem") + ".key"
	live.db, live.clock, live.notices, live.production = b.db, b.clock, b.notices, true
	list, err := b.routes.List(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	rail := list[0]
	for _, w := range []watched{
		{notice.CircuitOpen, b.watchBreakers,
			[]string{`INSERT INTO provider_breakers (mode, provider, operation, opened_at, open_until, hold, probe_until, why) VALUES ('` + rail.Mode + `', '` + rail.Provider + `', '` + string(rail.Operation) + `', ` + micros(now) + `, ` + day(2) + `, 60000000, 0, 'five timeouts')`},
			[]string{`DELETE FROM provider_breakers`}, rail.Provider},
		{notice.FloatLow, b.watchFloats,
			[]string{`INSERT INTO figures_days (tenant, at, mode, kind, status, rail, n, amount, charges) VALUES ('', ` + day(-1) + `, 'live', 'payout', 'success', 'mtn', 7, 700000, 0)`},
			[]string{`DELETE FROM figures_days WHERE mode = 'live'`}, "mtn has GHS 0.00, a day needs GHS 1,000.00"},
		{notice.ExceptionsOld, b.watchExceptions,
			[]string{`INSERT INTO statement_exceptions (id, source, kind, line, payment, amount, delta, reason, at, opened_at) VALUES ('e1', 'live/mtn/collection', 'theirs_only', 'l1', '', 12345, 12345, 'r', 1, ` + day(-4) + `)`},
			[]string{`DELETE FROM statement_exceptions`}, "MTN MoMo portal, collection: 1 open, GHS 123.45 in all, the oldest since"},
		{notice.DaysOpen, b.watchDays,
			[]string{`INSERT INTO closed_days (asset, day, previous, revision, act, closed_at) VALUES ('` + string(ledger.GHS) + `', ` + strconv.Itoa(int(closing.DayOf(now))-4) + `, NULL, 1, 'a', 1)`},
			[]string{`DELETE FROM closed_days`}, "live money: "},
		{notice.KeyEnds, b.watchKeys,
			[]string{`UPDATE api_keys SET expires_at = ` + day(3)}, []string{`UPDATE api_keys SET expires_at = 0`}, "expires on"},
		{notice.WebhooksFail, b.watchHooks,
			[]string{`INSERT INTO jobs (id, owner, kind, subject, payload, run_at, tries, adopted, last_error, created_at, dead_at) VALUES ('0190-hook', 'elsewhere', 'webhook', '', '{"tenant":"` + demoTenant + `"}', ` + day(2) + `, 4, 0, 'answered 500', ` + micros(now.Add(-2*time.Hour)) + `, 0)`},
			[]string{`DELETE FROM jobs WHERE id = '0190-hook'`}, "Waiting webhooks: 1"},
		{notice.BatchFinished, b.watchBatches,
			[]string{`INSERT INTO batches (id, tenant, mode, name, code, repetition, again, maker, access_key, status, digest, lines, ready, accepted, created_at, changed_at, requested_at, started_at, ended_at)
				VALUES ('b1', '` + demoTenant + `', 'test', 'Salaries', 'code', 0, '', 'ama', '', 'finished', 'd', 2, 2, 2, 1, 1, 1, 1, ` + micros(now) + `)`},
			[]string{`DELETE FROM batches WHERE id = 'b1'`}, `"Salaries", finished, 2 of 2 rows accepted`},
		{notice.BackupOld, live.watchBackup, nil,
			[]string{`INSERT INTO last_backup (id, backup, made_at, took, bytes, file) VALUES (1, 'k1', ` + micros(now) + `, 1, 1, 'a file')`}, "No backup is known"},
		{notice.CertificateEnds, soon.watchCertificate, nil, nil, "Renew it"},
	} {
		t.Run(string(w.event), func(t *testing.T) { b.holdsWatcher(t, w) })
	}
}

// The owner of an old exception gets a notice about that exception, in addition to the people who read statements.
func TestNotices_ownerOfException(t *testing.T) {
	b := browse(t, mailing(mailtest.Start(t, nil)))
	b.signIn(b.nextLink())
	me := b.me(roles.Installation)
	b.runs(t, []string{`INSERT INTO statement_exceptions (id, source, kind, line, payment, amount, delta, reason, at, opened_at, owner) VALUES ('e1', 'live/mtn/collection', 'theirs_only', 'l1', '', 1, 1, 'r', 1, ` +
		micros(b.clock.Now().Add(-73*time.Hour)) + `, '` + me + `')`})
	if err := b.watchExceptions(t.Context()); err != nil {
		t.Fatal(err)
	}
	var readers []string
	if err := b.db.Read(t.Context(), func(tx *db.Tx) error {
		readers = nil
		return tx.Query(`SELECT person FROM notices WHERE event = 'exceptions.old' ORDER BY person`, nil, func(r *db.Row) error {
			var person string
			err := r.Scan(&person)
			readers = append(readers, person)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(readers, []string{"", me}) {
		t.Errorf("the notices are for %q, want everybody and %s", readers, me)
	}
}

// holdsWatcher begins and ends the condition of a watcher, and checks its notices.
func (b *browsed) holdsWatcher(t *testing.T, w watched) {
	t.Helper()
	count := func() (n int, lines string) {
		t.Helper()
		if _, err := b.db.ReadOne(t.Context(), `SELECT count(*), coalesce(max(lines), '') FROM notices WHERE event = $1`, []any{string(w.event)}, &n, &lines); err != nil {
			t.Fatal(err)
		}
		return n, lines
	}
	round := func() {
		t.Helper()
		for range 2 { // the second finds nothing new
			if err := w.watch(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if w.begin != nil {
		round()
		if n, lines := count(); n != 0 {
			t.Errorf("before it begins: %s", lines)
		}
	}
	b.runs(t, w.begin)
	round()
	if n, lines := count(); n != 1 || !strings.Contains(lines, w.line) {
		t.Errorf("%d notices, %q", n, lines)
	}
	if w.end == nil {
		return
	}
	b.runs(t, w.end)
	round()
	if w.begin == nil {
		return
	}
	b.runs(t, w.begin)
	round()
	if n, _ := count(); n != 2 {
		t.Errorf("%d notices after it came back", n)
	}
	b.runs(t, w.end)
}

// micros returns a time as the database stores it.
func micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// runs executes a statement.
func (b *browsed) runs(t *testing.T, statements []string) {
	t.Helper()
	if err := b.db.Write(t.Context(), func(tx *db.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(s); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// endingIn writes a certificate that expires after a time, and its key, and returns the path of the certificate.
func endingIn(t *testing.T, after time.Duration) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(after)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(t.TempDir(), "server")
	for path, block := range map[string]*pem.Block{base + ".pem": {Type: "CERTIFICATE", Bytes: cert}, base + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return base + ".pem"
}

// The owner gets a mail when a recovery begins.
func TestNotices_recoveryBegan(t *testing.T) {
	mails := mailtest.Start(t, nil)
	b := browse(t, mailing(mails))
	if err := b.recovery.Begin(t.Context(), "restored", time.Time{}, "a test", "tester"); err != nil {
		t.Fatal(err)
	}
	if err := b.watchRecovery(t.Context()); err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := b.db.ReadOne(t.Context(), `SELECT count(*) FROM notices WHERE event = $1`, []any{string(notice.RecoveryBegan)}, &n); err != nil || n != 1 {
		t.Errorf("%d notices, %v", n, err)
	}
}

// If the mail server refuses a person's notices about money, they are sent by SMS and charged to the operator's account. The person
// saves and removes the number on a page, and gets a notice of the change.
func TestNotices_bySMS(t *testing.T) {
	mails := mailtest.Start(t, func(step mailtest.Step, _ int) mailtest.Fault {
		if step == mailtest.Recipient {
			return mailtest.Fault{Answer: "550 5.1.1 no such user"}
		}
		return mailtest.Fault{}
	})
	b := browse(t, mailing(mails), func(c *config.Server) { c.Notices = config.Notices{SMSAccount: demoTenant, SMSSender: demoSender} })
	b.signIn(b.ready.SignInURL)
	b.post(422, "/account/notices/phone", "number", "12")
	b.post(200, "/account/notices/phone", "number", "+233 24 411 2233")
	b.want(200, "/account/notices", "0244112233", "Send test SMS")
	b.post(200, "/account/notices/test", "channel", "sms")
	if err := b.reportBook(t.Context(), bookLedger, []string{"the assets add up to 5"}); err != nil {
		t.Fatal(err)
	}
	b.round()
	b.until("/ops/notices", "no such user")
	b.round()
	p := b.until("/ops/notices", "...233")
	if strings.Contains(p.text, "0244112233") {
		t.Error("the list has the whole number")
	}
	clocktest.Await(t, "the SMS", func() bool {
		list, err := b.messaging.Campaigns(t.Context(), demoTenant, "", 9)
		return err == nil && slices.ContainsFunc(list, func(c messaging.Campaign) bool {
			return c.Message == "Makola: A book does not balance. Sign in for details."
		})
	})
	b.post(200, "/account/notices/phone", "number", "")
	if number, err := b.notices.Phone(t.Context(), b.me(roles.Installation)); err != nil || number != "" {
		t.Errorf("%q, %v", number, err)
	}
}

// me returns the id of the first owner at a place.
func (b *browsed) me(place string) (id string) {
	b.t.Helper()
	if err := b.db.Read(b.t.Context(), func(tx *db.Tx) error {
		list, err := b.identity.Holders(tx, place)
		if err == nil {
			id = list[0].ID
		}
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
	return id
}
