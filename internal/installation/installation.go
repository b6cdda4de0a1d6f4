// Package installation keeps the one row that makes a database an installation: the fingerprint of the master key
// that made it, whether a server ever started on it in production, and its mark while it moves to another database.
// No server starts on a database of another master key, or of an unfinished move.
//
// Files: installation.go (the master key and the mode), mark.go (a move).
package installation

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// Store reads and writes the row of the installation. It is safe for concurrent use.
type Store struct {
	db    *db.DB
	clock *clock.Clock
}

// New makes a Store.
func New(d *db.DB, c *clock.Clock) *Store { return &Store{db: d, clock: c} }

// ErrWrongSecret reports that the database was made with another master key.
var ErrWrongSecret = errors.New("the master key is not the one this database was made with")

const claimInstallation = `INSERT INTO installation (id, fingerprint, created_at) VALUES (1, $1, $2)
	ON CONFLICT (id) DO NOTHING`

const selectFingerprint = `SELECT fingerprint FROM installation WHERE id = 1`

// Check stores the master key's fingerprint on the first start. On a later start with another key it returns ErrWrongSecret. Such a
// node would make other provider references for the same requests, and could pay a repeated request twice.
func (s *Store) Check(ctx context.Context, secret config.Secret) error {
	ours := fingerprint(secret)
	stored, err := s.storedFingerprint(ctx)
	if err != nil {
		return err
	}
	if stored == "" {
		err := s.db.Write(ctx, func(tx *db.Tx) error {
			if _, err := tx.Exec(claimInstallation, ours, s.clock.Now()); err != nil {
				return err
			}
			_, err := tx.One(selectFingerprint, nil, &stored)
			return err
		})
		// If two servers start for the first time at once, one succeeds. Reading the row resolves a lost response.
		if errors.Is(err, db.ErrAmbiguous) {
			stored, err = s.storedFingerprint(ctx)
		}
		if err != nil {
			return err
		}
	}
	return same(stored, ours)
}

// Tied reports whether the database has a master key, the one of the first server that started on it.
func (s *Store) Tied(ctx context.Context) (bool, error) {
	stored, err := s.storedFingerprint(ctx)
	return stored != "", err
}

// CheckSecret is Check for a program that starts no server. It stores nothing, and accepts any key for a database on
// which no server has started.
func (s *Store) CheckSecret(ctx context.Context, secret config.Secret) error {
	stored, err := s.storedFingerprint(ctx)
	if err != nil || stored == "" {
		return err
	}
	return same(stored, fingerprint(secret))
}

const (
	selectProduction = `SELECT production FROM installation WHERE id = 1`
	markProduction   = `UPDATE installation SET production = 1 WHERE id = 1`
)

// Production reports whether a server in production mode was ever started on the database.
func (s *Store) Production(ctx context.Context) (production bool, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		n := 0
		_, err := tx.One(selectProduction, nil, &n)
		production = n == 1
		return err
	})
	return production, err
}

// MarkProduction stores that a server in production mode has started on the database. Commands read it. Check must
// have run before.
func (s *Store) MarkProduction(ctx context.Context) error {
	if marked, err := s.Production(ctx); err != nil || marked {
		return err
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(markProduction, 1)
		return nil
	})
}

func fingerprint(secret config.Secret) string {
	mac := hmac.New(sha256.New, secret.Derive("installation"))
	mac.Write([]byte("fingerprint"))
	return hex.EncodeToString(mac.Sum(nil))
}

// storedFingerprint returns the fingerprint of the master key with which the database was created. It is empty before
// the first start.
func (s *Store) storedFingerprint(ctx context.Context) (stored string, err error) {
	_, err = s.db.ReadOne(ctx, selectFingerprint, nil, &stored)
	return stored, err
}

func same(stored, ours string) error {
	if err := refuseMarked(stored); err != nil {
		return err
	}
	if !hmac.Equal([]byte(stored), []byte(ours)) {
		return ErrWrongSecret
	}
	return nil
}
