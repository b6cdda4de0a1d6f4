package app

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sealed"
	"github.com/makola/makola/internal/webhook"
)

// Sealed lists everything that is sealed under the master keys of a database.
type Sealed struct {
	Ring     config.Secret
	Webhooks *webhook.Webhooks
	People   *identity.Identity
	Changes  *changes.Changes
	Audit    *audit.Log
	Notices  sealed.Table // texts with a link that are not delivered yet
}

// KeyUse is the name of a master key with the number of rows sealed under it.
type KeyUse struct {
	Name                              string
	Active, InRing, Reference         bool
	Webhooks, Factors, RequestSecrets int64
	AuditKeys                         int64 // key of the audit chain (at most one row)
	Notices                           int64 // texts with a link that are not delivered yet
}

// Total returns the number of all rows sealed under the key.
func (k KeyUse) Total() int64 {
	return k.Webhooks + k.Factors + k.RequestSecrets + k.AuditKeys + k.Notices
}

// Keys counts the rows that are sealed under each key. It lists the keys of the ring in order, then the separate
// reference key, then keys that the ring lacks.
func (s Sealed) Keys(ctx context.Context) ([]KeyUse, error) {
	webhooks, err := s.Webhooks.Sealed().Under(ctx)
	if err != nil {
		return nil, err
	}
	factors, err := s.People.Sealed().Under(ctx)
	if err != nil {
		return nil, err
	}
	secrets, err := s.Changes.Sealed().Under(ctx)
	if err != nil {
		return nil, err
	}
	notices, err := s.Notices.Under(ctx)
	if err != nil {
		return nil, err
	}
	chain, err := s.Audit.SealedUnder(ctx)
	if err != nil {
		return nil, err
	}
	ring := s.Ring.Names()
	names := slices.Clone(ring)
	used := maps.Clone(webhooks)
	maps.Copy(used, factors)
	maps.Copy(used, secrets)
	maps.Copy(used, chain)
	maps.Copy(used, notices)
	used[s.Ring.Reference()] = 0
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	keys := make([]KeyUse, len(names))
	for i, name := range names {
		keys[i] = KeyUse{Name: name, Active: i == 0, InRing: i < len(ring), Reference: name == s.Ring.Reference(),
			Webhooks: webhooks[name], Factors: factors[name], RequestSecrets: secrets[name], AuditKeys: chain[name], Notices: notices[name]}
	}
	return keys, nil
}

// Check refuses a key ring without a key that sealed a stored value.
func (s Sealed) Check(ctx context.Context) error {
	keys, err := s.Keys(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if !k.InRing && k.Total() > 0 {
			return problem.New(problem.Invalid, "master_key_missing", fmt.Sprintf(
				"The ring of master keys lacks key %s. It sealed %d webhook secrets, %d second factors, %d secrets of change requests, %d keys of the audit chain and %d texts of notices. Put it back after the other keys in %s or %s, and remove it when makola keys status counts 0 for it",
				k.Name, k.Webhooks, k.Factors, k.RequestSecrets, k.AuditKeys, k.Notices, config.EnvMasterKeyFile, config.EnvMasterKey))
		}
	}
	return nil
}

// Reseal seals everything under the active key, in small transactions. After each transaction it reports the table
// and the number of changed rows.
func (s Sealed) Reseal(ctx context.Context, moved func(what string, n int64)) error {
	of := func(what string) func(int64) { return func(n int64) { moved(what, n) } }
	if err := s.Webhooks.Sealed().Reseal(ctx, of("webhook secrets")); err != nil {
		return err
	}
	if err := s.People.Sealed().Reseal(ctx, of("second factors")); err != nil {
		return err
	}
	if err := s.Changes.Sealed().Reseal(ctx, of("secrets of acts")); err != nil {
		return err
	}
	if err := s.Notices.Reseal(ctx, of("texts of notices")); err != nil {
		return err
	}
	return s.Audit.Reseal(ctx, of("keys of the audit chain"))
}
