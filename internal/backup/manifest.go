package backup

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
)

// manifestFormat is raised when a manifest of today could not be read by a program of yesterday.
const manifestFormat = 1

// Manifest describes a dump, in JSON. Its details are encrypted if the dump is.
type Manifest struct {
	Format    int       `json:"format"`
	ID        string    `json:"id"`
	MadeAt    time.Time `json:"made_at"` // not later than the moment that it holds
	Took      float64   `json:"took_seconds"`
	Makola    string    `json:"makola"` // the version of the program that made it
	Engine    string    `json:"engine"` // as db.Engine names it
	Version   string    `json:"engine_version"`
	PgDump    int       `json:"pg_dump,omitempty"`   // the major version of pg_dump
	Namespace string    `json:"namespace,omitempty"` // PostgreSQL's schema that has our tables
	Schema    int       `json:"schema"`              // the number of the newest migration
	File      string    `json:"file"`                // the dump's name
	Bytes     int64     `json:"bytes"`               // of the dump as it lies there
	SHA256    string    `json:"sha256"`              // of the same bytes, in hexadecimal
	Encrypted bool      `json:"encrypted"`           // with age
	Contents  *Contents `json:"contents,omitempty"`  // of a dump that is not encrypted
	Sealed    []byte    `json:"sealed,omitempty"`    // the same of one that is: JSON, encrypted for the same keys
}

// Contents are the counts of a database.
type Contents struct {
	Rows     map[string]int64 `json:"rows"` // of each table
	Balances []Balance        `json:"balances"`
}

// Balance is one line of the ledger's trial balance, in pesewas or credits.
type Balance struct {
	Asset   string `json:"asset"`
	Account string `json:"account"`
	Wallets int64  `json:"wallets,omitempty"`
	Balance int64  `json:"balance"`
}

func parseManifest(text []byte) (m Manifest, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("it is not whole: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return m, errors.New("something follows its end")
	}
	if m.Format != manifestFormat {
		return m, fmt.Errorf("its format is %d, this program reads %d", m.Format, manifestFormat)
	}
	sum, sumErr := hex.DecodeString(m.SHA256)
	_, idErr := uuid.Parse(m.ID)
	switch {
	case sumErr != nil || len(sum) != 32:
		err = errors.New("it has no SHA-256")
	case idErr != nil || m.MadeAt.IsZero() || m.Schema < 1 || m.File == "":
		err = errors.New("it lacks an id, a time, a schema or a file")
	case m.Engine != db.SQLite.String() && m.Engine != db.Postgres.String():
		err = fmt.Errorf("it names the engine %q", m.Engine)
	case m.Encrypted && len(m.Sealed) == 0 || !m.Encrypted && m.Contents == nil:
		err = errors.New("it does not say what the dump holds")
	}
	return m, err
}

// seal encrypts the dump's contents if there are recipients.
func (m *Manifest) seal(recipients []age.Recipient) error {
	if len(recipients) == 0 {
		return nil
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, recipients...)
	if err != nil {
		return err
	}
	err = errors.Join(json.NewEncoder(w).Encode(m.Contents), w.Close())
	m.Contents, m.Sealed = nil, sealed.Bytes()
	return err
}

// text is the manifest as it is stored.
func (m Manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

// contents returns the dump's contents. It needs the key if they are encrypted.
func (m Manifest) contents(keys []age.Identity) (Contents, error) {
	if !m.Encrypted {
		return *m.Contents, nil
	}
	var c Contents
	from, err := decrypt(bytes.NewReader(m.Sealed), keys)
	if err != nil {
		return c, err
	}
	if err := json.NewDecoder(from).Decode(&c); err != nil {
		return c, damaged("its manifest cannot be decrypted: %v", err)
	}
	return c, nil
}

// count counts the contents of a database.
func count(tx *db.Tx) (Contents, error) {
	tables, err := tx.Tables()
	if err != nil {
		return Contents{}, err
	}
	if !slices.Contains(tables, "restores") {
		return Contents{}, errOlder
	}
	c := Contents{Balances: []Balance{}}
	if c.Rows, err = tx.Count(tables); err != nil {
		return c, err
	}
	accounts, err := ledger.TrialBalanceIn(tx)
	for _, a := range accounts {
		c.Balances = append(c.Balances, Balance{Asset: string(a.Asset), Account: string(a.ID), Wallets: a.Wallets, Balance: a.Balance})
	}
	return c, err
}

// differences lists where a restored database differs from its backup's manifest. The restored database has one row
// more: the mark of the restore.
func (c Contents) differences(restored Contents) []string {
	var found []string
	rows := maps.Clone(restored.Rows)
	rows["restores"]--
	for _, table := range slices.Sorted(maps.Keys(c.Rows)) {
		if n, there := rows[table]; !there || n != c.Rows[table] {
			found = append(found, fmt.Sprintf("table %s: the manifest says %d rows, the database has %d", table, c.Rows[table], n))
		}
		delete(rows, table)
	}
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		found = append(found, fmt.Sprintf("table %s is not in the manifest", table))
	}
	if !slices.Equal(c.Balances, restored.Balances) {
		found = append(found, "the balances of the ledger are not those of the manifest")
	}
	return found
}
