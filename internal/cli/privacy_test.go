package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// wherePeopleStay are the tables that may contain a number after its erasure, with the reason.
var wherePeopleStay = map[string]string{
	"opt_outs": "the wish to be sent nothing",
}

// naming lists the tables and columns that contain one of the words.
func naming(t *testing.T, d *db.DB, words ...string) (found []string) {
	t.Helper()
	columns := `SELECT name FROM pragma_table_info($1) WHERE type = 'TEXT' ORDER BY name`
	if d.Engine() == db.Postgres {
		columns = `SELECT CAST(column_name AS TEXT) FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1 AND data_type = 'text' ORDER BY 1`
	}
	err := d.ReadWhole(t.Context(), func(tx *db.Tx) error {
		tables, err := tx.Tables()
		if err != nil {
			return err
		}
		for _, table := range tables {
			var names []string
			if err := tx.Query(columns, []any{table}, func(r *db.Row) error {
				var name string
				err := r.Scan(&name)
				names = append(names, name)
				return err
			}); err != nil {
				return err
			}
			for _, name := range names {
				for _, word := range words {
					var n int64
					if _, err := tx.One(fmt.Sprintf(`SELECT count(*) FROM %s WHERE %s LIKE $1`, table, name), []any{"%" + word + "%"}, &n); err != nil {
						return err
					}
					if n > 0 && wherePeopleStay[table] == "" {
						found = append(found, fmt.Sprintf("%s.%s (%d)", table, name, n))
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A person was paid, got texts, is in a contact group and opted out. After the erasure the number is only in places for which
// the report gives a reason, and the books are unchanged.
func TestErase_keepsTheMoney(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			folder := sampleFolder(t)
			w := where{t: t, flags: []string{"--data", folder}}
			o := db.Options{Path: filepath.Join(folder, "makola.db"), MaxConns: 2}
			if engine == db.Postgres {
				url := dbtest.EmptyURL(t)
				where{t: t}.run(exitOK, "migrate", "copy", "--data", folder, "--to", url)
				w.flags = []string{"--database", url, "--data", folder}
				o = db.Options{URL: url, MaxConns: 2}
			}
			w.db = dbtest.OpenWith(t, o)
			tenant := w.list("tenant", "list")[0]["id"].(string)
			number, name := someoneWhoWasPaid(t, w)
			local := "0" + strings.TrimPrefix(number, "233")
			w.run(exitOK, "contacts", "optout", tenant, local, "--reason", "asked")
			if _, err := w.db.Exec(t.Context(), `INSERT INTO payment_notes (payment, id, author, author_name, at, text) SELECT id, 'n', 'p', 'Ama', 5, 'called ' || account FROM payments WHERE account = $1`, number); err != nil {
				t.Fatal(err)
			}
			before := w.list("privacy", "export", local)
			if !slices.ContainsFunc(before, func(f map[string]any) bool {
				return f["what"] == "note on a payment" && f["detail"] == "called "+number
			}) {
				t.Fatalf("the export lacks the note: %v", before)
			}
			if !slices.ContainsFunc(before, func(f map[string]any) bool { return f["what"] == "payment" && f["name"] == name }) {
				t.Fatalf("the export has %v", before)
			}
			balance, _ := w.run(exitOK, "ledger", "balance", "-o", "csv")
			const kept = "Ama As Earlier Versions Kept Her"
			if err := w.db.Write(t.Context(), func(tx *db.Tx) error {
				if _, err := tx.Exec(`INSERT INTO otp_counters (tenant, msisdn, name, window_start, used) VALUES ($2, $1, 'sent', 5, 1), ($2, $1, 'failed', 5, 1)`, number, tenant); err != nil {
					return err
				}
				if _, err := tx.Exec(`INSERT INTO early_receipts (upstream_id, id, recipient, state, code, received_at) VALUES ('u', 'r', $1, 'delivered', '000', 5)`, number); err != nil {
					return err
				}
				_, err := tx.Exec(`UPDATE payments SET details = $2 WHERE account = $1`, number, `{"name":"`+kept+`"}`)
				return err
			}); err != nil {
				t.Fatal(err)
			}

			hook := tellsOfThem(t, w, number)

			w.run(exitUsage, "privacy", "erase", "not a number", "--reason", "asked")
			done := w.object("privacy", "erase", local, "--reason", "the person asked")
			has(t, done, map[string]any{"left": 0, "counters": 2})
			if copies := fmt.Sprint(done["copies"]); engine == db.Postgres != strings.Contains(copies, "VACUUM") {
				t.Errorf("the copies are %s", copies)
			}
			if after := w.list("privacy", "export", number); len(after) != 0 {
				t.Errorf("the export still has %v", after)
			}
			if found := naming(t, w.db, number, local, kept); len(found) > 0 {
				t.Errorf("the number still stands in %v", found)
			}
			if said, _ := w.run(exitOK, "providers", "exchanges", "--limit", "1000", "-o", "json"); strings.Contains(said, number) || strings.Contains(said, local) || !strings.Contains(said, "request") {
				t.Error("the number still stands in what was said to providers")
			}
			if now, _ := w.run(exitOK, "ledger", "balance", "-o", "csv"); now != balance {
				t.Errorf("the balances were\n%s\nand are\n%s", balance, now)
			}
			w.run(exitOK, "ledger", "check")
			for _, f := range before {
				if f["what"] == "payment" {
					if shown, _ := w.run(exitOK, "payouts", "show", f["id"].(string), "-o", "json"); strings.Contains(shown, number) || strings.Contains(shown, name) || !strings.Contains(shown, "erased") {
						t.Errorf("the payment shows %s", shown)
					}
				}
			}
			said, _ := w.run(exitOK, "webhooks", "list", "--tenant", hook.tenant, "--subject", hook.payment, "-o", "json")
			tries, _ := w.run(exitOK, "webhooks", "attempts", "--tenant", hook.tenant, hook.id, "-o", "json")
			if said += tries; strings.Contains(said, number) || strings.Contains(said, local) || !strings.Contains(said, "?payer=erased") {
				t.Errorf("the webhook's log has %s", said)
			}
			if _, said := w.run(exitConflict, "webhooks", "replay", "--tenant", hook.tenant, hook.id); !strings.Contains(said, "erased") {
				t.Errorf("a replay of the webhook says %q", said)
			}
			if again := w.object("webhooks", "replay", "--tenant", hook.tenant, "--failed"); again["erased"].(float64) < 1 {
				t.Errorf("a replay of what was given up says %v", again)
			}
			if entry := w.list("audit", "list", "--action", "privacy.erase"); len(entry) != 1 || strings.Contains(fmt.Sprint(entry), local[3:]) {
				t.Errorf("the log has %v", entry)
			}
			has(t, w.object("privacy", "erase", local, "--reason", "again"), map[string]any{"payments": 0, "messages": 0, "contacts": 0})
		})
	}
}

// sampleFiles makes five days of history once for all tests, and returns the files of its folder.
var sampleFiles = sync.OnceValues(func() (map[string][]byte, error) {
	place, err := os.MkdirTemp("", "sample")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(place)
	folder := filepath.Join(place, "sample")
	var out, errs bytes.Buffer
	if code := Run([]string{"sample", "--data", folder, "--days", "5", "--seed", "7", "--until", "2026-11-20"}, &out, &errs); code != exitOK {
		return nil, fmt.Errorf("makola sample: exit %d: %s", code, errs.String())
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err == nil {
			files[name], err = os.ReadFile(path)
		}
		return err
	})
	return files, err
})

// sampleFolder returns a folder with five days of history on SQLite, for one test.
func sampleFolder(t *testing.T) string {
	t.Helper()
	files, err := sampleFiles()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "sample")
	for name, content := range files {
		path := filepath.Join(folder, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// aSample returns five days of history on SQLite.
func aSample(t *testing.T) where {
	t.Helper()
	folder := sampleFolder(t)
	return where{t: t, flags: []string{"--data", folder}, db: dbtest.OpenWith(t, db.Options{Path: filepath.Join(folder, "makola.db"), MaxConns: 2})}
}

// A message whose receipt may still arrive keeps its number, because the receipt is matched by it. The erasure counts it as not
// finished.
func TestErase_keepsNumbersOfOpenMessages(t *testing.T) {
	t.Parallel()
	w := aSample(t)
	var number string
	var named int64
	state := func(change string) {
		t.Helper()
		err := w.db.Write(t.Context(), func(tx *db.Tx) error {
			if _, err := tx.One(`SELECT min(recipient) FROM messages WHERE status = 'delivered' AND recipient NOT IN (SELECT account FROM payments)`, nil, &number); number == "" || err != nil {
				return err
			}
			_, err := tx.Exec(change, number)
			return err
		})
		if err != nil || number == "" {
			t.Fatalf("%q: %v", number, err)
		}
	}
	for _, change := range []struct{ open, over string }{
		{`UPDATE messages SET open = 1 WHERE recipient = $1`, `UPDATE messages SET open = 0 WHERE recipient = $1`},
		{`INSERT INTO unsure (tenant, campaign, message, recipient, since) SELECT tenant, campaign, no, recipient, 1 FROM messages WHERE recipient = $1`, `DELETE FROM unsure WHERE recipient = $1`},
	} {
		number = ""
		state(change.open)
		if done := w.object("privacy", "erase", number, "--reason", "asked"); done["left"].(float64) < 1 || done["messages"].(float64) != 0 {
			t.Errorf("%s: %v", change.open, done)
		}
		state(change.over)
		if done := w.object("privacy", "erase", number, "--reason", "asked"); done["left"].(float64) != 0 || done["messages"].(float64) < 1 {
			t.Errorf("%s: %v", change.over, done)
		}
	}
	_, err := w.db.ReadOne(t.Context(), `SELECT count(*) FROM messages WHERE recipient = $1`, []any{number}, &named)
	if err != nil || named != 0 {
		t.Errorf("%d messages still name it: %v", named, err)
	}
}

// someoneWithACode selects a person who was sent a one-time password and has no open entries.
const someoneWithACode = `SELECT recipient FROM messages WHERE (tenant, campaign) IN (SELECT tenant, id FROM campaigns WHERE kind = 'otp')
AND recipient NOT IN (SELECT recipient FROM messages WHERE open > 0 OR status IN ('queued', 'sending', 'submitted'))
AND recipient NOT IN (SELECT recipient FROM unsure) AND recipient NOT IN (SELECT account FROM payments) ORDER BY 1 LIMIT 1`

// A one-time password and a text to a few numbers are stored in one row with their numbers.
func TestErase_receiverOfACode(t *testing.T) {
	t.Parallel()
	w := aSample(t)
	var number string
	_, err := w.db.ReadOne(t.Context(), someoneWithACode, nil, &number)
	if err != nil || number == "" {
		t.Fatalf("nobody got a code: %v", err)
	}
	has(t, w.object("privacy", "erase", number, "--reason", "asked"), map[string]any{"left": 0})
	if found := naming(t, w.db, number, "0"+strings.TrimPrefix(number, "233")); len(found) > 0 {
		t.Errorf("the number still stands in %v", found)
	}
	w.run(exitOK, "ledger", "check")
}

// twoOfOneTenant selects a collection and a top-up, both final.
const twoOfOneTenant = `SELECT c.account, c.id, a.id FROM payments c JOIN payments a ON a.tenant = c.tenant AND a.kind = 'topup'
WHERE c.kind = 'collection' AND c.settled_at <> 0 AND a.settled_at <> 0 AND c.account <> a.account ORDER BY c.id, a.id LIMIT 1`

// A purchase of airtime has the callback URL of its request, in which a customer may write the payer's number.
func TestErase_payerOfAirtime(t *testing.T) {
	t.Parallel()
	w := aSample(t)
	var number, collection, topUp string
	if err := w.db.Write(t.Context(), func(tx *db.Tx) error {
		if _, err := tx.One(twoOfOneTenant, nil, &number, &collection, &topUp); err != nil || number == "" {
			return err
		}
		if _, err := tx.Exec(`UPDATE payments SET child = $2 WHERE id = $1`, collection, topUp); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE payments SET parent = $2, callback_url = $3 WHERE id = $1`, topUp, collection, "https://shop.example/hook?payer="+number)
		return err
	}); err != nil || number == "" {
		t.Fatalf("a sample without airtime: %v", err)
	}
	w.object("privacy", "erase", number, "--reason", "asked")
	if found := naming(t, w.db, number); len(found) > 0 {
		t.Errorf("the number still stands in %v", found)
	}
}

// someone selects a person who was paid, without an open payment or webhook.
const someone = `SELECT account, account_name FROM payments WHERE kind = 'payout' AND account_name <> '' AND account LIKE '233_________'
AND NOT EXISTS (SELECT 1 FROM payments AS other WHERE other.account = payments.account AND (other.settled_at = 0
	OR EXISTS (SELECT 1 FROM webhook_events WHERE webhook_events.tenant = other.tenant AND webhook_events.subject = other.id AND webhook_events.state = 'pending')))
ORDER BY id LIMIT 1`

// namedWebhook is a webhook that contains data of a person.
type namedWebhook struct{ tenant, payment, id string }

// tellsOfThem makes a failed webhook that contains the person's number, in the query of its URL and in the receiver's response.
func tellsOfThem(t *testing.T, w where, number string) (hook namedWebhook) {
	t.Helper()
	local := "0" + strings.TrimPrefix(number, "233")
	err := w.db.Write(t.Context(), func(tx *db.Tx) error {
		hook = namedWebhook{id: "01990000-0000-7000-8000-000000000001"}
		_, err := tx.One(`SELECT tenant, id FROM payments WHERE account = $1 ORDER BY id LIMIT 1`, []any{number}, &hook.tenant, &hook.payment)
		for _, change := range []struct {
			sql  string
			args []any
		}{
			{`UPDATE payments SET callback_url = $2 WHERE id = $1`, []any{hook.payment, "https://shop.example/hook?payer=" + number}},
			{`INSERT INTO webhook_events (tenant, subject, id, mode, kind, url, body, state, attempts, status, took, error, created_at, ended_at, failed_at)
				VALUES ($1, $2, $3, 'live', 'collection', $4, '{}', 'failed', 1, 410, 1, 'answered 410', 1, $5, $5)`,
				[]any{hook.tenant, hook.payment, hook.id, "https://shop.example/hook?payer=" + number, time.Now()}},
			{`INSERT INTO webhook_attempts (tenant, event, id, number, at, status, took, error, answer) VALUES ($1, $2, $3, 1, 2, 410, 1, 'answered 410', $4)`,
				[]any{hook.tenant, hook.id, hook.id, "no order of +" + number + " or " + local}},
		} {
			if err == nil {
				_, err = tx.Exec(change.sql, change.args...)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

// someoneWhoWasPaid makes a payout to a number with a name, and returns both.
func someoneWhoWasPaid(t *testing.T, w where) (number, name string) {
	t.Helper()
	_, err := w.db.ReadOne(t.Context(), someone, nil, &number, &name)
	if err != nil || number == "" {
		t.Fatalf("nobody was paid: %v", err)
	}
	return number, name
}
