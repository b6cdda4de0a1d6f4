package identity

import (
	"encoding/base64"
	"errors"
	"fmt"
)

// sealLabel is the label under which the key for sealing factors is derived from the master key.
const sealLabel = "identity factors"

var errNoMaster = errors.New("identity: factors need the master key")

// sealKey seals the key of a person's factor. It can be opened only for the same person.
func (i *Identity) sealKey(person string, key []byte) (string, error) {
	if i.sealer == nil {
		return "", errNoMaster
	}
	return base64.StdEncoding.EncodeToString(i.sealer.Seal(key, []byte(person))), nil
}

func (i *Identity) unseal(person, sealed string) ([]byte, error) {
	if i.sealer == nil {
		return nil, errNoMaster
	}
	text, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, fmt.Errorf("identity: the factor of %s cannot be read: %w", person, err)
	}
	key, err := i.sealer.Open(text, []byte(person))
	if err != nil {
		return nil, fmt.Errorf("identity: the factor of %s cannot be opened: %w", person, err)
	}
	return key, nil
}
