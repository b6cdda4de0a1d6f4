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
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// The kinds of acts about API keys, and about the secret that signs webhooks.
const (
	KindCreateKey    = "key.create"
	KindRotateKey    = "key.rotate"
	KindRevokeKey    = "key.revoke"
	KindSetKey       = "key.set"
	KindRotateSecret = "webhook.rotate"
)

// paying are the scopes with which a key takes money out of the wallet.
var paying = []access.Scope{access.All, access.Payout, access.Airtime}

// pays says whether a key with these scopes takes money out of the wallet.
func pays(scopes []access.Scope) bool {
	return slices.ContainsFunc(paying, func(s access.Scope) bool { return slices.Contains(scopes, s) })
}

// ScopesOf gives the scopes that a role of a site may give to a key of an account. A developer has all of them where the
// money is test money, and else those that take nothing out of the wallet.
func ScopesOf(at identity.Site, role identity.Role, mode tenant.Mode) []access.Scope {
	switch {
	case !identity.Can(at, role, identity.MakeKeys):
		return nil
	case role == identity.Developer && mode == tenant.Live:
		return []access.Scope{access.Read, access.Collect, access.OTP, access.Webhooks}
	}
	return access.Scopes()
}

// KeyOrder says what key to make.
type KeyOrder struct {
	Member string         // the person whose key it is, by e-mail address or id; empty: the account's own
	Label  string         // a free text that tells keys apart
	Scopes []access.Scope // none means All
	Expiry time.Duration  // 0: it works without end
	Daily  money.Pesewas  // what it may spend in a day; 0: all that is there
}

// key is what the maker of an act about a key asked for and saw. Its members and their order are what is hashed.
type key struct {
	Tenant  string         `json:"tenant"`
	Mode    string         `json:"mode"`
	ID      string         `json:"id,omitempty"`   // of the key that is there
	Hint    string         `json:"hint,omitempty"` // of it
	Member  string         `json:"member,omitempty"`
	Scopes  []access.Scope `json:"scopes"`
	Expiry  int64          `json:"expiry_s,omitempty"`
	Overlap int64          `json:"overlap_s,omitempty"`
	Daily   money.Pesewas  `json:"daily_pesewas"`
	Before  money.Pesewas  `json:"before_pesewas,omitempty"`
	Person  string         `json:"person,omitempty"` // whose id goes with the address in Member
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
func within(at identity.Site, role identity.Role, mode tenant.Mode, scopes []access.Scope) error {
	allowed := ScopesOf(at, role, mode)
	for _, s := range scopes {
		if !slices.Contains(allowed, s) {
			return problem.New(problem.Forbidden, "scope_beyond", fmt.Sprintf("A key with the scope %s has more rights than the role %s may give", s, role))
		}
	}
	return nil
}

// makerWithin refuses, in the transaction that does an act, scopes beyond those of what its maker is now.
func (a *Changes) makerWithin(tx *db.Tx, act Request, k key) error {
	if act.byMachine() {
		return nil
	}
	maker, err := a.People.Standing(tx, act.Maker, act.Place)
	if err != nil {
		return err
	}
	return within(identity.SiteOf(act.Place), maker.Role, tenant.Mode(k.Mode), k.Scopes)
}

// CreateKey asks for an API key of an account. Its text is the Secret of the act that is done.
func (a *Changes) CreateKey(ctx context.Context, by By, id, tenantID string, o KeyOrder, reason string) (Request, error) {
	t, err := a.Tenants.Get(ctx, tenantID)
	if err != nil {
		return Request{}, err
	}
	k := key{Tenant: t.ID, Mode: string(t.Mode), Label: o.Label, Scopes: o.Scopes, Expiry: int64(o.Expiry / time.Second), Daily: o.Daily}
	if o.Member != "" {
		p, err := a.People.Member(ctx, t.ID, o.Member)
		if err != nil {
			return Request{}, err
		}
		k.Person, k.Member = p.ID, p.Email
	}
	m, err := a.Access.Mint(k.order()) // for its checks and the order of its scopes
	if err != nil {
		return Request{}, err
	}
	k.Scopes = m.Key.Scopes
	if err := within(identity.SiteOf(by.Place), by.role(), t.Mode, k.Scopes); err != nil {
		return Request{}, err
	}
	sentence := fmt.Sprintf("Make an API key of %s (%s, %s) with the scopes %s", t.Name, t.Mode, t.ID, listed(k.Scopes))
	if k.Member != "" {
		sentence += ", for " + k.Member
	}
	if k.Label != "" {
		sentence += ", labelled " + strconv.Quote(k.Label)
	}
	if o.Expiry > 0 {
		sentence += ", for " + o.Expiry.String()
	}
	sentence += spends(t, k.Daily)
	return a.make(ctx, Order{By: by, ID: id, Reason: reason}, Draft{Kind: KindCreateKey, Tenant: t.ID, Sentence: sentence, Payload: k, Light: t.Mode == tenant.Test || !pays(k.Scopes)})
}

func spends(t tenant.Tenant, daily money.Pesewas) string {
	if daily == 0 {
		return ""
	}
	return ", which spends at most " + t.Money().Text(int64(daily)) + " a day"
}

func (a *Changes) createKeyKind() Kind {
	return secretly(a, KindCreateKey, "New API key", Rule{Make: identity.MakeKeys, Check: identity.CheckAccess},
		func(_ context.Context, k key) (access.Minted, error) { return a.Access.Mint(k.order()) },
		func(tx *db.Tx, act Request, k key, m access.Minted) ([]audit.Change, []string, error) {
			err := a.makerWithin(tx, act, k)
			if err == nil && k.Person != "" {
				err = a.member(tx, k)
			}
			if err != nil {
				return nil, nil, err
			}
			m.Key.Maker = act.person()
			a.Access.CreateKey(tx, m)
			return []audit.Change{{What: "key", After: m.Key.Hint}, {What: "id", After: m.Key.ID}, {What: "scopes", After: listed(k.Scopes)}}, []string{m.Text}, nil
		})
}

// member refuses a key of a person who has lost the role at the account.
func (a *Changes) member(tx *db.Tx, k key) error {
	who, err := a.People.StandingNow(tx, k.Person, k.Tenant)
	if err == nil && (who.Role == "" || !who.Person.DisabledAt.IsZero()) {
		err = errChanged("The role of " + k.Member)
	}
	return err
}

// found finds a key of an account, and what an act about it says.
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

// RotateKey asks for a key in the place of another, which works for overlap longer. The text of the new one is the Secret of
// the act that is done.
func (a *Changes) RotateKey(ctx context.Context, by By, id, tenantID, keyID string, overlap time.Duration, reason string) (Request, error) {
	t, k, err := a.found(ctx, tenantID, keyID)
	if err != nil {
		return Request{}, err
	}
	if overlap < 0 || overlap > access.MaxOverlap {
		return Request{}, problem.Field("overlap", "must be between 0 and 7 days")
	}
	if err := within(identity.SiteOf(by.Place), by.role(), t.Mode, k.Scopes); err != nil {
		return Request{}, err
	}
	k.Overlap = int64(overlap / time.Second)
	sentence := fmt.Sprintf("Replace the API key %s of %s (%s, %s), which works for %s more, scopes %s", k.Hint, t.Name, t.Mode, t.ID, overlap, listed(k.Scopes))
	return a.make(ctx, Order{By: by, ID: id, Reason: reason}, Draft{Kind: KindRotateKey, Tenant: t.ID, Sentence: sentence, Payload: k, Light: t.Mode == tenant.Test || !pays(k.Scopes)})
}

func (a *Changes) rotateKeyKind() Kind {
	return secretly(a, KindRotateKey, "Replacement of an API key", Rule{Make: identity.MakeKeys, Check: identity.CheckAccess},
		func(_ context.Context, k key) (access.Minted, error) { return a.Access.Mint(k.order()) },
		func(tx *db.Tx, act Request, k key, m access.Minted) ([]audit.Change, []string, error) {
			if err := a.makerWithin(tx, act, k); err != nil {
				return nil, nil, err
			}
			m.Key.Maker = act.person()
			old, err := a.Access.Rotate(tx, k.Tenant, k.ID, m, time.Duration(k.Overlap)*time.Second)
			if err == nil && old.Daily != k.Before {
				err = errChanged("What the key may spend in a day")
			}
			return []audit.Change{{What: "key", Before: k.Hint, After: m.Key.Hint}, {What: "id", Before: k.ID, After: m.Key.ID}}, []string{m.Text}, err
		})
}

// RevokeKey asks for the end of a key, for good.
func (a *Changes) RevokeKey(ctx context.Context, by By, id, tenantID, keyID, reason string) (Request, error) {
	t, k, err := a.found(ctx, tenantID, keyID)
	if err != nil {
		return Request{}, err
	}
	sentence := fmt.Sprintf("Revoke the API key %s of %s (%s, %s)", k.Hint, t.Name, t.Mode, t.ID)
	return a.make(ctx, Order{By: by, ID: id, Reason: reason}, Draft{Kind: KindRevokeKey, Tenant: t.ID, Sentence: sentence, Payload: k})
}

func (a *Changes) revokeKeyKind() Kind {
	return written(a, KindRevokeKey, "Revocation of an API key", Rule{Make: identity.MakeKeys, Check: identity.CheckAccess, Light: true}, func(tx *db.Tx, act Request, k key) ([]audit.Change, error) {
		_, err := a.Access.RevokeKey(tx, k.Tenant, k.ID)
		return []audit.Change{{What: "key " + k.Hint, Before: "works", After: "revoked"}}, err
	})
}

// SetKey asks for another limit of what a key spends in a day; 0 is all that is there.
func (a *Changes) SetKey(ctx context.Context, by By, id, tenantID, keyID string, daily money.Pesewas, reason string) (Request, error) {
	t, k, err := a.found(ctx, tenantID, keyID)
	if err != nil {
		return Request{}, err
	}
	if daily < 0 {
		return Request{}, problem.Field("daily", "must not be negative")
	}
	if err := within(identity.SiteOf(by.Place), by.role(), t.Mode, k.Scopes); err != nil {
		return Request{}, err
	}
	k.Daily = daily
	lower := daily > 0 && (k.Before == 0 || daily <= k.Before)
	sentence := fmt.Sprintf("Let the API key %s of %s (%s, %s) spend %s", k.Hint, t.Name, t.Mode, t.ID, dailyText(t.Money(), daily))
	return a.make(ctx, Order{By: by, ID: id, Reason: reason}, Draft{Kind: KindSetKey, Tenant: t.ID, Sentence: sentence, Payload: k, Light: lower || t.Mode == tenant.Test})
}

// dailyText is what a key may spend in a day, for people.
func dailyText(asset ledger.Asset, daily money.Pesewas) string {
	if daily == 0 {
		return "all that is there"
	}
	return asset.Text(int64(daily)) + " a day"
}

func (a *Changes) setKeyKind() Kind {
	return written(a, KindSetKey, "Daily limit of an API key", Rule{Make: identity.MakeKeys, Check: identity.CheckAccess}, func(tx *db.Tx, act Request, k key) ([]audit.Change, error) {
		if err := a.makerWithin(tx, act, k); err != nil {
			return nil, err
		}
		old, _, err := a.Access.SetDaily(tx, k.Tenant, k.ID, k.Daily)
		if err == nil && old.Daily != k.Before {
			err = errChanged("What the key may spend in a day")
		}
		asset := tenant.Tenant{Mode: tenant.Mode(k.Mode)}.Money()
		return []audit.Change{{What: "daily of " + k.Hint, Before: dailyText(asset, k.Before), After: dailyText(asset, k.Daily)}}, err
	})
}

// secretOf is what an act about the secret of webhooks is about.
type secretOf struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
}

// RotateSecret asks for another secret that signs an account's webhooks; the one before signs beside it for a day.
func (a *Changes) RotateSecret(ctx context.Context, by By, id, tenantID, reason string) (Request, error) {
	t, err := a.Tenants.Get(ctx, tenantID)
	if err != nil {
		return Request{}, err
	}
	sentence := fmt.Sprintf("Change the secret that signs webhooks of %s (%s, %s)", t.Name, t.Mode, t.ID)
	return a.make(ctx, Order{By: by, ID: id, Reason: reason}, Draft{Kind: KindRotateSecret, Tenant: t.ID, Sentence: sentence, Payload: secretOf{t.ID, t.Name}})
}

func (a *Changes) rotateSecretKind() Kind {
	return written(a, KindRotateSecret, "New webhook secret", Rule{Make: identity.MakeKeys, Check: identity.CheckAccess, Light: true}, func(tx *db.Tx, act Request, p secretOf) ([]audit.Change, error) {
		_, err := a.Webhooks.RotateSecret(tx, p.Tenant)
		return []audit.Change{{What: "secret of webhooks", Before: "the one before, for a day", After: "a new one"}}, err
	})
}
