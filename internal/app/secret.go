package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

// secretFile is the development key's place in the data folder.
const secretFile = "development.key"

// DevelopmentKey is the file of the key that a development server on SQLite makes for itself in its data folder.
func DevelopmentKey(folder string) string { return filepath.Join(folder, secretFile) }

// DevelopmentSecret is the master key of a development server: a file in the data folder, or, for
// development nodes that share a PostgreSQL, one that follows from the database's name. Production
// never comes here. With create the file is made where there is none: only the server does that.
func DevelopmentSecret(s config.Storage, create bool) (config.Secret, error) {
	if s.Database == "" {
		return config.SecretFile(DevelopmentKey(s.Data), create)
	}
	name := s.Database
	if u, err := url.Parse(s.Database); err == nil {
		name = u.Path
	}
	key := sha256.Sum256([]byte("makola development key of " + name))
	return config.NewSecret(key[:])
}

// findSecret gives a development server its master key. A new one is made for a new database alone: beside one that was
// restored without its own it would only look like that.
func (a *App) findSecret(ctx context.Context) error {
	if !a.cfg.Secret.Empty() {
		return nil
	}
	tied, err := a.installation.Tied(ctx)
	if err != nil {
		return err
	}
	a.cfg.Secret, err = DevelopmentSecret(a.cfg.Storage, !tied)
	if err != nil {
		return problem.Wrap(err, problem.Invalid, "master_key", fmt.Sprintf("The master key of this database cannot be used: %v; put the file back, or set %s or %s",
			err, config.EnvMasterKey, config.EnvMasterKeyFile))
	}
	return nil
}
