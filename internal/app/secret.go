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

// secretFile is the name of the development key's file in the data folder.
const secretFile = "development.key"

// DevelopmentKey returns the path of the key that a development server on SQLite makes for itself in its data folder.
func DevelopmentKey(folder string) string { return filepath.Join(folder, secretFile) }

// DevelopmentSecret returns the master key of a development server from a file in the data folder. Development nodes
// that share a PostgreSQL database derive it from the database's name. Production never calls it. With create, which
// only the server sets, a missing file is created.
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

// findSecret returns the master key of a development server. It makes a new key only for a new database. Next to a restored
// database without its key, a new key would hide the loss.
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
