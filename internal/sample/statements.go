package sample

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/sheet"
)

// statedAccounts are the accounts at simulated providers whose statements are imported.
var statedAccounts = [][2]string{
	{"mtn", "collection"}, {"mtn", "disbursement"}, {"hubtel", "collection"}, {"hubtel", "disbursement"},
}

// importedBefore is how long before the end of the history the statements are imported, so that the server matches their lines.
const importedBefore = 20 * time.Minute

// misstated plans the faults of statements. Each affects a payment of the third-last day.
func (m *maker) misstated(days int) (steps []step) {
	at := m.made.From.AddDate(0, 0, days-3).Add(9 * time.Hour)
	for i, fault := range []string{"statement_twice", "statement_omit", "statement_fee", "statement_foreign", "statement_off", "statement_charge", "statement_reversed"} {
		operation := "collect"
		if i%2 == 1 {
			operation = "disburse"
		}
		steps = append(steps, step{at.Add(time.Duration(i) * 45 * time.Minute), func(ctx context.Context) error { return m.fault(ctx, operation, fault) }})
	}
	return steps
}

// statements plans the import of the statements at the end.
func (m *maker) statements() step {
	return step{m.made.To.Add(-importedBefore), func(ctx context.Context) error {
		for _, at := range statedAccounts {
			if err := m.importStatement(ctx, at[0], at[1]); err != nil {
				return fmt.Errorf("sample: import the statement of %s, account %s: %w", at[0], at[1], err)
			}
		}
		return nil
	}}
}

// importStatement downloads the statement of an account from the simulator and imports it. An account without movements has none.
func (m *maker) importStatement(ctx context.Context, provider, account string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.app.Ready().SimURL+"/statements/"+provider+"/"+account, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the simulator answered %d", answer.StatusCode)
	}
	file, err := sheet.Open(io.LimitReader(answer.Body, sheet.MaxBytes))
	if err != nil {
		return err
	}
	defer file.Close()
	return m.operator.importStatement(ctx, "test/"+provider+"/"+account, provider+"-"+account+".csv", file)
}

// importStatement imports a file of an account.
func (o *operator) importStatement(ctx context.Context, source, name string, file *sheet.File) error {
	done, err := o.reconcile.Import(ctx, reconcile.Upload{Source: source, FileName: name, By: operatorName, ByName: operatorName, Confirmed: true, Answers: reconcile.Layout{Sign: reconcile.SignIn}}, file)
	if err != nil {
		return err
	}
	if done.Reading != nil {
		return fmt.Errorf("the import of the file needs answers: %+v", done.Reading.Questions)
	}
	return o.db.Write(ctx, o.entry("statements.import", "", done.Statement.ID, "", audit.Change{What: "lines", After: fmt.Sprint(done.Statement.Added)}))
}
