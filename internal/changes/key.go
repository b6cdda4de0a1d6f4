package changes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// The kinds of changes about API keys, and about the secret that signs webhooks.
const (
	KindCreateKey    = "key.create"
	KindRotateKey    = "key.rotate"
	KindRevokeKey    = "key.revoke"
	KindSetKey       = "key.set"
	KindRotateSecret = "webhook.rotate"
)

// Fields of keys.
var (
	keyField   = Field{Name: "key", Label: "Key", Hint: "The id of the API key.", Max: 64, Required: true}
	dailyField = Field{Name: "daily", Label: "Daily limit", Hint: "Enter an amount in cedis. Leave empty for the full balance.", Max: 20}
)

// paying are the scopes that let a key debit the wallet.
var paying = []access.Scope{access.All, access.Payout, access.Batches, access.Airtime}

// pays reports whether a key with these scopes can debit the wallet.
func pays(scopes []access.Scope) bool {
	return slices.ContainsFunc(paying, func(s access.Scope) bool { return slices.Contains(scopes, s) })
}

// ScopesOf returns the scopes that a role of a site may give to a key of an account. A developer may give all of them
// in test mode. In live mode a developer may give only scopes that debit nothing.
func ScopesOf(at roles.Site, role roles.Role, mode tenant.Mode) []access.Scope {
	switch {
	case !roles.Can(at, role, roles.ChangeKeys):
		return nil
	case role == roles.Developer && mode == tenant.Live:
		return []access.Scope{access.Read, access.Collect, access.OTP, access.Webhooks}
	}
	return access.Scopes()
}

// KeyOrder describes a new key.
type KeyOrder struct {
	Member string         // the person of the key, by e-mail address or id; empty: the key belongs to the account
	Label  string         // a free text to distinguish keys
	Scopes []access.Scope // empty: All
	Expiry time.Duration  // 0: the key does not expire
	Daily  money.Pesewas  // maximum spending in a day; 0: no limit
}

// key is the payload of a change of a key as the requester saw it. Its members and their order are hashed.
type key struct {
	Tenant  string         `json:"tenant"`
	Mode    string         `json:"mode"`
	ID      string         `json:"id,omitempty"`   // id of the existing key
	Hint    string         `json:"hint,omitempty"` // of it
	Member  string         `json:"member,omitempty"`
	Scopes  []access.Scope `json:"scopes"`
	Expiry  int64          `json:"expiry_s,omitempty"`
	Overlap int64          `json:"overlap_s,omitempty"`
	Daily   money.Pesewas  `json:"daily_pesewas"`
	Before  money.Pesewas  `json:"before_pesewas,omitempty"`
	Person  string         `json:"person,omitempty"` // id of the person whose address is in Member
	Label   string         `json:"label,omitempty"`
}

func (k key) order() access.NewKey {
	return access.NewKey{Tenant: k.Tenant, Live: k.Mode == string(tenant.Live), Member: k.Member, Person: k.Person, Label: k.Label, Scopes: k.Scopes, Expiry: time.Duration(k.Expiry) * time.Second, Daily: k.Daily}
}

func listed(scopes []access.Scope) string {
	texts := make([]string, len(scopes))
	for i, s := range scopes {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// within refuses scopes beyond those of a role.
func within(at roles.Site, role roles.Role, mode tenant.Mode, scopes []access.Scope) error {
	allowed := ScopesOf(at, role, mode)
	for _, s := range scopes {
		if !slices.Contains(allowed, s) {
			return problem.New(problem.Forbidden, "scope_beyond", fmt.Sprintf("A key with the scope %s has more rights than the role %s may give", s, role))
		}
	}
	return nil
}

// requesterWithin refuses scopes that the requester's current role may not give. It runs in the transaction that applies
// the request.
func (a *Changes) requesterWithin(tx *db.Tx, request Request, k key) error {
	if request.byMachine() {
		return nil
	}
	requester, err := a.People.Standing(tx, request.Requester, request.Place)
	if err != nil {
		return err
	}
	return within(roles.SiteOf(request.Place), requester.Role, tenant.Mode(k.Mode), k.Scopes)
}

// CreateKey requests an API key of an account. The key's text is the Secret of the applied request.
func (a *Changes) CreateKey(ctx context.Context, by By, id, tenantID string, o KeyOrder, reason string) (Request, error) {
	v := Values{FieldTenant: tenantID, "scopes": strings.ReplaceAll(listed(o.Scopes), ",", ""), "member": o.Member, "label": o.Label}
	if o.Expiry != 0 {
		v["expiry"] = o.Expiry.String()
	}
	if o.Daily != 0 {
		v["daily"] = o.Daily.String()
	}
	return a.Do(ctx, by, KindCreateKey, id, v, reason)
}

// newKey reads the values of a new key.
func (a *Changes) newKey(ctx context.Context, o Order, t tenant.Tenant) (k key, err error) {
	expiry, err := o.Values.duration("expiry")
	if err != nil {
		return k, err
	}
	k = key{Tenant: t.ID, Mode: string(t.Mode), Label: o.Values["label"], Expiry: int64(expiry / time.Second)}
	if k.Daily, err = o.Values.notNegative("daily"); err != nil {
		return k, err
	}
	for _, s := range strings.Fields(o.Values["scopes"]) {
		k.Scopes = append(k.Scopes, access.Scope(s))
	}
	if who := o.Values["member"]; who != "" {
		p, err := a.People.Member(ctx, t.ID, who)
		if err != nil {
			return k, err
		}
		k.Person, k.Member = p.ID, p.Email
	}
	m, err := a.Access.Mint(k.order()) // NewKey checks the scopes and sorts them
	k.Scopes = m.Key.Scopes
	return k, err
}

func (a *Changes) lookCreateKey(ctx context.Context, o Order) (Draft, error) {
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	k, err := a.newKey(ctx, o, t)
	if err == nil {
		err = within(roles.SiteOf(o.By.Place), o.By.role(), t.Mode, k.Scopes)
	}
	if err != nil {
		return Draft{}, err
	}
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Create an API key for %s with the scopes %s", title, listed(k.Scopes))
	if k.Member != "" {
		sentence += ", for " + k.Member
	}
	if k.Label != "" {
		sentence += ", labelled " + strconv.Quote(k.Label)
	}
	if k.Expiry > 0 {
		sentence += ", for " + (time.Duration(k.Expiry) * time.Second).String()
	}
	return Draft{Tenant: t.ID, Sentence: sentence + spends(t, k.Daily), Payload: k, Light: t.Mode == tenant.Test || !pays(k.Scopes)}, nil
}

func spends(t tenant.Tenant, daily money.Pesewas) string {
	if daily == 0 {
		return ""
	}
	return ", which spends at most " + t.Money().Text(int64(daily)) + " a day"
}

func (a *Changes) createKeyKind() Kind {
	return secretly(a, KindCreateKey, "New API key", Rule{Make: roles.ChangeKeys, Check: roles.ApproveAccess},
		func(_ context.Context, k key) (access.Minted, error) { return a.Access.Mint(k.order()) },
		func(tx *db.Tx, request Request, k key, m access.Minted) ([]audit.Change, []string, error) {
			err := a.requesterWithin(tx, request, k)
			if err == nil && k.Person != "" {
				err = a.member(tx, k)
			}
			if err != nil {
				return nil, nil, err
			}
			m.Key.Creator = request.person()
			a.Access.CreateKey(tx, m)
			return []audit.Change{{What: "key", After: m.Key.Hint}, {What: "id", After: m.Key.ID}, {What: "scopes", After: listed(k.Scopes)}}, []string{m.Text}, nil
		}).by(a.lookCreateKey, tenantField,
		Field{Name: "scopes", Label: "Scopes", Hint: "Separate scopes by spaces, such as read collect. Leave empty for all.", Max: 200},
		Field{Name: "member", Label: "Person", Hint: "Enter the e-mail address or id of the key's person. Leave empty for a key of the account.", Max: 120},
		Field{Name: "label", Label: "Label", Hint: "Enter a program or a place, not a person.", Max: 80}, Field{Name: "expiry", Label: "Works for", Hint: "Enter a time, such as 90d. Leave empty for no expiry.", Max: 20}, dailyField).showing(a.checkNewKey)
}

// member refuses a key of a person who has lost the role at the account.
func (a *Changes) member(tx *db.Tx, k key) error {
	who, err := a.People.StandingNow(tx, k.Person, k.Tenant)
	if err == nil && (who.Role == "" || !who.Person.DisabledAt.IsZero()) {
		err = errChanged("The role of " + k.Member)
	}
	return err
}

// found returns a key of an account, and its description for a sentence.
func (a *Changes) found(ctx context.Context, tenantID, keyID string) (t tenant.Tenant, k key, err error) {
	if t, err = a.Tenants.Get(ctx, tenantID); err != nil {
		return t, k, err
	}
	there, err := a.Access.Key(ctx, tenantID, keyID)
	if err != nil {
		return t, k, err
	}
	k = key{Tenant: t.ID, Mode: string(t.Mode), ID: there.ID, Hint: there.Hint, Member: there.Member, Person: there.Person, Label: there.Label, Scopes: there.Scopes, Daily: there.Daily, Before: there.Daily}
	if !there.ExpiresAt.IsZero() && there.ReplacedBy == "" {
		k.Expiry = int64(there.ExpiresAt.Sub(there.CreatedAt) / time.Second)
	}
	return t, k, nil
}

// RotateKey requests a new key in place of an existing key. The old key still works for the time overlap. The text of
// the new key is the Secret of the applied request.
func (a *Changes) RotateKey(ctx context.Context, by By, id, tenantID, keyID string, overlap time.Duration, reason string) (Request, error) {
	return a.Do(ctx, by, KindRotateKey, id, Values{FieldTenant: tenantID, "key": keyID, "overlap": overlap.String()}, reason)
}

func (a *Changes) lookRotateKey(ctx context.Context, o Order) (Draft, error) {
	t, k, err := a.found(ctx, o.Values[FieldTenant], o.Values["key"])
	if err != nil {
		return Draft{}, err
	}
	overlap, err := o.Values.duration("overlap")
	if err != nil {
		return Draft{}, err
	}
	if overlap < 0 || overlap > access.MaxOverlap {
		return Draft{}, problem.Field("overlap", "must be between 0 and 7 days")
	}
	if err := within(roles.SiteOf(o.By.Place), o.By.role(), t.Mode, k.Scopes); err != nil {
		return Draft{}, err
	}
	k.Overlap = int64(overlap / time.Second)
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Replace the API key %s of %s, which works for %s more, scopes %s", k.Hint, title, overlap, listed(k.Scopes))
	return Draft{Tenant: t.ID, Sentence: sentence, Payload: k, Light: t.Mode == tenant.Test || !pays(k.Scopes)}, nil
}

func (a *Changes) rotateKeyKind() Kind {
	return secretly(a, KindRotateKey, "Replacement of an API key", Rule{Make: roles.ChangeKeys, Check: roles.ApproveAccess},
		func(_ context.Context, k key) (access.Minted, error) { return a.Access.Mint(k.order()) },
		func(tx *db.Tx, request Request, k key, m access.Minted) ([]audit.Change, []string, error) {
			if err := a.requesterWithin(tx, request, k); err != nil {
				return nil, nil, err
			}
			m.Key.Creator = request.person()
			old, err := a.Access.Rotate(tx, k.Tenant, k.ID, m, time.Duration(k.Overlap)*time.Second)
			if err == nil && old.Daily != k.Before {
				err = errChanged("Daily spending limit")
			}
			return []audit.Change{{What: "key", Before: k.Hint, After: m.Key.Hint}, {What: "id", Before: k.ID, After: m.Key.ID}}, []string{m.Text}, err
		}).by(a.lookRotateKey, tenantField, keyField, Field{Name: "overlap", Label: "Keep the old key valid for", Hint: "Such as 24h, at most 7d.", Max: 20}).showing(a.checkKey)
}

// RevokeKey requests the end of a key.
func (a *Changes) RevokeKey(ctx context.Context, by By, id, tenantID, keyID, reason string) (Request, error) {
	return a.Do(ctx, by, KindRevokeKey, id, Values{FieldTenant: tenantID, "key": keyID}, reason)
}

func (a *Changes) lookRevokeKey(ctx context.Context, o Order) (Draft, error) {
	t, k, err := a.found(ctx, o.Values[FieldTenant], o.Values["key"])
	if err != nil {
		return Draft{}, err
	}
	title, err := a.titled(ctx, o.By.Place, t)
	return Draft{Tenant: t.ID, Sentence: fmt.Sprintf("Revoke the API key %s of %s", k.Hint, title), Payload: k}, err
}

func (a *Changes) revokeKeyKind() Kind {
	return written(a, KindRevokeKey, "Revocation of an API key", Rule{Make: roles.ChangeKeys, Check: roles.ApproveAccess, Light: true}, func(tx *db.Tx, request Request, k key) ([]audit.Change, error) {
		_, err := a.Access.RevokeKey(tx, k.Tenant, k.ID)
		return []audit.Change{{What: "key " + k.Hint, Before: "works", After: "revoked"}}, err
	}).by(a.lookRevokeKey, tenantField, keyField).showing(a.checkKey)
}

// SetKey requests another daily limit of a key. 0 means no limit.
func (a *Changes) SetKey(ctx context.Context, by By, id, tenantID, keyID string, daily money.Pesewas, reason string) (Request, error) {
	return a.Do(ctx, by, KindSetKey, id, Values{FieldTenant: tenantID, "key": keyID, "daily": daily.String()}, reason)
}

func (a *Changes) lookSetKey(ctx context.Context, o Order) (Draft, error) {
	t, k, err := a.found(ctx, o.Values[FieldTenant], o.Values["key"])
	if err != nil {
		return Draft{}, err
	}
	if k.Daily, err = o.Values.notNegative("daily"); err != nil {
		return Draft{}, err
	}
	if err := within(roles.SiteOf(o.By.Place), o.By.role(), t.Mode, k.Scopes); err != nil {
		return Draft{}, err
	}
	lower := k.Daily > 0 && (k.Before == 0 || k.Daily <= k.Before)
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Set the daily limit of the API key %s of %s to %s", k.Hint, title, dailyText(t.Money(), k.Daily))
	return Draft{Tenant: t.ID, Sentence: sentence, Payload: k, Light: lower || t.Mode == tenant.Test}, nil
}

// dailyText formats the daily limit of a key for people.
func dailyText(asset ledger.Asset, daily money.Pesewas) string {
	if daily == 0 {
		return "the full balance"
	}
	return asset.Text(int64(daily)) + " a day"
}

func (a *Changes) setKeyKind() Kind {
	return written(a, KindSetKey, "Daily limit of an API key", Rule{Make: roles.ChangeKeys, Check: roles.ApproveAccess}, func(tx *db.Tx, request Request, k key) ([]audit.Change, error) {
		if err := a.requesterWithin(tx, request, k); err != nil {
			return nil, err
		}
		old, _, err := a.Access.SetDaily(tx, k.Tenant, k.ID, k.Daily)
		if err == nil && old.Daily != k.Before {
			err = errChanged("Daily spending limit")
		}
		asset := tenant.Tenant{Mode: tenant.Mode(k.Mode)}.Money()
		return []audit.Change{{What: "daily of " + k.Hint, Before: dailyText(asset, k.Before), After: dailyText(asset, k.Daily)}}, err
	}).by(a.lookSetKey, tenantField, keyField, dailyField).showing(a.checkDaily)
}

// secretOf is the subject of a change of the webhook secret.
type secretOf struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
}

// RotateSecret requests a new secret for the signatures of an account's webhooks. For one day webhooks carry
// signatures of both secrets.
func (a *Changes) RotateSecret(ctx context.Context, by By, id, tenantID, reason string) (Request, error) {
	return a.Do(ctx, by, KindRotateSecret, id, Values{FieldTenant: tenantID}, reason)
}

func (a *Changes) lookRotateSecret(ctx context.Context, o Order) (Draft, error) {
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	title, err := a.titled(ctx, o.By.Place, t)
	return Draft{Tenant: t.ID, Sentence: "Change the secret that signs webhooks of " + title, Payload: secretOf{t.ID, t.Name}}, err
}

func (a *Changes) rotateSecretKind() Kind {
	return written(a, KindRotateSecret, "New webhook secret", Rule{Make: roles.ChangeKeys, Check: roles.ApproveAccess, Light: true}, func(tx *db.Tx, request Request, p secretOf) ([]audit.Change, error) {
		_, err := a.Webhooks.RotateSecret(tx, p.Tenant)
		return []audit.Change{{What: "secret of webhooks", Before: "the previous secret, for a day", After: "a new one"}}, err
	}).by(a.lookRotateSecret, tenantField)
}

// manyKeys is the number of working keys of an account above which another key causes a warning.
const manyKeys = 10

// checkNewKey returns how many keys of the account work, and warns of a key that can debit the wallet without a daily
// limit.
func (a *Changes) checkNewKey(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[key](r)
	if err != nil {
		return nil, err
	}
	keys, err := a.Access.Keys(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	working := 0
	for _, k := range keys {
		if k.State(a.Store.now()) == "active" {
			working++
		}
	}
	asset := tenant.Tenant{Mode: tenant.Mode(p.Mode)}.Money()
	list := []Fact{{Name: "Scopes", Value: listed(p.Scopes)}, {Name: "Spends", Value: dailyText(asset, p.Daily)}, {Name: "Valid keys", Value: strconv.Itoa(working)}}
	if p.Member != "" {
		list = append(list, Fact{Name: "Person", Value: p.Member})
	}
	if working >= manyKeys {
		list = append(list, warning(fmt.Sprintf("The account has %d valid keys. Revoke the keys that nobody uses.", working)))
	}
	if p.Mode == string(tenant.Live) && pays(p.Scopes) {
		if p.Daily == 0 {
			list = append(list, warning("The key may pay out the whole wallet: it has no daily limit."))
		}
		if p.Expiry == 0 {
			list = append(list, warning("The key can pay and does not expire."))
		}
	}
	return list, nil
}

// checkKey returns the facts about an existing key. It refuses a key that has changed since the requester saw it.
func (a *Changes) checkKey(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[key](r)
	if err != nil {
		return nil, err
	}
	k, err := a.Access.Key(ctx, p.Tenant, p.ID)
	switch {
	case err != nil:
		return nil, err
	case k.Daily != p.Before:
		return nil, errChanged("Daily spending limit")
	}
	list := []Fact{{Name: "Key", Value: k.Hint + ", " + k.State(a.Store.now())}, {Name: "Scopes", Value: listed(k.Scopes)}, {Name: "Since", Value: at(k.CreatedAt)}}
	if whose := strings.TrimSpace(k.Member + " " + k.Label); whose != "" {
		list = append(list, Fact{Name: "Person or label", Value: whose})
	}
	if !k.RevokedAt.IsZero() {
		list = append(list, warning("The key was revoked at "+at(k.RevokedAt)+"."))
	}
	return list, nil
}

// checkDaily returns both daily limits of a key.
func (a *Changes) checkDaily(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[key](r)
	if err != nil {
		return nil, err
	}
	asset := tenant.Tenant{Mode: tenant.Mode(p.Mode)}.Money()
	list := becomes("Spends", dailyText(asset, p.Before), dailyText(asset, p.Daily))
	switch {
	case p.Daily == 0 && p.Before > 0 && pays(p.Scopes):
		list = append(list, warning("After this change the key may pay out the whole wallet."))
	case p.Before > 0 && p.Daily > tenfold*p.Before:
		list = append(list, warning("The limit grows more than tenfold."))
	}
	more, err := a.checkKey(ctx, r)
	return append(list, more...), err
}
