package app

import (
	"crypto/sha256"
	"net/url"
	"path/filepath"

	"github.com/makola/makola/internal/config"
)

// secretFile is the development key's place in the data folder.
const secretFile = "development.key"

// DevelopmentSecret is the master key of a development server: a file in the data folder, or, for
// development nodes that share a PostgreSQL, one that follows from the database's name. Production
// never comes here. With create the file is made where there is none: only the server does that.
func DevelopmentSecret(s config.Storage, create bool) (config.Secret, error) {
	if s.Database == "" {
		return config.SecretFile(filepath.Join(s.Data, secretFile), create)
	}
	name := s.Database
	if u, err := url.Parse(s.Database); err == nil {
		name = u.Path
	}
	key := sha256.Sum256([]byte("makola development key of " + name))
	return config.NewSecret(key[:])
}
