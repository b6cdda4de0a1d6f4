package sample

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/senderid"
)

const testDays = 4

// storyOfSeed7 is the digest of the history's lines. It may change only if the sample was changed on purpose.
const storyOfSeed7 = "26776659cfad1145e9af9ea82be783d74f3c2ba5dddc148d849fe3a0aca9baf8"

var testEnd = time.Date(2026, 9, 12, 0, 0, 0, 0, time.UTC) // a Saturday

// makeOne makes a sample in a folder of its own.
func makeOne(t *testing.T) Made {
	t.Helper()
	told := time.Duration(-1)
	made, err := Make(t.Context(), Options{Folder: filepath.Join(t.TempDir(), "sample"), Days: testDays, Until: testEnd, Seed: 7, Progress: func(done, total time.Duration) {
		if done < told || total != testDays*24*time.Hour {
			t.Errorf("%v of %v are done after %v", done, total, told)
		}
		told = done
	}})
	if err != nil {
		t.Fatal(err)
	}
	if told != testDays*24*time.Hour {
		t.Errorf("at the end %v are done", told)
	}
	return made
}

// look opens the data of the sample while no server runs.
func look(t *testing.T, made Made) *operator {
	t.Helper()
	o, err := openOperator(t.Context(), config.Storage{Data: made.Folder}, config.Secret{}, clock.NewManual(made.To))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// story returns all requests, oldest first, without their ids.
func (o *operator) story(t *testing.T) (all []book.Payment, lines []string) {
	t.Helper()
	tenants, err := o.tenants.List(t.Context(), "", 10)
	if err != nil || len(tenants) != 2 {
		t.Fatalf("%d tenants, %v", len(tenants), err)
	}
	for _, of := range tenants {
		for _, k := range []book.Kind{book.KindCollection, book.KindPayout, book.KindTopUp, book.KindBundle} {
			err := o.payments.Export(t.Context(), of.ID, book.Filter{Kind: k}, func(p book.Payment) error { all = append(all, p); return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		campaigns, err := o.messaging.Campaigns(t.Context(), of.ID, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range campaigns {
			lines = append(lines, fmt.Sprint(c.CreatedAt, of.Name, c.Kind, c.Sender, c.Recipients, c.Status))
		}
	}
	for _, p := range all {
		lines = append(lines, fmt.Sprint(p.CreatedAt, p.Tenant, p.Kind, p.Reference, p.Channel, p.Account, p.AccountName, p.Amount, p.Charges, p.PublicStatus(), p.Reason, p.Rail, p.SettledAt, p.Attempt, p.Submissions))
	}
	slices.Sort(lines)
	return all, lines
}

// stated fails the test unless the statements were imported and their faults found.
func (o *operator) stated(t *testing.T) {
	t.Helper()
	files, err := o.reconcile.Statements(t.Context(), "", 10)
	if err != nil || len(files) != len(statedAccounts) {
		t.Errorf("%d statements are imported, %v", len(files), err)
	}
	list, err := o.reconcile.Exceptions(t.Context(), reconcile.Filter{Limit: 100})
	kinds := map[reconcile.Kind]int{}
	for _, e := range list {
		kinds[e.Kind]++
	}
	if err != nil || len(list) > 10 || len(kinds) != len(reconcile.Kinds()) {
		t.Errorf("the exceptions are %v, %v", kinds, err)
	}
}

// The same seed and days make the same history. It is plausible, its books balance, and it has cases that need an operator.
func TestSample_sameSeedSameHistory(t *testing.T) {
	t.Parallel()
	made := makeOne(t)
	o := look(t, made)
	all, lines := o.story(t)
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n")))); sum != storyOfSeed7 {
		t.Errorf("the history of seed 7 has the sum %s, want %s; it begins %q", sum, storyOfSeed7, lines[:min(len(lines), 3)])
	}

	o.stated(t)
	if len(all) != made.Payments || len(lines) != made.Payments+made.Campaigns+made.OTPs || made.Campaigns == 0 || made.OTPs == 0 || made.Webhooks < made.Payments*3/4 {
		t.Errorf("%d payments and %d lines were found of %+v", len(all), len(lines), made)
	}
	if aDay := len(all) / testDays; aDay < 30 || aDay > 60 {
		t.Errorf("%d payments a day", aDay)
	}
	unsuccessful, days := 0, map[int]bool{}
	for _, p := range all {
		if p.Status != book.StatusSuccess {
			unsuccessful++
		}
		at := p.CreatedAt
		if at.Before(made.From) || !at.Before(made.To) || at.Hour() < 7 || at.Hour() > 19 {
			t.Errorf("%s was asked for at %v", p.Reference, at)
		}
		if !p.SettledAt.IsZero() && p.SettledAt.Sub(at) > time.Hour {
			t.Errorf("%s took from %v to %v", p.Reference, at, p.SettledAt)
		}
		days[at.YearDay()] = true
	}
	if unsuccessful != made.Failing+made.Stuck || made.Failing == 0 || len(days) != testDays {
		t.Errorf("%d payments of %d days did not succeed, of %+v", unsuccessful, len(days), made)
	}

	stuck, err := o.payments.Stuck(t.Context())
	if err != nil || len(stuck) != 1 || stuck[0].Amount != 450_00 || stuck[0].Status != book.StatusPending {
		t.Errorf("stuck are %+v, %v", stuck, err)
	}
	review, err := o.senders.Waiting(t.Context(), 100)
	if err != nil || len(review) != made.InReview || slices.ContainsFunc(review, func(s senderid.Sender) bool { return s.Name == "KetaCrafts" }) {
		t.Errorf("in review are %+v, %v", review, err)
	}
	o.inBalance(t)
	shows(t, made)
	o.inBalance(t)
}

// inBalance runs every check of `makola ledger check`.
func (o *operator) inBalance(t *testing.T) {
	t.Helper()
	money, err := o.payments.Check(t.Context())
	if err != nil || len(money.Problems) > 0 {
		t.Errorf("payments: %v, %v", money.Problems, err)
	}
	texts, err := o.messaging.Check(t.Context())
	if err != nil || len(texts.Problems) > 0 {
		t.Errorf("messages: %v, %v", texts.Problems, err)
	}
	books, err := o.ledger.Check(t.Context())
	if err != nil || len(books.Problems) > 0 || books.Transfers == 0 {
		t.Errorf("ledger: %+v, %v", books, err)
	}
}

// shows serves the folder and checks its pages.
func shows(t *testing.T, made Made) {
	t.Helper()
	cfg := config.Server{Storage: config.Storage{Data: made.Folder}, Environment: "development", Listen: "127.0.0.1:0", MetricsListen: "off", DrainFor: time.Minute}
	a, err := app.Start(t.Context(), cfg, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	base := strings.TrimSuffix(a.Ready().ConsoleURL, "/")
	jar, _ := cookiejar.New(nil) // without options it never fails
	browser := &http.Client{Jar: jar}
	link, err := url.Parse(a.Ready().SignInURL)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := browser.PostForm(base+"/first", link.Query())
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	tenant := a.Ready().TenantID
	for path, want := range map[string]string{
		"/ops": "Adom Stores", "/ops/payments": "Keta Crafts", "/ops/stuck": "GHS 450.00", "/ops/tenants": "Keta Crafts", "/app/" + tenant + "/payouts": "ADM-260911-",
		"/app/" + tenant + "/collections?status=success&from=2026-09-08&to=2026-09-08": "ADM-260908-", "/app/" + tenant + "/messages": "AdomStores", "/sim": "Test phones",
	} {
		answer, err := browser.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s is answered with %d, %v, without %q: %s", path, answer.StatusCode, err, want, text)
		}
	}
}

// A folder with files in it stays unchanged. After an interruption no files of the sample remain.
func TestSample_refusesUsedFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	mine := filepath.Join(folder, "mine")
	if err := os.WriteFile(mine, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(t.Context(), Options{Folder: folder, Days: testDays}); !problem.Is(err, problem.Duplicate) {
		t.Errorf("a folder with data: %v", err)
	}
	if _, err := Make(t.Context(), Options{Folder: mine, Days: testDays}); err == nil {
		t.Error("a file is taken for a folder")
	}
	if inside, err := os.ReadDir(folder); err != nil || len(inside) != 1 {
		t.Errorf("in the folder is %v, %v", inside, err)
	}
	place := t.TempDir()
	interrupted, interrupt := context.WithCancel(t.Context())
	_, err := Make(interrupted, Options{Folder: filepath.Join(place, "sample"), Days: testDays, Until: testEnd, Progress: func(time.Duration, time.Duration) { interrupt() }})
	if p := problem.From(err); err == nil || p.Code != "interrupted" {
		t.Errorf("an interrupted making: %v", err)
	}
	if inside, err := os.ReadDir(place); err != nil || len(inside) != 0 {
		t.Errorf("an interrupted making leaves %v, %v", inside, err)
	}
	for _, days := range []int{1, 1000} {
		if _, err := Make(t.Context(), Options{Folder: filepath.Join(place, "sample"), Days: days}); !problem.Is(err, problem.Invalid) {
			t.Errorf("%d days: %v", days, err)
		}
	}
}
