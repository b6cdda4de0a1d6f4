package route

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// CatalogueKind is a kind of catalogue entry.
type CatalogueKind string

// The kinds.
const (
	NetworkEntry  CatalogueKind = "network"
	ServiceEntry  CatalogueKind = "service"
	BankEntry     CatalogueKind = "bank"
	BankCodeEntry CatalogueKind = "bank_code" // a provider's own code of a bank
	PrefixEntry   CatalogueKind = "prefix"    // the network of a range of numbers
)

// CatalogueChange is a change of one entry.
type CatalogueChange struct {
	Kind     CatalogueKind
	Key      string // a network, a service, a bank's sort code or the prefix of local numbers
	Provider string // of a BankCodeEntry
	Value    string // the code of a BankCodeEntry or the network of a PrefixEntry; empty: none
	Edit     Edit   // of the other kinds
}

// entrySQL reads the current value of an entry as one text.
var entrySQL = map[CatalogueKind]string{
	NetworkEntry:  `SELECT id || ', ' || name || ', ' || status FROM airtime_networks WHERE network = $1`,
	ServiceEntry:  `SELECT id || ', ' || name || ', ' || status FROM data_services WHERE service = $1`,
	BankEntry:     `SELECT id || ', ' || name || ', ' || status FROM banks WHERE code = $1`,
	BankCodeEntry: `SELECT code FROM bank_codes WHERE bank = $1 AND provider = $2`,
	PrefixEntry:   `SELECT network FROM number_prefixes WHERE prefix = $1`,
}

// EntryNow returns the current value of the entry that c changes, from the database and not from the cache. It is
// empty if there is no entry.
func (t *Table) EntryNow(ctx context.Context, c CatalogueChange) (string, error) {
	return db.Get(ctx, t.db, func(tx *db.Tx) (string, error) { return t.EntryIn(tx, c, "") })
}

// EntryIn is EntryNow in a transaction. If lock is " FOR UPDATE", the entry stays locked until the transaction ends.
func (t *Table) EntryIn(tx *db.Tx, c CatalogueChange, lock string) (text string, err error) {
	sql, known := entrySQL[c.Kind]
	if !known {
		return "", problem.Field("kind", "is not one of the catalogues")
	}
	args := []any{c.Key}
	if c.Kind == BankCodeEntry {
		args = append(args, c.Provider)
	}
	_, err = tx.One(sql+lock, args, &text)
	return text, err
}

// ChangeEntry applies a change to an entry of the catalogues.
func (t *Table) ChangeEntry(tx *db.Tx, c CatalogueChange) error {
	switch c.Kind {
	case NetworkEntry:
		return t.EditNetwork(tx, msisdn.Network(c.Key), c.Edit)
	case ServiceEntry:
		return t.EditService(tx, c.Key, c.Edit)
	case BankEntry:
		return t.EditBank(tx, c.Key, c.Edit)
	case BankCodeEntry:
		return t.SetBankCode(tx, c.Key, c.Provider, c.Value)
	case PrefixEntry:
		return t.SetPrefix(tx, c.Key, msisdn.Network(c.Value))
	}
	return problem.Field("kind", "is not one of the catalogues")
}

// Edit is a change of a catalogue entry. Empty fields stay as they are.
type Edit struct {
	ID     string // the id that clients send after the change
	Name   string
	Status string // Active or Inactive
}

func (e Edit) check() error {
	var f problem.Fields
	if len(e.ID) > 36 || strings.ContainsAny(e.ID, "/?#% \x00") {
		f.Add("id", "must have at most 36 characters and none of / ? # % and space")
	}
	if len(e.Name) > 100 {
		f.Add("name", "must have at most 100 characters")
	}
	if e.Status != "" && e.Status != Active && e.Status != Inactive {
		f.Add("status", "must be active or inactive")
	}
	return f.Err()
}

const (
	sqlEditNetwork = `UPDATE airtime_networks SET id = CASE WHEN $1 = '' THEN id ELSE $1 END,
		name = CASE WHEN $2 = '' THEN name ELSE $2 END, status = CASE WHEN $3 = '' THEN status ELSE $3 END WHERE network = $4`
	sqlEditService = `UPDATE data_services SET id = CASE WHEN $1 = '' THEN id ELSE $1 END,
		name = CASE WHEN $2 = '' THEN name ELSE $2 END, status = CASE WHEN $3 = '' THEN status ELSE $3 END WHERE service = $4`
	sqlEditBank = `UPDATE banks SET id = CASE WHEN $1 = '' THEN id ELSE $1 END,
		name = CASE WHEN $2 = '' THEN name ELSE $2 END, status = CASE WHEN $3 = '' THEN status ELSE $3 END WHERE code = $4`
)

// EditNetwork changes the catalogue entry of a network.
func (t *Table) EditNetwork(tx *db.Tx, n msisdn.Network, e Edit) error {
	return t.edit(tx, sqlEditNetwork, string(n), e)
}

// EditService changes the catalogue entry of a data service, identified by its key.
func (t *Table) EditService(tx *db.Tx, key string, e Edit) error {
	return t.edit(tx, sqlEditService, key, e)
}

// EditBank changes the catalogue entry of a bank, identified by its sort code.
func (t *Table) EditBank(tx *db.Tx, code string, e Edit) error {
	return t.edit(tx, sqlEditBank, code, e)
}

func (t *Table) edit(tx *db.Tx, sql, key string, e Edit) error {
	if err := e.check(); err != nil {
		return err
	}
	if id, err := uuid.Parse(e.ID); err == nil && len(e.ID) == len(id.String()) {
		e.ID = id.String() // in lower case, because clients' ids are converted to lower case
	}
	t.forget(tx)
	n, err := tx.Exec(sql, e.ID, e.Name, e.Status, key)
	if err == nil && n == 0 {
		return noEntry(key)
	}
	return err
}
