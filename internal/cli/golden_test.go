package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging"
)

// updateCommands writes the golden file again, after an intended change of an output.
var updateCommands = flag.Bool("update-commands", false, "write testdata/commands.golden")

const commandsFile = "testdata/commands.golden"

// variable matches the values that differ between runs: ids, times, secrets, and the user of this machine.
var variable = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-v]{12}\b`), "id"}, // of an account or another thing
	{regexp.MustCompile(`mk_(live|test)_[0-9A-Za-z_.-]+`), "key"},
	{regexp.MustCompile(`\([a-z2-7]{13}\) of \d{4}-\d\d-\d\d`), "batch"},
	{regexp.MustCompile(`/first\?t=[0-9A-Za-z_-]+`), "link"},
	{regexp.MustCompile(`"code": "[0-9]{8}"`), "code"},
	{regexp.MustCompile(`"(secret|former)": "[0-9A-Za-z_+/=-]{20,}"`), "secret"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?( GMT| UTC|Z)?`), "time"},
}

// stable replaces values that differ between runs by their names. For ids it adds a number that is the same for the same id.
func stable(text string, seen map[string]string) string {
	for _, v := range variable {
		text = v.pattern.ReplaceAllStringFunc(text, func(found string) string {
			if v.name != "id" {
				return "<" + v.name + ">"
			}
			if !strings.ContainsAny(found, "0123456789") || strings.Trim(found, "0123456789") == "" { // a word or a number
				return found
			}
			if seen[found] == "" {
				seen[found] = fmt.Sprintf("<id %d>", len(seen)+1)
			}
			return seen[found]
		})
	}
	if u, err := user.Current(); err == nil {
		text = strings.ReplaceAll(text, "cli:"+u.Username, "cli:<user>")
	}
	return text
}

// transcript runs commands and returns their outputs. In a line "·" stands for a space in an argument. "{name}" stands for the id
// that the command "name = command" printed.
func (w where) transcript(lines string, ids map[string]string) string {
	w.t.Helper()
	var all strings.Builder
	seen := map[string]string{}
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		name, command, keeps := strings.Cut(line, " = ")
		if !keeps {
			command = line
		}
		if command == "" {
			continue
		}
		for of, id := range ids {
			command = strings.ReplaceAll(command, "{"+of+"}", id)
		}
		var args []string
		for _, arg := range strings.Fields(command) {
			args = append(args, strings.ReplaceAll(arg, "·", " "))
		}
		var out, errs bytes.Buffer
		code := Run(append(args, w.flags...), &out, &errs)
		if keeps {
			var o struct{ ID, Secret string }
			if json.Unmarshal(out.Bytes(), &o) == nil {
				ids[name] = o.ID
			}
		}
		fmt.Fprintf(&all, "$ %s\n", line)
		all.WriteString(stable(out.String(), seen))
		if errs.Len() > 0 {
			all.WriteString("stderr: " + stable(errs.String(), seen))
		}
		fmt.Fprintf(&all, "exit %d\n", code)
	}
	return all.String()
}

// This test runs the commands that change something, without a person. Their output and exit codes are part of the interface.
// Other tests check the audit log.
const changingCommands = `
	a = tenant create Adom·Stores --mode live --collections on --payout-ip 10.0.0.0/8 --payout-ip ::1 --transfer-limit 200.50 -o json
	b = tenant create Bediako --mode live --id bediako -o json
	t = tenant create Test·Shop --mode test --reason a·try -o json
	tenant create Again --mode live --id bediako
	tenant create · --mode live
	tenant set {a} --blocked on --payouts off --fee-bearer customer --duplicates repeat --reason fraud -o json
	tenant set {a} --blocked on --reason again -o json
	tenant set {a} --blocked off --payouts on --payout-ip 192.0.2.0/24 --name Adom --reason moved -o json
	tenant set Adom --no-payout-ip --bank-transfer-limit 100.00 --listed spending --reason moved -o csv
	tenant set {a} --quota-contacts 2000 --quota-groups none --quota-campaigns default --reason large
	tenant set {a} --reason nothing
	tenant set {a} --blocked on
	tenant set nobody --blocked on --reason x
	tenant set {a} --transfer-limit 0 --reason x
	tenant set {a} --transfer-limit 10000000000000.01 --reason x
	tenant set {a} --name · --reason x
	wallet fund {a} 250.00 --reason slip·1 --reference r1 -o json
	wallet fund {a} 250.00 --reason slip·1 --reference r1
	wallet fund {a} 250.00 --reason slip·2
	wallet fund {a} 250.00 --reference r2
	wallet fund {a} 250.00 --reason · --reference r2
	wallet fund {a} 0 --reason x --reference r2
	wallet fund {a} -1 --reason x --reference r2
	wallet fund nobody 1 --reason x --reference r2
	wallet fund {a} 1 --reason x --reference §
	wallet fund {a} 10000000000000.00 --reason x --reference r2
	wallet fund Adom 1.00 --reason x --reference r2 -o csv
	wallet adjust {a} 0.50 --take --reason twice --reference r2 -o json
	wallet adjust {a} 0.10 --reason little --reference r3
	wallet adjust {a} 1000 --take --reason much --reference r4 -o json
	wallet adjust {a} 0 --reason none --reference r5
	wallet transfer {a} {b} 49.60 --reason agreed --reference r1 -o json
	wallet transfer {a} {b} 49.60 --reason agreed --reference r1
	wallet transfer {a} {b} 1000 --reason much --reference r2
	wallet transfer {a} {a} 1 --reason same --reference r3
	wallet transfer {a} {t} 1 --reason other·mode --reference r3
	wallet transfer {a} nobody 1 --reason x --reference r3
	wallet transfer {a} {b} 0 --reason x --reference r3
	wallet show {b}
	wallet recover {b} --reason owes·nothing
	float add hubtel 1000 --mode test --reason deposit --reference r1
	float add hubtel 1000 --mode test --reason deposit --reference r1
	float add hubtel 100 --take --mode test --reason out --reference r2 -o json
	float add hubtle 100 --mode test --reason typo --reference r3
	float add mtn 100 --reason live --reference r4 -o csv
	float add mtn 0 --reason none --reference r5
	credits sell {a} 1000 --price 35.00 --reason invoice --reference r1 -o json
	credits sell {a} 1000 --price 35.00 --reason invoice --reference r1
	credits sell {a} 0 --price 0 --reason none --reference r2
	credits sell {a} 5 --price -1 --reason none --reference r2
	credits sell {a} 5 --price 0 --reason · --reference r2
	credits sell nobody 5 --price 0 --reason x --reference r2
	credits sell {a} 100000000000 --price 0 --reason x --reference r2
	credits refund {a} 200 --price 7 --reason returned --reference r1
	credits refund {a} 801 --price 0 --reason many --reference r2
	k = key create --tenant {a} --label till --scope read --scope payout --expires-in 720h -o json
	l = key create --tenant {a} --daily 10 -o json
	key create --tenant {a} --scope everything
	key create --tenant {a} --expires-in 0s
	key create --tenant {a} --expires-in -1h
	key create --tenant {a} --member nobody@example.com
	key create --tenant nobody
	key create --tenant {a} --daily -1
	key set {k} --tenant {a} --daily 250.00 --reason stolen -o json
	key set {k} --tenant {a} --daily 0 --reason found
	key set {k} --tenant {a} --reason x
	key set nothing --tenant {a} --daily 1 --reason x
	r = key rotate {k} --tenant {a} --overlap 1h --reason yearly -o json
	key rotate {k} --tenant {a} --reason yearly
	key rotate {r} --tenant {a} --overlap 169h --reason yearly
	key rotate nothing --tenant {a} --reason yearly
	key revoke {l} --tenant {a} --reason leaked -o json
	key revoke {l} --tenant {a} --reason leaked
	key revoke nothing --tenant {a} --reason x
	key rotate {l} --tenant {a} --reason x
	key set {l} --tenant {a} --daily 1 --reason x
	key list --tenant {a} -o csv
	people create --email ama@example.com --role owner -o json
	people create --email ama@example.com --role owner
	people create --email no-address --role owner
	people create --email kofi@example.com --role emperor
	people create --email kofi@example.com --name Kofi --role support --public-url https://pay.example.com -o json
	people invite ama@example.com --role owner --tenant {a} --reason runs·it -o json
	people invite ama@example.com --role owner --tenant {a} --reason again
	people invite yaa@example.com --role developer --tenant Adom --reason writes -o json
	people invite x@example.com --role developer --tenant nobody --reason x
	people invite x@example.com --role owner
	people role kofi@example.com --role approver --reason grown -o json
	people role kofi@example.com --role approver --tenant {a} --reason x
	people role nobody@example.com --role approver --reason x
	people role ama@example.com --role support --reason last·owner
	people role kofi@example.com --role emperor --reason x
	people disable kofi@example.com --reason left -o json
	people disable kofi@example.com --reason left
	people disable ama@example.com --reason last
	people disable nobody@example.com --reason x
	people enable kofi@example.com --reason back -o json
	people enable kofi@example.com --reason back
	people reset kofi@example.com --reason lost·phone -o json
	people reset nobody@example.com --reason x
	people role kofi@example.com --role none --reason gone
	people list -o json
	fees set {a} --rule collection=1%,min=0.10,max=10 --rule payout/BANK=8.00+0.5% --reason agreed
	fees set {a} --free --reason gift -o json
	fees set {a} --rule collection=2% --from 2099-01-01T00:00:00Z --reason later -o csv
	fees set default --rule payout=1.00 --reason everybody
	fees set {a} --rule payout=1.00 --rule payout=2.00 --reason twice
	fees set {a} --reason nothing
	fees set nobody --free --reason x
	fees show {a} -o json
	fees show -o json
	providers pause mtn --mode live --operation collect --reason broken -o csv
	providers pause mtn --mode live --operation collect --reason again -o json
	providers pause mtn --mode live --operation fly --reason x
	providers pause nobody --mode live --reason x
	providers resume mtn --mode live --operation collect --reason mended -o csv
	providers resume mtn --mode live --operation collect --reason again -o csv
	providers route collect MTN hubtel mtn --reason cheaper -o json
	providers route collect MTN hubtel mtn --reason cheaper -o json
	providers route collect mtn --tenant {a} --reason none
	providers route collect MTN --tenant Adom --drop --reason over
	providers route collect MTN --tenant Adom --drop --reason over
	providers route collect MTN nobody --reason x
	providers route fly MTN mtn --reason x
	providers route collect MTN mtn --tenant nobody --reason x
	providers route collect MTN --tenant gone --drop --reason x
	catalogue set network MTN --id 7 --name MTN·Ghana --reason agreed -o json
	catalogue set network MTN --reason nothing
	catalogue set network NONE --id 8 --reason x
	catalogue set service mtn_data --status inactive --reason off
	catalogue set bank 040100 --name GCB --reason shorter -o json
	catalogue bank-code 040100 hubtel 300304 --reason list -o json
	catalogue bank-code 040100 hubtel --reason gone
	catalogue bank-code 999999 hubtel 1 --reason x
	catalogue bank-code 040100 nobody 1 --reason x
	catalogue prefix 0553 MTN --reason list -o csv
	catalogue prefix 0553 --reason gone -o csv
	catalogue prefix 0553 NONE --reason x
	catalogue prefix 5x MTN --reason x
	webhooks secret {a} --rotate --reason leaked -o json
	webhooks secret {a} --rotate
	webhooks secret {a} --reason looks -o json
	webhooks secret nobody --rotate --reason x
	senders create --tenant {a} --name Adum --id 0190f1a0-0000-7000-8000-000000000001 --desc ours --reason papers -o json
	senders create --tenant {a} --name Adum --reason again
	senders create --tenant {a} --name A·very·long·name·here --reason x
	senders create --tenant nobody --name Adum --reason x
	senders approve {sender1} --reason papers -o json
	senders approve {sender1}
	senders reject {sender2} --reason not·yours
	senders approve {sender2}
	senders approve nobodys
	campaigns stop {campaign} --reason mistake -o json
	campaigns stop {campaign} --reason mistake
	campaigns stop nobodys --reason x
	otp reopen {owing} 233242 --reason x
	otp reopen {owing} 0241234567 --reason launch -o json
	otp reopen {owing} 233241 --reason again
	jobs rerun {dead} --reason mended -o json
	jobs rerun {dead}
	jobs rerun nothing
	payouts resolve {paid} --reason neither
	payouts resolve {paid} --paid --provider-fee 0.05 --reason statement -o json
	payouts resolve {paid} --paid --reason statement -o json
	payouts resolve {paid} --unpaid --reason statement
	payouts resolve {unpaid} --unpaid --reason statement -o json
	payouts resolve nothing --paid --reason x
	payouts decide {paid} --for house --reason nothing
	payouts decide {unpaid} --paid --for house --reason wrong -o json
	payouts decide {unpaid} --paid --for house --reason wrong
	payouts decide {paid} --paid --for house --reason paid
	payouts decide {paid} --unpaid --for customer --reason wrong -o json
	payouts decide nothing --for house --reason x
	payouts refund {a} nothing --reason x
	wallet recover {owing} --reason agreed -o json
	wallet recover {owing} --reason nothing·left
	contacts add-group {a} Traders --reason x
	ledger check -o json
	batch check {t} testdata/salaries.csv
	batch check {t} testdata/mistakes.csv
	batch check {t} testdata/nothing.csv
	batch check {t} testdata/salaries.csv --column number=Colour
	batch send {t} testdata/mistakes.csv --reason salaries
	batch send {t} testdata/salaries.csv --reason salaries
	wallet fund {t} 100.00 --reason slip --reference batch-1
	s = batch send {t} testdata/salaries.csv --name Salaries·November --reason salaries -o json
	batch send {t} testdata/salaries.csv --name Salaries·November --reason salaries
	batch send {t} testdata/salaries.csv --name Bonus --reason bonus
	batch list {t}
	batch status {t} {s}
	batch pause {t} {s} --reason check
	batch pause {t} {s} --reason check
	batch resume {t} {s} --reason checked
	batch cancel {t} {s}
	batch cancel {t} {s} --reason wrong·month -o json
	batch status {t} {s} --wait -o csv
	batch results {t} {s}
	batch results {t} {s} --file testdata/results.pdf
	batch status {t} nothing
`

func TestCommands_printAsBefore(t *testing.T) {
	eachAlone(t, func(t *testing.T, w where) {
		if testing.Short() && slices.Contains(w.flags, "--database") {
			t.Skip("SQLite prints the same")
		}
		t.Setenv("MAKOLA_MASTER_KEY", testMasterKey)
		w.served()
		got := w.transcript(changingCommands, w.seeded())
		if *updateCommands {
			if err := os.WriteFile(commandsFile, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(commandsFile)
		if err != nil {
			t.Fatal(err)
		}
		differs(t, string(want), got)
	})
}

// differs fails the test for each command whose output has changed.
func differs(t *testing.T, want, got string) {
	t.Helper()
	before, after := strings.Split(want, "\n$ "), strings.Split(got, "\n$ ")
	if len(before) != len(after) {
		t.Fatalf("%d commands, and %d in the file", len(after), len(before))
	}
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("was\n$ %s\nis\n$ %s", before[i], after[i])
		}
	}
}

// seeded makes a customer with data that no command can create: sender IDs, a campaign, a closed range, a dead job, payments of
// unknown outcome and a debt. It returns their ids by name.
func (w where) seeded() map[string]string {
	w.t.Helper()
	t, ids := w.t, map[string]string{}
	id := w.object("tenant", "create", "Owing", "--mode", "live")["id"].(string)
	w.run(exitOK, "wallet", "fund", id, "100", "--reason", "seed", "--reference", "seed1")
	w.run(exitOK, "credits", "sell", id, "10", "--price", "1", "--reason", "seed", "--reference", "seed2")
	ids["owing"] = id
	for i, name := range []string{"Kejetia", "Telesel", "Adabraka"} {
		s, _, err := w.senders().Request(t.Context(), idempotency.Caller{Tenant: id}, name, "our shop")
		if err != nil {
			t.Fatal(err)
		}
		ids[fmt.Sprintf("sender%d", i+1)] = s.ID
	}
	w.run(exitOK, "senders", "approve", ids["sender3"])
	c, _, err := w.messaging().Send(t.Context(), idempotency.Caller{Tenant: id}, messaging.Send{SenderID: ids["sender3"], Message: "hello", Recipients: []string{"0241000001", "0241000002"}})
	if err != nil {
		t.Fatal(err)
	}
	ids["campaign"], ids["dead"] = c.ID, "0192-a"
	ids["paid"], ids["unpaid"] = w.stuck(t, id, "order-000000001").ID, w.stuck(t, id, "order-000000002").ID
	w.owe(t, id, 100_00)
	if err := w.db.Write(t.Context(), func(tx *db.Tx) error {
		now := time.Now()
		if _, err := tx.Exec(`INSERT INTO jobs (id, owner, kind, subject, payload, run_at, tries, adopted, last_error, created_at, dead_at) VALUES ($1, 'dead', 'x', 's', '{}', $2, 1, 0, 'no use', $2, $2)`, ids["dead"], now); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO otp_taps SELECT id, '233241', 3, $1, 0, 0, 2, 0, 50, 4, $1, $2 FROM tenants WHERE name = 'Owing'`, now, now.Add(time.Hour))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}
