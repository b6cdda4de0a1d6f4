package acts

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"fmt"

	"github.com/makola/makola/internal/approval"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// NewSealer makes the cipher under which the secrets wait that acts made for their makers.
func NewSealer(master config.Secret) cipher.AEAD {
	block, err := aes.NewCipher(master.Derive("secrets of acts"))
	if err == nil {
		var sealer cipher.AEAD
		if sealer, err = cipher.NewGCMWithRandomNonce(block); err == nil {
			return sealer
		}
	}
	panic(fmt.Sprintf("acts: %v", err)) // a key of 32 bytes always serves
}

// keep stores a secret that an act made until its maker has seen it.
func (a *Acts) keep(tx *db.Tx, act approval.Act, secret string) {
	if a.Seal != nil {
		a.Approval.Keep(tx, act, a.Seal.Seal(nil, nil, []byte(secret), []byte(act.ID)))
	}
}

// Reveal gives the maker of an act that was done the secret that it made, such as the text of a key. It is shown once: for
// a minute more to the same session, which may have lost the page.
func (a *Acts) Reveal(ctx context.Context, by approval.By, id string) (string, error) {
	act, err := a.Get(ctx, by.Place, id)
	if err != nil {
		return "", err
	}
	k, known := kinds()[act.Kind]
	if !known || a.Seal == nil {
		return "", approval.ErrShown()
	}
	sealed, err := a.Approval.Reveal(ctx, by, k.rule, act)
	if err != nil {
		return "", err
	}
	text, err := a.Seal.Open(nil, nil, sealed, []byte(act.ID))
	if err != nil {
		return "", problem.Wrap(err, problem.Unavailable, "secret_unreadable", "It was sealed with another master key, and cannot be shown. Make another one.")
	}
	return string(text), nil
}
