package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// The limits of conditions.
const (
	backupTooOld   = 26 * time.Hour // the same age as in the alert
	certificateBy  = 14 * 24 * time.Hour
	keyBy          = 7 * 24 * time.Hour
	hooksFailFor   = time.Hour
	batchesOver    = 24 * time.Hour
	paceDays       = 7
	floatLastsDays = 1
	exceptionsOver = 72 * time.Hour
	daysBehind     = 2 // number of days that could be closed
	// slowlyEvery is the interval for checks of conditions that read more than a few rows, or that last for
	// days.
	slowlyEvery = 5 * time.Minute
	mostOfEach  = 1000
)

// watchConditions reports the conditions that cause notices. If one condition cannot be read, the others are still
// reported.
func (a *App) watchConditions(ctx context.Context) error {
	watches := []func(context.Context) error{a.watchPayments, a.watchBreakers, a.watchRecovery, a.watchBatches}
	if now := a.clock.Elapsed(); now >= a.slowlyFrom {
		a.slowlyFrom = now + slowlyEvery
		watches = append(watches, a.watchBackup, a.watchCertificate, a.watchKeys, a.watchHooks, a.watchFloats, a.watchExceptions, a.watchDays)
	}
	var all error
	for _, watch := range watches {
		all = errors.Join(all, watch(ctx))
	}
	return all
}

// at formats a time for notices.
func at(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04") }

// watchBreakers reports the providers whose circuit breaker is open.
func (a *App) watchBreakers(ctx context.Context) error {
	list, err := a.routes.List(ctx)
	if err != nil {
		return err
	}
	var open []notice.Condition
	for _, s := range list {
		if s.Breaker != "closed" {
			name := fmt.Sprintf("%s, %s (%s)", s.Provider, s.Operation, s.Mode)
			open = append(open, notice.Condition{Name: name, Place: roles.Installation, Line: name + ": " + s.Why})
		}
	}
	return a.notices.Report(ctx, notice.CircuitOpen, "", open)
}

// watchRecovery reports a recovery in progress.
func (a *App) watchRecovery(ctx context.Context) error {
	s, err := a.recovery.State(ctx)
	if err != nil {
		return err
	}
	var lasts []notice.Condition
	if s.Lasts() {
		lasts = []notice.Condition{{Name: s.BegunAt.UTC().Format(time.RFC3339), Place: roles.Installation, Line: "Since " + at(s.BegunAt) + ". Run makola recovery status."}}
	}
	return a.notices.Report(ctx, notice.RecoveryBegan, "", lasts)
}

// watchBatches reports the batches that ended in the last day.
func (a *App) watchBatches(ctx context.Context) error {
	list, err := batch.EndedSince(ctx, a.db, a.clock.Now().Add(-batchesOver), mostOfEach)
	if err != nil {
		return err
	}
	ended := make([]notice.Condition, len(list))
	for i, b := range list {
		ended[i] = notice.Condition{Name: b.ID, Place: b.Tenant, Line: fmt.Sprintf("%s, %s, %d of %d rows accepted", notice.Name(b.Name), b.Status, b.Accepted, b.Ready)}
	}
	return a.notices.Report(ctx, notice.BatchFinished, "", ended)
}

// watchBackup reports that the last backup is old, in production.
func (a *App) watchBackup(ctx context.Context) error {
	if !a.production {
		return nil
	}
	last, found, err := backup.Last(ctx, a.db)
	if err != nil {
		return err
	}
	var old []notice.Condition
	switch {
	case !found:
		old = []notice.Condition{{Name: "none", Place: roles.Installation, Line: "No backup is known. Run makola backup create."}}
	case a.clock.Since(last.MadeAt) > backupTooOld:
		old = []notice.Condition{{Name: last.File, Place: roles.Installation, Line: "The last backup was made on " + at(last.MadeAt) + ". Run makola backup create."}}
	}
	return a.notices.Report(ctx, notice.BackupOld, "", old)
}

// watchCertificate reports that the server's own certificate ends soon. Each node reports its own file.
func (a *App) watchCertificate(ctx context.Context) error {
	if a.cfg.TLSCert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(a.cfg.TLSCert, a.cfg.TLSKey)
	if err != nil {
		return err
	}
	var soon []notice.Condition
	if ends := pair.Leaf.NotAfter; ends.Sub(a.clock.Now()) < certificateBy {
		soon = []notice.Condition{{Name: at(ends), Place: roles.Installation, Line: "It ends on " + at(ends) + ". Renew it. The server reads a changed file within a second."}}
	}
	return a.notices.Report(ctx, notice.CertificateEnds, "", soon)
}

// watchKeys reports the API keys that expire soon to their accounts.
func (a *App) watchKeys(ctx context.Context) error {
	list, err := a.access.Expiring(ctx, keyBy, mostOfEach)
	if err != nil {
		return err
	}
	soon := make([]notice.Condition, len(list))
	for i, k := range list {
		soon[i] = notice.Condition{Name: k.ID, Place: k.Tenant, Line: fmt.Sprintf("Key %s (%s) expires on %s", k.Hint, notice.Name(k.Label), at(k.ExpiresAt))}
	}
	return a.notices.Report(ctx, notice.KeyEnds, "", soon)
}

// watchHooks reports the accounts whose webhooks have failed for an hour.
func (a *App) watchHooks(ctx context.Context) error {
	list, err := a.webhooks.Failing(ctx, hooksFailFor)
	if err != nil {
		return err
	}
	failing := make([]notice.Condition, len(list))
	for i, f := range list {
		failing[i] = notice.Condition{Name: f.Tenant, Place: f.Tenant, Line: fmt.Sprintf("Waiting webhooks: %d, the oldest since %s", f.Waiting, at(f.Oldest))}
	}
	return a.notices.Report(ctx, notice.WebhooksFail, "", failing)
}

// watchFloats reports the providers at which our money lasts less than a day at the pace of the last seven days.
func (a *App) watchFloats(ctx context.Context) error {
	today := a.clock.Now().UTC().Truncate(24 * time.Hour)
	spent := map[string]money.Pesewas{}
	days, err := a.figures.Days(ctx, figures.Span{Mode: string(tenant.Live), From: today.AddDate(0, 0, -paceDays), To: today})
	if err != nil {
		return err
	}
	for _, f := range days {
		if f.Kind != book.KindCollection && f.Status == book.StatusSuccess {
			spent[f.Rail] += f.Amount
		}
	}
	var low []notice.Condition
	for rail, sum := range spent {
		if rail == "" {
			continue
		}
		accounts, err := a.payments.Floats(ctx, rail, string(tenant.Live))
		if err != nil {
			return err
		}
		held := money.Pesewas(0)
		for _, balance := range accounts {
			held += balance
		}
		if pace := sum / paceDays; pace > 0 && held < pace*floatLastsDays {
			low = append(low, notice.Condition{Name: rail, Place: roles.Installation, Line: fmt.Sprintf("%s has GHS %s, a day needs GHS %s", rail, grouped(held), grouped(pace))})
		}
	}
	return a.notices.Report(ctx, notice.FloatLow, "", low)
}

// watchExceptions reports statements with exceptions that have been open for days. It also reports these exceptions to
// their owners.
func (a *App) watchExceptions(ctx context.Context) error {
	list, err := a.reconcile.Old(ctx, exceptionsOver, mostOfEach)
	if err != nil {
		return err
	}
	var owned []notice.Condition
	sums := map[string]reconcile.Aging{}
	for _, o := range list {
		sum := sums[o.Source]
		sum.Add(o)
		sums[o.Source] = sum
		if o.Owner != "" {
			owned = append(owned, notice.Condition{Name: o.Owner + " " + o.Source, Place: roles.Installation, Person: o.Owner, Line: "Yours: " + lineOf(o)})
		}
	}
	var all []notice.Condition
	for source, sum := range sums {
		all = append(all, notice.Condition{Name: source, Place: roles.Installation, Line: lineOf(sum)})
	}
	return errors.Join(a.notices.Report(ctx, notice.ExceptionsOld, "", all), a.notices.Report(ctx, notice.ExceptionsOld, "owners", owned))
}

func lineOf(a reconcile.Aging) string {
	title := a.Source
	if s, err := reconcile.ParseSource(a.Source); err == nil {
		title = s.Title()
	}
	return fmt.Sprintf("%s: %d open, GHS %s in all, the oldest since %s", title, a.Count, grouped(a.Sum), at(a.Oldest))
}

// watchDays reports the books whose next day has not been closed for days. It leaves out books without any closed day.
func (a *App) watchDays(ctx context.Context) error {
	var open []notice.Condition
	for _, mode := range []tenant.Mode{tenant.Live, tenant.Test} {
		last, err := a.closing.LastClosed(ctx, tenant.Tenant{Mode: mode}.Money())
		if err != nil {
			return err
		}
		if n := a.closing.Behind(last); n > daysBehind {
			open = append(open, notice.Condition{Name: string(mode), Place: roles.Installation, Line: fmt.Sprintf("%s money: %s is the next day to close, and %d days are not closed", mode, last.Day+1, n)})
		}
	}
	return a.notices.Report(ctx, notice.DaysOpen, "", open)
}

func grouped(amount money.Pesewas) string { return money.Grouped(amount.String()) }

// reportBook reports the findings of a check of a book.
func (a *App) reportBook(ctx context.Context, name string, problems []string) error {
	var wrong []notice.Condition
	if len(problems) > 0 {
		wrong = []notice.Condition{{Name: name, Place: roles.Installation, Line: fmt.Sprintf("%s: %d problems, the first: %s", name, len(problems), strings.Join(problems[:1], ""))}}
	}
	return a.notices.Report(ctx, notice.BooksWrong, name, wrong)
}
