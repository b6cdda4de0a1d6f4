package changes

import (
	"context"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

// NewSealer makes the cipher under which the secrets wait that acts made for their makers.
func NewSealer(master config.Secret) *config.Sealer {
	return master.Sealer("secrets of acts")
}

// Reveal gives what an act that was done made, such as the text of a key, to the person for whom that part was kept. It is shown
// once: for a minute more to the same session, which may have lost the page.
func (a *Changes) Reveal(ctx context.Context, by By, part Part, id string) (string, error) {
	act, err := a.Get(ctx, by.Place, id)
	if err != nil {
		return "", err
	}
	k, known := a.kinds[act.Kind]
	if !known || a.Seal == nil {
		return "", ErrShown()
	}
	sealed, err := a.Store.Reveal(ctx, by, k.Rule, part, act)
	if err != nil {
		return "", err
	}
	text, err := a.Seal.Open(sealed, []byte(part.Of(act)))
	if err != nil {
		return "", problem.Wrap(err, problem.Unavailable, "secret_unreadable", "It was sealed with another master key, and cannot be shown. Make another one.")
	}
	return string(text), nil
}

// resealAtOnce is the most secrets that one transaction seals anew.
const resealAtOnce = 100

// SealedUnder counts what is sealed under each master key, by its name.
func (a *Changes) SealedUnder(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	for after := ""; ; {
		list, err := a.Store.SealedAfter(ctx, after, resealAtOnce)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			counts[a.Seal.Under(s.Secret)]++
			after = s.Act
		}
		if len(list) < resealAtOnce {
			return counts, nil
		}
	}
}

// Reseal seals what waits for makers under the active master key, in small transactions, and says after each how many it
// moved.
func (a *Changes) Reseal(ctx context.Context, moved func(int64)) error {
	for after := ""; ; {
		list, err := a.Store.SealedAfter(ctx, after, resealAtOnce)
		if err != nil {
			return err
		}
		n, err := a.Store.Reseal(ctx, list, func(s Sealed) ([]byte, bool, error) { return a.Seal.Reseal(s.Secret, []byte(s.Act)) })
		if err != nil {
			return err
		}
		moved(n)
		if len(list) < resealAtOnce {
			return nil
		}
		after = list[len(list)-1].Act
	}
}
