package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32
	// Overlap is how long the former secret still signs after a rotation.
	Overlap = 24 * time.Hour
)

// Secret is the key with which a tenant verifies our signatures.
type Secret struct {
	Current     string    // "whsec_" and base64
	Former      string    // the previous secret while it still signs, else empty
	FormerUntil time.Time // when the former secret stops signing
	MadeAt      time.Time
}

const (
	sqlSecret       = `SELECT secret, former, former_until, made_at FROM webhook_secrets WHERE tenant = $1`
	sqlSecretLocked = sqlSecret + ` FOR UPDATE`
	sqlEnsureSecret = `INSERT INTO webhook_secrets (tenant, secret, former, former_until, made_at)
		VALUES ($1, $2, NULL, 0, $3) ON CONFLICT (tenant) DO NOTHING`
	sqlRotateSecret = `UPDATE webhook_secrets SET secret = $2, former = secret, former_until = $3, made_at = $4 WHERE tenant = $1`
)

// Secret returns the tenant's secrets. It creates one for a tenant that has none.
func (w *Webhooks) Secret(ctx context.Context, tenant string) (s Secret, err error) {
	var found bool
	err = w.db.Read(ctx, func(tx *db.Tx) error {
		s, found, err = w.readSecret(tx, sqlSecret, tenant)
		return err
	})
	if err != nil || found {
		return s, err
	}
	err = w.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := w.EnsureSecret(tx, tenant); err != nil {
			return err
		}
		s, _, err = w.readSecret(tx, sqlSecret, tenant)
		return err
	})
	return s, err
}

// EnsureSecret returns the tenant's current secret. It creates one if there is none.
func (w *Webhooks) EnsureSecret(tx *db.Tx, tenant string) (string, error) {
	sealed, err := w.seal(tenant, newSecret())
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(sqlEnsureSecret, tenant, sealed, w.clock.Now()); err != nil {
		return "", err
	}
	s, _, err := w.readSecret(tx, sqlSecret, tenant)
	return s.Current, err
}

// Rotate is RotateSecret in a transaction of its own.
func (w *Webhooks) Rotate(ctx context.Context, tenant string) (secret string, err error) {
	err = w.db.Write(ctx, func(tx *db.Tx) (err error) {
		secret, err = w.RotateSecret(tx, tenant)
		return err
	})
	return secret, err
}

// RotateSecret creates and returns a new secret. The previous secret also signs for a day. An older one is deleted at
// once.
func (w *Webhooks) RotateSecret(tx *db.Tx, tenant string) (string, error) {
	if _, err := w.EnsureSecret(tx, tenant); err != nil {
		return "", err
	}
	if _, _, err := w.readSecret(tx, sqlSecretLocked, tenant); err != nil {
		return "", err
	}
	now := w.clock.Now()
	fresh := newSecret()
	sealed, err := w.seal(tenant, fresh)
	if err != nil {
		return "", err
	}
	tx.Defer(sqlRotateSecret, 1, tenant, sealed, now.Add(Overlap), now)
	tx.AfterCommit(func() { w.keys.Forget(tenant) })
	return encodeSecret(fresh), nil
}

func (w *Webhooks) readSecret(tx *db.Tx, sql, tenant string) (s Secret, found bool, err error) {
	var secret, former []byte
	found, err = tx.One(sql, []any{tenant}, &secret, &former, &s.FormerUntil, &s.MadeAt)
	if err != nil || !found {
		return Secret{}, false, err
	}
	key, err := w.open(tenant, secret)
	if err != nil {
		return Secret{}, false, err
	}
	s.Current = encodeSecret(key)
	if former == nil || !w.clock.Now().Before(s.FormerUntil) {
		s.FormerUntil = time.Time{}
		return s, true, nil
	}
	if key, err = w.open(tenant, former); err != nil {
		return Secret{}, false, err
	}
	s.Former = encodeSecret(key)
	return s, true, nil
}

// loadKeys returns the keys that sign a tenant's events now.
func (w *Webhooks) loadKeys(ctx context.Context, tenant string) ([][]byte, error) {
	s, err := w.Secret(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	for _, text := range []string{s.Current, s.Former} {
		if text == "" {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(text[len(secretPrefix):])
		if err != nil {
			return nil, fmt.Errorf("webhook: a secret of %s cannot be read: %w", tenant, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func newSecret() []byte {
	key := make([]byte, secretBytes)
	rand.Read(key) // never fails
	return key
}

func encodeSecret(key []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(key) }

// sealLabel names the use of the master key under which secrets are stored.
const sealLabel = "webhook secrets"

var (
	errNoMaster = errors.New("webhook: the secrets of tenants cannot be read without the master key")
	errSealed   = errors.New("webhook: opening a secret: wrong master key; use the one that sealed it")
)

// seal encrypts a secret for the table. The result can be decrypted only for the same tenant.
func (w *Webhooks) seal(tenant string, key []byte) ([]byte, error) {
	if w.sealer == nil {
		return nil, errNoMaster
	}
	return w.sealer.Seal(key, []byte(tenant)), nil
}

func (w *Webhooks) open(tenant string, sealed []byte) ([]byte, error) {
	if w.sealer == nil {
		return nil, errNoMaster
	}
	key, err := w.sealer.Open(sealed, []byte(tenant))
	if err != nil {
		return nil, fmt.Errorf("%w (tenant %s): %w", errSealed, tenant, err)
	}
	return key, nil
}

// sign returns the webhook-signature header of a message, with one signature for each key.
func sign(keys [][]byte, id string, at time.Time, body []byte) string {
	out := make([]byte, 0, 96)
	var sum [sha256.Size]byte
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id))
		mac.Write([]byte{'.'})
		mac.Write(strconv.AppendInt(nil, at.Unix(), 10))
		mac.Write([]byte{'.'})
		mac.Write(body)
		if i > 0 {
			out = append(out, ' ')
		}
		out = append(out, "v1,"...)
		out = base64.StdEncoding.AppendEncode(out, mac.Sum(sum[:0]))
	}
	return string(out)
}
