package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
)

// Upload describes the origin and purpose of a file.
type Upload struct {
	Tenant    string
	Name      string             // of the batch
	Requester string             // id of the person, or of the access key
	Key       string             // the access key that sends it; empty: a person does
	Again     string             // reason to pay rows that an earlier batch paid; empty: none
	Once      idempotency.Caller // caller with the Idempotency-Key of a program's request
}

// ReadFile creates a draft from a file: CSV or XLSX with the columns of Form. An unreadable file leaves no rows. The same file
// under the same name returns its existing draft, with replayed set. If the batch was sent already, the result is a Duplicate
// with that Batch as Data, unless Again has a reason to pay it again. A draft of an API key is a Duplicate for people and for
// other keys, because they cannot send it. A draft of a person is a Duplicate for keys.
func (s *Batches) ReadFile(ctx context.Context, u Upload, from io.Reader, o sheet.Options) (b Batch, replayed bool, err error) {
	leave, err := s.uploads.enter(u.Tenant)
	if err != nil {
		return Batch{}, false, err
	}
	defer leave()
	file, err := sheet.Open(from)
	if err != nil {
		return Batch{}, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return s.read(ctx, u, file, o, omission{})
}

// read creates a draft from an open file.
func (s *Batches) read(ctx context.Context, u Upload, file *sheet.File, o sheet.Options, omit omission) (Batch, bool, error) {
	table, err := file.Table(Form(), o)
	if err != nil {
		return Batch{}, false, err
	}
	known, err := s.banksFor(ctx, u.Tenant)
	if err != nil {
		return Batch{}, false, err
	}
	rows := &fileRows{table: table, known: known, omit: omit}
	return s.draft(ctx, u, rows, rows.notes)
}

// check refuses an upload that cannot become a draft.
func (s *Batches) check(ctx context.Context, u *Upload) (tenant.Tenant, error) {
	t, err := s.tenants.Get(ctx, u.Tenant)
	if err != nil {
		return t, err
	}
	if t.Blocked {
		return t, tenant.Blocked()
	}
	var bad problem.Fields
	if u.Name = usertext.Cut(u.Name, maxName); u.Name == "" {
		bad.Add("name", "is required")
	} else if !usertext.Storable(u.Name) || !usertext.Honest(u.Name) {
		bad.Add("name", "must be plain text")
	}
	if u.Again = usertext.Cut(u.Again, maxReason); !usertext.Storable(u.Again) {
		bad.Add("again", "must be plain text")
	}
	return t, bad.Err()
}

// draft stores the rows of a source, and then the batch. Until the batch is stored, its rows belong to no batch. If
// draft fails it deletes them. If the process dies, sweep deletes them.
func (s *Batches) draft(ctx context.Context, u Upload, from source, notes func() []string) (b Batch, replayed bool, err error) {
	t, err := s.check(ctx, &u)
	if err != nil {
		return Batch{}, false, err
	}
	if err := s.db.Read(ctx, func(tx *db.Tx) error { return roomForDraft(tx, t.ID) }); err != nil {
		return Batch{}, false, err
	}
	made := Batch{ID: book.NewID(s.clock.Now()), Tenant: t.ID, Mode: string(t.Mode), Name: u.Name, Requester: u.Requester, Key: u.Key, Again: u.Again, Status: Draft, tally: new(newCounts())}
	sum, err := s.storeRows(ctx, t, &made, from)
	kept := false
	if err == nil {
		made.Notes = notes()
		b, replayed, err = s.insert(ctx, made, sum, u.Once)
		kept = err == nil && !replayed || errors.Is(err, db.ErrAmbiguous) // if the outcome is unknown and the draft exists, its rows must stay
	}
	if !kept {
		err = errors.Join(err, s.erase(context.WithoutCancel(ctx), t.ID, made.ID, made.Lines))
	}
	return b, replayed, err
}

// storeRows checks and stores the rows of a source in sets, and counts them in the batch. It returns the sum of their
// canonical texts.
func (s *Batches) storeRows(ctx context.Context, t tenant.Tenant, b *Batch, from source) ([]byte, error) {
	sum := sha256.New()
	for {
		set := make([]storedRow, 0, blockRows)
		var err error
		for len(set) < blockRows && err == nil {
			var row Row
			if row, err = from.next(); err == nil {
				err = s.checkRow(ctx, t, &row)
			}
			if err == nil {
				writeCanonical(sum, row)
				b.tally.add(row, 1)
				set = append(set, storedRow{batch: b.ID, tenant: t.ID, Row: row})
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		b.Lines += len(set)
		if len(set) > 0 {
			if err := s.db.Write(db.Bulk(ctx, t.ID), func(tx *db.Tx) error {
				db.Insert(tx, "batch_rows", insertColumns, set)
				return nil
			}); err != nil {
				return nil, err
			}
		}
		if err != nil {
			break
		}
	}
	if b.Lines == 0 {
		return nil, problem.Field("rows", "must not be empty")
	}
	return sum.Sum(nil), nil
}

// Banks lists the banks that payouts of an account reach, by name.
func (s *Batches) Banks(ctx context.Context, tenantID string) ([]route.Bank, error) {
	t, err := s.tenants.Get(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	return s.routes.Banks(ctx, t.ID, string(t.Mode))
}

func (s *Batches) banksFor(ctx context.Context, tenantID string) (banks, error) {
	list, err := s.Banks(ctx, tenantID)
	return banksOf(list), err
}

// rowFields map the fields of payouts to the fields of rows.
var rowFields = map[string]string{"account_number": fieldNumber, "bank_id": fieldNetwork, "channel": fieldNetwork, "amount": fieldAmount, "client_reference": fieldReference}

// checkRow applies the rules of a payout to a row, and returns its fee.
func (s *Batches) checkRow(ctx context.Context, t tenant.Tenant, r *Row) error {
	if r.State == RowBad {
		return nil
	}
	err := s.payments.CheckRow(ctx, t, r.payout(sampleCode))
	if e := problem.From(err); e != nil && len(e.Fields) > 0 {
		for _, field := range e.FieldNames() {
			for _, why := range e.Fields[field] {
				r.bad(cmp.Or(rowFields[field], field), why)
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	r.Charges, _, err = s.tenants.Fee(ctx, t.ID, tenant.Payout, r.Channel, r.Amount, s.clock.Now())
	return err
}

// sampleCode is used in place of the code of a draft, which depends on all its rows.
const sampleCode = "0000000000000"

// payout returns the payout of a row.
func (r Row) payout(code string) payments.Payout {
	p := payments.Payout{Amount: r.Amount, Reference: ReferenceOf(code, r), Name: cmp.Or(r.Registered, r.Name)}
	if r.Bank != "" {
		p.BankID, p.AccountNumber = r.Bank, r.Account
	} else {
		p.MSISDN, p.Network = msisdn.MSISDN(r.Account), msisdn.Network(r.Channel)
	}
	return p
}

// roomForDraft refuses a draft that exceeds the limit of an account.
func roomForDraft(tx *db.Tx, tenant string) error {
	drafts := 0
	if _, err := tx.One(countDrafts, []any{tenant}, &drafts); err != nil {
		return err
	}
	if drafts >= maxDrafts {
		return problem.New(problem.Invalid, "too_many_drafts", fmt.Sprintf("The account has %d drafts: send or discard one first", drafts))
	}
	return nil
}

// insert stores a draft under the first free code. It locks the tenant's row, so that only one of two concurrent
// uploads of a file makes a draft.
func (s *Batches) insert(ctx context.Context, b Batch, sum []byte, once idempotency.Caller) (is Batch, replayed bool, err error) {
	landed := func(tx *db.Tx) (there bool, err error) {
		is, err = one(tx, selectBatch, b.Tenant, b.ID)
		if problem.Is(err, problem.NotFound) {
			return false, nil
		}
		return err == nil, err
	}
	err = s.db.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
		is, replayed = Batch{}, false
		if _, err := s.tenants.Locked(tx, b.Tenant); err != nil {
			return err
		}
		is, err = s.coded(tx, b, sum)
		if e := problem.From(err); problem.Is(err, problem.Duplicate) {
			if old := e.Data.(Batch); (old.Status == Draft || old.Status == Requested) && old.Key == b.Key {
				is, replayed = old, true
				return s.Keep(tx, once, old)
			}
		}
		if err != nil {
			return err
		}
		if err := roomForDraft(tx, b.Tenant); err != nil {
			return err
		}
		now := db.Micros(s.clock.Now())
		if _, err := tx.Exec(insertBatch, is.ID, is.Tenant, is.Mode, is.Name, is.Code, int64(is.Repetition), is.Again, is.Requester, is.Key,
			strings.Join(is.Notes, "\n"), int64(is.Lines), now, encodeCounts(is.tally)); err != nil {
			return err
		}
		if is, err = one(tx, selectBatch, is.Tenant, is.ID); err != nil {
			return err
		}
		if err := s.Keep(tx, once, is); err != nil || is.tally.Unnamed == 0 {
			return err
		}
		if is, err = lock(tx, is.Tenant, is.ID); err != nil {
			return err
		}
		is.Scope = ScopeBanks
		return s.startNames(tx, is)
	})
	return is, replayed, err
}

// coded sets the code of a batch from its rows. If another batch has that code, the result is a Duplicate with that
// Batch as Data. With a reason to pay again, it is the code of the next repetition.
func (s *Batches) coded(tx *db.Tx, b Batch, sum []byte) (Batch, error) {
	for b.Repetition = 0; ; b.Repetition++ {
		b.Code = s.codes.of(b.Mode, b.Tenant, b.Name, sum, b.Repetition)
		old, err := one(tx, selectByCode, b.Tenant, b.Code)
		switch {
		case problem.Is(err, problem.NotFound), err == nil && old.ID == b.ID:
			return b, nil
		case err != nil:
			return b, err
		case b.Again == "" || old.Status == Draft || old.Status == Requested:
			e := problem.New(problem.Duplicate, "duplicate_batch", fmt.Sprintf("These rows are batch %s (%s) of %s, which is %s", old.Name, old.Code, old.CreatedAt.UTC().Format(time.DateOnly), old.Status))
			e.Data = old
			return b, e
		}
	}
}
