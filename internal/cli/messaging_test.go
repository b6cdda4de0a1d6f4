package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
)

// shelf is an SMS rail that accepts nothing.
type shelf struct{}

func (shelf) Whole(string, msisdn.MSISDN) bool { return false }

func (shelf) Ready(msisdn.Network) error { return provider.ErrElsewhere }

func (shelf) Submit(_ context.Context, _ provider.Segment, done func(provider.Outcome)) {
	done(provider.Outcome{Class: provider.NotSent})
}

// messaging returns the domain as a server has it.
func (w where) messaging() *messaging.Messaging {
	c := clock.Real()
	l := ledger.New(w.db, c, "server")
	m := messaging.New(messaging.Deps{DB: w.db, Ledger: l, Tenants: tenant.New(w.db, l, c), Jobs: jobs.New(w.db, c, nil, jobs.Options{Node: "server"}),
		Answers: idempotency.NewAnswers(w.db, c), Senders: w.senders(), Contacts: w.contacts(), Clock: c,
		SMS: map[tenant.Mode]provider.SMSSender{tenant.Live: shelf{}}})
	w.t.Cleanup(m.Close)
	return m
}

// senders returns the sender IDs as a server has them.
func (w where) senders() *senderid.Store {
	c := clock.Real()
	return senderid.New(w.db, tenant.New(w.db, ledger.New(w.db, c, "server"), c), idempotency.NewAnswers(w.db, c), c, config.Quotas{})
}

// contacts returns the contacts as a server has them.
func (w where) contacts() *contacts.Store {
	c := clock.Real()
	return contacts.New(w.db, tenant.New(w.db, ledger.New(w.db, c, "server"), c), idempotency.NewAnswers(w.db, c), c, config.Quotas{})
}

func TestSenders_reviewed(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id, senders := w.tenant(), w.senders()
		var asked []senderid.Sender
		for _, name := range []string{"Kejetia", "Telesel"} {
			s, _, err := senders.Request(t.Context(), idempotency.Caller{Tenant: id}, name, "our shop")
			if err != nil {
				t.Fatal(err)
			}
			asked = append(asked, s)
		}
		if list := w.list("senders", "list"); len(list) != 2 || list[0]["name"] != "Kejetia" || list[0]["tenant"] != id || list[0]["near"] != "" || list[1]["near"] != "telecel" {
			t.Errorf("waiting: %v", list)
		}
		has(t, w.object("senders", "approve", asked[0].ID, "--reason", "papers seen"), map[string]any{"status": "approved", "name": "Kejetia"})
		w.run(exitUsage, "senders", "reject", asked[1].ID, "--reason", " ")
		has(t, w.object("senders", "reject", asked[1].ID, "--reason", "not yours"), map[string]any{"status": "rejected", "reason": "not yours"})
		w.run(exitConflict, "senders", "approve", asked[1].ID)
		w.run(exitNotFound, "senders", "approve", "nobody's")
		if list := w.list("senders", "list"); len(list) != 0 {
			t.Errorf("waiting: %v", list)
		}
		if list := w.list("senders", "list", "--tenant", id); len(list) != 2 || list[0]["status"] != "approved" {
			t.Errorf("all: %v", list)
		}
		log := w.list("audit", "list", "--tenant", id)
		if log[0]["action"] != "sender.reject" || log[0]["reason"] != "not yours" || log[1]["action"] != "sender.approve" {
			t.Errorf("the log is %v", log)
		}
	})
}

func TestCredits_soldRefundedReported(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		has(t, w.object("credits", "sell", id, "1000", "--price", "35.00", "--reason", "invoice 7", "--reference", "r13"), map[string]any{"sms_credits": 1000})
		has(t, w.object("credits", "refund", id, "200", "--price", "7", "--reason", "returned", "--reference", "r14"), map[string]any{"sms_credits": 800})
		w.run(exitFunds, "credits", "refund", id, "801", "--price", "0", "--reason", "too many", "--reference", "r15")
		w.run(exitUsage, "credits", "sell", id, "0", "--price", "0", "--reason", "nothing", "--reference", "r16")
		w.run(exitUsage, "credits", "sell", id, "5", "--price", "0", "--reason", " ", "--reference", "r17")
		w.run(exitNotFound, "credits", "sell", "nobody", "5", "--price", "0", "--reason", "x", "--reference", "r18")
		log := w.list("audit", "list", "--tenant", id)
		if len(log) != 3 || log[1]["action"] != "credits.sell" {
			t.Fatalf("the log is %v", log)
		}
		has(t, log[1]["details"].(map[string]any), map[string]any{"reference": "r13",
			"changes": []any{map[string]any{"what": "SMS credits of Adom Stores", "before": "0 credits", "after": "1,000 credits"},
				map[string]any{"what": "price", "before": "", "after": "GHS 35.00"}}})
		has(t, w.object("ledger", "check"), map[string]any{"ok": true, "campaigns": 0})
	})
}

func TestCampaigns_listedAndStopped(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id, m := w.tenant(), w.messaging()
		s, _, err := w.senders().Request(t.Context(), idempotency.Caller{Tenant: id}, "Kejetia", "our shop")
		if err != nil {
			t.Fatal(err)
		}
		w.run(exitOK, "senders", "approve", s.ID)
		w.run(exitOK, "credits", "sell", id, "10", "--price", "1", "--reason", "x", "--reference", "r19")
		c, _, err := m.Send(t.Context(), idempotency.Caller{Tenant: id}, messaging.Send{SenderID: s.ID, Message: "hello", Recipients: []string{"0241000001", "0241000002"}})
		if err != nil {
			t.Fatal(err)
		}
		if list := w.list("campaigns", "list", id); len(list) != 1 || list[0]["id"] != c.ID || list[0]["status"] != "active" || list[0]["chunks_left"] != 1.0 {
			t.Errorf("campaigns: %v", list)
		}
		if list := w.list("campaigns", "messages", id, c.ID); len(list) != 2 || list[0]["recipient"] != "233241000001" || list[0]["status"] != "queued" {
			t.Errorf("messages: %v", list)
		}
		has(t, w.object("campaigns", "stop", c.ID, "--reason", "a mistake"), map[string]any{"status": "stopped"})
		w.run(exitConflict, "campaigns", "stop", c.ID, "--reason", "again")
		w.run(exitNotFound, "campaigns", "stop", "nobody's", "--reason", "x")
		w.run(exitNotFound, "campaigns", "list", "nobody")
		if log := w.list("audit", "list", "--tenant", id); log[0]["action"] != "campaign.stop" || log[0]["changes"].([]any)[0] != "campaign "+c.ID+": active → stopped;" {
			t.Errorf("the log is %v", log)
		}
		// The check of the books finds faults of messages, too.
		has(t, w.object("ledger", "check"), map[string]any{"ok": true, "campaigns": 1})
		if err := w.db.Write(t.Context(), func(tx *db.Tx) error { _, err := tx.Exec("UPDATE campaigns SET credits = 2"); return err }); err != nil {
			t.Fatal(err)
		}
		w.run(exitInternal, "ledger", "check")
	})
}

func TestOTPRanges_listedAndReopened(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		now := time.Now()
		if _, err := w.db.Exec(t.Context(), `INSERT INTO otp_taps VALUES ($1, '233241', 3, $2, 0, 0, 2, 0, 50, 4, $2, $3)`, id, now, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if list := w.list("otp", "taps"); len(list) != 1 || list[0]["tenant"] != id || list[0]["range"] != "233241" || list[0]["sent"] != 50.0 || list[0]["verified"] != 4.0 {
			t.Errorf("closed: %v", list)
		}
		w.run(exitNotFound, "otp", "reopen", id, "233242", "--reason", "x")
		has(t, w.object("otp", "reopen", id, "0241234567", "--reason", "a launch"), map[string]any{"range": "233241"})
		w.run(exitNotFound, "otp", "reopen", id, "233241", "--reason", "again")
		if list := w.list("otp", "taps"); len(list) != 0 {
			t.Errorf("closed: %v", list)
		}
		if log := w.list("audit", "list", "--tenant", id); log[0]["action"] != "otp.reopen" || log[0]["changes"].([]any)[0] != "range 233241: closed: 4 of 50 verified → open;" || log[0]["reason"] != "a launch" {
			t.Errorf("the log is %v", log)
		}
	})
}

// A report has the revenue and cost of messages by network: here two delivered messages and one that the operator reported as
// failed.
func TestCreditsReport_lineForEachNetwork(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		day := time.Now().UTC().Format(time.DateOnly)
		report := func(more ...string) []map[string]any {
			return w.list(append([]string{"credits", "report", "--from", day, "--to", day, "--credit", "3.5", "--segment", "2.25", "--network", "mtn=2"}, more...)...)
		}
		if lines := report(); len(lines) != 0 {
			t.Errorf("before any campaign: %v", lines)
		}
		id := w.tenant()
		s, _, err := w.senders().Request(t.Context(), idempotency.Caller{Tenant: id}, "Kejetia", "our shop")
		if err != nil {
			t.Fatal(err)
		}
		w.run(exitOK, "senders", "approve", s.ID)
		w.run(exitOK, "credits", "sell", id, "10", "--price", "1", "--reason", "x", "--reference", "r20")
		to := []string{"0241000001", "0241000002", "0201000003"}
		c, _, err := w.messaging().Send(t.Context(), idempotency.Caller{Tenant: id}, messaging.Send{SenderID: s.ID, Message: "hello", Recipients: to})
		if err != nil {
			t.Fatal(err)
		}
		err = w.db.Write(t.Context(), func(tx *db.Tx) error {
			for i, status := range []string{"delivered", "delivered", "failed"} {
				if _, err := tx.Exec(`INSERT INTO messages VALUES ($1, $2, $3, $4, $5, 1, 0, $6, 0, '', $4)`, id, c.ID, i, "233"+to[i][1:], status, time.Now()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		lines := report("--tenant", id)
		if len(lines) != 3 {
			t.Fatalf("%v", lines)
		}
		has(t, lines[0], map[string]any{"network": "MTN", "messages": 2, "delivered": 2, "failed": 0, "delivery_rate": "100.00 %", "credits": 2, "segments": 2,
			"paid": "0.07", "cost": "0.04", "margin": "0.03"})
		has(t, lines[1], map[string]any{"network": "TELECEL", "messages": 1, "delivered": 0, "failed": 1, "delivery_rate": "0.00 %", "credits": 1, "segments": 1,
			"paid": "0.04", "cost": "0.02", "margin": "0.02"})
		has(t, lines[2], map[string]any{"network": "all", "messages": 3, "delivered": 2, "failed": 1, "delivery_rate": "66.66 %", "credits": 3, "segments": 3,
			"paid": "0.11", "cost": "0.06", "margin": "0.05"})
		w.run(exitUsage, "credits", "report", "--from", "yesterday")
		w.run(exitUsage, "credits", "report", "--network", "nobody=1")
		w.run(exitUsage, "credits", "report", "--credit", "0.001")
	})
}

func TestContacts_importedFromAFile(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		file := filepath.Join(t.TempDir(), "contacts.csv")
		var text strings.Builder
		text.WriteString("phone_number,first_name\n")
		for i := range 1_200 {
			fmt.Fprintf(&text, "024%07d,Ama %d\n", i, i)
		}
		text.WriteString("nobody,Kofi\n0240000000,again\n")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		done := w.object("contacts", "import", id, file, "--new-group", "Customers")
		has(t, done, map[string]any{"rows": 1202, "added": 1200, "duplicates": 1, "bad": 1,
			"bad_rows": []string{"line 1202: the phone number must be a Ghanaian mobile number such as 0241234567"}})
		group := done["group"].(string)
		out, errs := w.run(exitOK, "contacts", "import", id, file, "--group", group)
		if !strings.Contains(out, "1201") || !strings.Contains(errs, "line 1202: ") || strings.Contains(errs, "[#") {
			t.Errorf("again: %s%s", out, errs)
		}
		if list := w.list("contacts", "groups", id); len(list) != 1 || list[0]["contacts"] != 1200.0 || list[0]["id"] != group {
			t.Errorf("groups: %v", list)
		}
		w.run(exitUsage, "contacts", "import", id, file)
		w.run(exitUsage, "contacts", "import", id, file+"x", "--group", group)
		w.run(exitNotFound, "contacts", "import", id, file, "--group", "nobody's")

		has(t, w.object("contacts", "optout", id, "0241234567", "+233 50 123 4567", "--reason", "asked by telephone"),
			map[string]any{"opted_out": []string{"233241234567", "233501234567"}})
		w.run(exitUsage, "contacts", "optout", id, "nobody")
		w.run(exitOK, "contacts", "optin", id, "0241234567", "--reason", "asked again")
		w.run(exitNotFound, "contacts", "optin", id, "0241234567", "--reason", "twice")
		if list := w.list("contacts", "optouts", id); len(list) != 1 || list[0]["number"] != "233501234567" || list[0]["reason"] != "asked by telephone" {
			t.Errorf("opt-outs: %v", list)
		}
		for _, entry := range w.list("audit", "list", "--tenant", id) {
			if strings.Contains(fmt.Sprint(entry), "241234567") {
				t.Errorf("the audit log holds a whole number: %v", entry)
			}
		}
	})
}

// A refused file changes nothing: no group is made for it. For an accepted file the command prints its warnings.
func TestContactsImport_file(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		file := filepath.Join(t.TempDir(), "contacts.csv")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for text, says := range map[string]string{"Name,Cell Tower\nAma,0241000001\n": `"Cell Tower"`, "%PDF-1.7": "PDF", "": "has no rows"} {
			write(text)
			if _, errs := w.run(exitUsage, "contacts", "import", id, file, "--new-group", "Customers"); !strings.Contains(errs, says) {
				t.Errorf("%q: %s", text, errs)
			}
		}
		if list := w.list("contacts", "groups", id); len(list) > 0 {
			t.Errorf("refused files left %v", list)
		}
		write("sep=;\nName;Cell Tower;Number;Phone\nAma;233241000001.0;7;Nokia\n;;;\n")
		w.run(exitUsage, "contacts", "import", id, file, "--new-group", "Customers", "--column", "tower=Cell Tower")
		done := w.object("contacts", "import", id, file, "--new-group", "Customers", "--column", "phone_number=Cell Tower")
		has(t, done, map[string]any{"rows": 1, "added": 1, "bad": 0, "notes": []string{}})
		write("Phone,Number\nNokia,'0241000002\n")
		const note = `phone_number is read from "Number", not from "Phone"`
		has(t, w.object("contacts", "import", id, file, "--group", done["group"].(string)), map[string]any{"added": 1, "notes": []string{note}})
		if _, errs := w.run(exitOK, "contacts", "import", id, file, "--group", done["group"].(string)); !strings.Contains(errs, note) {
			t.Errorf("the choice of a column is not reported: %s", errs)
		}
	})
}

// A customer from another system keeps the ids that its programs have in their configuration.
func TestAccount_keepsItsIDs(t *testing.T) {
	const sender, group = "3F8E2C44-0D6B-4B7E-9C55-2A1D6E0F7B90", "9b1f6a1e-7c1d-4a0b-8d4a-5a3c2b1d0e9f"
	each(t, func(t *testing.T, w where) {
		id, other, m := w.tenant(), w.tenant(), w.messaging()
		create := []string{"senders", "create", "--tenant", id, "--name", "Kejetia", "--id", sender, "--reason", "papers seen"}
		has(t, w.object(create...), map[string]any{"id": strings.ToLower(sender), "status": "approved", "name": "Kejetia", "tenant": id})
		w.run(exitConflict, create...)
		w.run(exitConflict, "senders", "create", "--tenant", other, "--name", "Adum", "--id", sender, "--reason", "papers seen")
		w.run(exitConflict, "senders", "create", "--tenant", id, "--name", "KEJETIA", "--reason", "papers seen")
		w.run(exitUsage, "senders", "create", "--tenant", id, "--name", "MTN", "--reason", "papers seen")
		w.run(exitUsage, "senders", "create", "--tenant", id, "--name", "Adum", "--id", "7", "--reason", "papers seen")
		w.run(exitNotFound, "senders", "create", "--tenant", "nobody", "--name", "Adum", "--reason", "papers seen")
		has(t, w.object("contacts", "add-group", id, "Customers", "--id", group), map[string]any{"id": group, "name": "Customers", "contacts": 0})
		w.run(exitConflict, "contacts", "add-group", other, "Customers", "--id", group)
		w.run(exitUsage, "contacts", "add-group", id, "Customers", "--id", "group-1")
		w.run(exitUsage, "contacts", "add-group", id, "")
		w.object("contacts", "add-group", id, "Suppliers")
		// The customer sends with these ids.
		w.run(exitOK, "credits", "sell", id, "10", "--price", "1", "--reason", "x", "--reference", "r1")
		if _, _, err := w.contacts().AddContacts(t.Context(), idempotency.Caller{Tenant: id}, group, []contacts.NewContact{{Phone: "0241000001"}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.Send(t.Context(), idempotency.Caller{Tenant: id}, messaging.Send{SenderID: strings.ToLower(sender), Message: "hello", Groups: []string{group}}); err != nil {
			t.Fatal(err)
		}
		if log := w.list("audit", "list", "--tenant", id, "--action", "sender.create"); len(log) != 1 || log[0]["changes"].([]any)[0] != "sender ID Kejetia: - → approved;" {
			t.Errorf("the log is %v", log)
		}
	})
}
