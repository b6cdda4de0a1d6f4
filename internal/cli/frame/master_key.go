package frame

import (
	"fmt"
	"os"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

// MasterKey reads the ring of master keys, and a separate reference key, from the environment or from the files that
// it names.
func MasterKey() (config.Secret, error) {
	ring, err := keyOf(config.EnvMasterKey, config.EnvMasterKeyFile)
	if err != nil || ring.Empty() {
		return ring, err
	}
	reference, err := keyOf(config.EnvReferenceKey, config.EnvReferenceKeyFile)
	if err != nil {
		return config.Secret{}, fmt.Errorf("read the reference key (%s): %w", config.EnvReferenceKey, err)
	}
	if reference.Empty() {
		return ring, nil
	}
	if len(reference.Names()) > 1 {
		return config.Secret{}, fmt.Errorf("%s must hold one key, the first one of the installation, not %d", config.EnvReferenceKey, len(reference.Names()))
	}
	return ring.WithReference(reference), nil
}

func keyOf(variable, file string) (config.Secret, error) {
	if text := os.Getenv(variable); text != "" {
		return config.ParseSecret(text)
	}
	if path := os.Getenv(file); path != "" {
		return config.SecretFile(path, false)
	}
	return config.Secret{}, nil
}

// StoredSecret returns the master key that a server on this storage uses: the key of the environment, or the
// development key.
func StoredSecret(s config.Storage) (config.Secret, error) {
	secret, err := MasterKey()
	if err == nil && secret.Empty() {
		secret, err = app.DevelopmentSecret(s, false)
	}
	if err != nil {
		return secret, Unusable(err)
	}
	return secret, nil
}

// Unusable adds the fix to an error about the master key.
func Unusable(err error) error {
	return problem.Wrap(err, problem.Invalid, "master_key",
		fmt.Sprintf("The master key cannot be used: %v. Set %s or %s as for the server", err, config.EnvMasterKey, config.EnvMasterKeyFile))
}
