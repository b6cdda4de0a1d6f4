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

// manifestFormat increases when programs of an earlier version could not read a new manifest.
const manifestFormat = 1

// Manifest describes a dump, in JSON. Its details are encrypted if the dump is.
type Manifest struct {
	Format    int       `json:"format"`
	ID        string    `json:"id"`
	MadeAt    time.Time `json:"made_at"` // not later than the snapshot
	Took      float64   `json:"took_seconds"`
	Makola    string    `json:"makola"` // version of the program that made the dump
	Engine    string    `json:"engine"` // the result of db.Engine.String
	Version   string    `json:"engine_version"`
	PgDump    int       `json:"pg_dump,omitempty"`   // major version of pg_dump
	Namespace string    `json:"namespace,omitempty"` // the PostgreSQL schema with our tables
	Schema    int       `json:"schema"`              // number of the newest migration
	File      string    `json:"file"`                // name of the dump
	Bytes     int64     `json:"bytes"`               // size of the dump's file
	SHA256    string    `json:"sha256"`              // of the dump's file, in hexadecimal
	Encrypted bool      `json:"encrypted"`           // encrypted with age
	Contents  *Contents `json:"contents,omitempty"`  // set if the dump is not encrypted
	Sealed    []byte    `json:"sealed,omitempty"`    // Contents as JSON, encrypted for the same keys, if the dump is encrypted
}

// Contents has the counts of a database.
type Contents struct {
	Rows     map[string]int64 `json:"rows"` // number of rows by table
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
		return m, fmt.Errorf("it is incomplete: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return m, errors.New("it has data after its end")
	}
	if m.Format != manifestFormat {
		return m, fmt.Errorf("its format is %d, but this program reads format %d", m.Format, manifestFormat)
	}
	sum, sumErr := hex.DecodeString(m.SHA256)
	_, idErr := uuid.Parse(m.ID)
	switch {
	case sumErr != nil || len(sum) != 32:
		err = errors.New("it has no SHA-256")
	case idErr != nil || m.MadeAt.IsZero() || m.Schema < 1 || m.File == "":
		err = errors.New("it lacks an id, a time, a schema or a file")
	case m.Engine != db.SQLite.String() && m.Engine != db.Postgres.String():
		err = fmt.Errorf("it names an unknown engine, %q", m.Engine)
	case m.Encrypted && len(m.Sealed) == 0 || !m.Encrypted && m.Contents == nil:
		err = errors.New("it does not describe the contents of the dump")
	}
	return m, err
}

// seal encrypts the manifest's contents if there are recipients.
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

// text returns the manifest as it is stored.
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

// count returns the contents of a database.
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

// differences lists the differences between a backup's contents and a restored database. The restored database has
// one additional row, which records the restore.
func (c Contents) differences(restored Contents) []string {
	var found []string
	rows := maps.Clone(restored.Rows)
	rows["restores"]--
	for _, table := range slices.Sorted(maps.Keys(c.Rows)) {
		if n, there := rows[table]; !there || n != c.Rows[table] {
			found = append(found, fmt.Sprintf("table %s: %d rows in the manifest, %d in the database", table, c.Rows[table], n))
		}
		delete(rows, table)
	}
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		found = append(found, fmt.Sprintf("table %s is not in the manifest", table))
	}
	if !slices.Equal(c.Balances, restored.Balances) {
		found = append(found, "the balances of the ledger differ from the manifest")
	}
	return found
}
