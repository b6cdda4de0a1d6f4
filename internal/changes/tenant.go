package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// The kinds of changes of an account itself. KindSettings is for the account's own people, who change only their own
// settings.
const (
	KindCreateTenant = "tenant.create"
	KindTenant       = "tenant.set"
	KindBlock        = "tenant.block"
	KindSettings     = "tenant.settings"
	KindAddresses    = "tenant.addresses"
)

// PayoutIPs is the name of the setting with a list of addresses. They are texts that access.ParsePrefix reads,
// separated by spaces. Blocked is the name of the setting that denies a tenant everything.
const (
	PayoutIPs = "payout_ips"
	Blocked   = "blocked"
)

// Setting is one setting of an account, with its names on commands and pages.
type Setting struct {
	Name    string
	Label   string
	Options []string // the allowed values; none: any text
	Own     bool     // the account's own people may change it
	url     bool     // Makola sends requests to it
	get     func(t tenant.Tenant) string
	set     func(c *tenant.Change, text string) error
	// restricts reports whether a change only restricts the account, and so needs no approver. If it is nil, no
	// change does.
	restricts func(before, after string) bool
}

// Of returns the value of the setting.
func (s Setting) Of(t tenant.Tenant) string { return s.get(t) }

var onOff = []string{"on", "off"}

func word(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// flag returns a setting that is on or off. One of the two values only restricts the account.
func flag(name, label, restricts string, get func(t tenant.Tenant) bool, at func(c *tenant.Change) **bool) Setting {
	return Setting{Name: name, Label: label, Options: onOff,
		get:       func(t tenant.Tenant) string { return word(get(t)) },
		set:       func(c *tenant.Change, text string) error { on := text == "on"; *at(c) = &on; return nil },
		restricts: func(_, after string) bool { return after == restricts },
	}
}

// limit returns a setting that is an amount.
func limit(name, label string, get func(t tenant.Tenant) money.Pesewas, at func(c *tenant.Change) **money.Pesewas) Setting {
	return Setting{Name: name, Label: label,
		get: func(t tenant.Tenant) string { return get(t).String() },
		set: func(c *tenant.Change, text string) error {
			n, err := money.Parse(text)
			if errors.Is(err, money.ErrRange) {
				return problem.Field(name, err.Error())
			}
			if err != nil {
				return problem.Field(name, "must be an amount above zero, such as 15000.00")
			}
			if n <= 0 {
				return problem.Field(name, "must be above zero")
			}
			*at(c) = &n
			return nil
		},
		restricts: func(before, after string) bool {
			was, err := money.Parse(before)
			is, err2 := money.Parse(after)
			return err == nil && err2 == nil && is < was
		},
	}
}

// quota returns a setting that limits stored objects.
func quota(name, label string, get func(q tenant.Quotas) tenant.Quota, at func(c *tenant.QuotaChange) **tenant.Quota) Setting {
	return Setting{Name: name, Label: label,
		get: func(t tenant.Tenant) string { return get(t.Quotas).String() },
		set: func(c *tenant.Change, text string) error {
			q, err := tenant.ParseQuota(text)
			if err != nil {
				return problem.Field(name, err.Error())
			}
			*at(&c.Quotas) = &q
			return nil
		}}
}

// Settings are the settings of an account except PayoutIPs, in the order of pages.
func Settings() []Setting {
	stopped := func(c *tenant.Change, text string) error { off := text == "off"; c.PayoutsStopped = &off; return nil }
	return []Setting{
		{Name: "name", Label: "Name", get: func(t tenant.Tenant) string { return t.Name }, set: func(c *tenant.Change, text string) error { c.Name = &text; return nil }},
		flag(Blocked, "Blocked", "on", func(t tenant.Tenant) bool { return t.Blocked }, func(c *tenant.Change) **bool { return &c.Blocked }),
		flag("collections", "Collections", "off", func(t tenant.Tenant) bool { return t.CollectionsEnabled }, func(c *tenant.Change) **bool { return &c.CollectionsEnabled }),
		{Name: "payouts", Label: "Payouts", Options: onOff, get: func(t tenant.Tenant) string { return word(!t.PayoutsStopped) }, set: stopped, restricts: func(_, after string) bool { return after == "off" }},
		limit("transfer_limit", "Maximum payout to a wallet", func(t tenant.Tenant) money.Pesewas { return t.PayoutLimitWallet }, func(c *tenant.Change) **money.Pesewas { return &c.PayoutLimitWallet }),
		limit("bank_transfer_limit", "Maximum payout to a bank account", func(t tenant.Tenant) money.Pesewas { return t.PayoutLimitBank }, func(c *tenant.Change) **money.Pesewas { return &c.PayoutLimitBank }),
		{Name: "fee_bearer", Label: "Charges of collections paid by", Options: []string{"merchant", "customer"}, Own: true, get: func(t tenant.Tenant) string { return string(t.FeeBearer) },
			set: func(c *tenant.Change, text string) error { v := tenant.FeeBearer(text); c.FeeBearer = &v; return nil }},
		{Name: "listed", Label: "Requests accepted only from listed addresses", Options: []string{"payouts", "spending"}, Own: true, get: func(t tenant.Tenant) string { return string(t.Listed) },
			set: func(c *tenant.Change, text string) error { v := tenant.Listed(text); c.Listed = &v; return nil }, restricts: func(_, after string) bool { return after == "spending" }},
		{Name: "duplicates", Label: "Duplicate references", Options: []string{"refuse", "repeat"}, Own: true, get: func(t tenant.Tenant) string { return string(t.Duplicates) },
			set: func(c *tenant.Change, text string) error { v := tenant.Duplicates(text); c.Duplicates = &v; return nil }},
		{Name: "refund_airtime", Label: "Refund of failed airtime to", Options: []string{"wallet", "payer"}, Own: true, get: func(t tenant.Tenant) string { return string(t.RefundAirtime) },
			set: func(c *tenant.Change, text string) error {
				v := tenant.AirtimeRefund(text)
				c.RefundAirtime = &v
				return nil
			}},
		{Name: "email", Label: "E-mail address for providers", Own: true, get: func(t tenant.Tenant) string { return t.Email },
			set: func(c *tenant.Change, text string) error { c.Email = &text; return nil }},
		{Name: "voucher", Label: "Clients send the payers' vouchers (Telecel)", Options: onOff, Own: true, get: func(t tenant.Tenant) string { return word(t.Voucher) },
			set: func(c *tenant.Change, text string) error { on := text == "on"; c.Voucher = &on; return nil }},
		{Name: "sms_url", Label: "Webhook URL for texts from handsets", Own: true, url: true, get: func(t tenant.Tenant) string { return t.SMSURL },
			set: func(c *tenant.Change, text string) error { c.SMSURL = &text; return nil }},
		{Name: "batch_url", Label: "Webhook URL for finished batches", Own: true, url: true, get: func(t tenant.Tenant) string { return t.BatchURL },
			set: func(c *tenant.Change, text string) error { c.BatchURL = &text; return nil }},
		quota("quota_contacts", "Maximum number of contacts", func(q tenant.Quotas) tenant.Quota { return q.Contacts }, func(c *tenant.QuotaChange) **tenant.Quota { return &c.Contacts }),
		quota("quota_groups", "Maximum number of contact groups", func(q tenant.Quotas) tenant.Quota { return q.Groups }, func(c *tenant.QuotaChange) **tenant.Quota { return &c.Groups }),
		quota("quota_sender_ids", "Maximum number of sender IDs", func(q tenant.Quotas) tenant.Quota { return q.Senders }, func(c *tenant.QuotaChange) **tenant.Quota { return &c.Senders }),
		quota("quota_campaigns", "Maximum number of open campaigns", func(q tenant.Quotas) tenant.Quota { return q.Campaigns }, func(c *tenant.QuotaChange) **tenant.Quota { return &c.Campaigns }),
	}
}

// settingOf returns a setting by its name. It is zero for PayoutIPs.
func settingOf(name string) Setting {
	list := Settings()
	if i := slices.IndexFunc(list, func(s Setting) bool { return s.Name == name }); i >= 0 {
		return list[i]
	}
	return Setting{}
}

// setting is a new value, and the value that the requester saw. Its members and their order are hashed.
type setting struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// settings is the payload of a change of an account.
type settings struct {
	Tenant string    `json:"tenant"`
	Name   string    `json:"name"` // values of the account, as the requester saw them
	Set    []setting `json:"set"`
}

// Prefixes parses the addresses of PayoutIPs.
func Prefixes(text string) (list []netip.Prefix, err error) {
	for _, one := range strings.Fields(text) {
		p, err := access.ParsePrefix(one)
		if err != nil {
			return nil, problem.Field(PayoutIPs, strings.TrimPrefix(problem.From(err).Message, "payout_ip "))
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int { return strings.Compare(a.String(), b.String()) })
	return list, nil
}

func spaced(list []netip.Prefix) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// narrower reports whether every entry of the new list was in the old list.
func narrower(before, after string) bool {
	was, _ := Prefixes(before) // an invalid entry contains no addresses
	is, err := Prefixes(after)
	return err == nil && !slices.ContainsFunc(is, func(p netip.Prefix) bool { return !slices.Contains(was, p) })
}

// changeOf parses values by their names into a change. The change is zero if none of them is a setting of the account
// itself.
func changeOf(values map[string]string, t tenant.Tenant, ips string) (c tenant.Change, set []setting, light bool, err error) {
	light, rest := true, maps.Clone(values)
	for _, s := range Settings() {
		text, given := rest[s.Name]
		delete(rest, s.Name)
		if text = strings.TrimSpace(text); !given || text == s.get(t) {
			continue
		}
		if s.Options != nil && !slices.Contains(s.Options, text) {
			return c, nil, false, problem.Field(s.Name, "must be "+strings.Join(s.Options, " or "))
		}
		if err := s.set(&c, text); err != nil {
			return c, nil, false, err
		}
		set = append(set, setting{s.Name, s.get(t), text})
		light = light && s.restricts != nil && s.restricts(s.get(t), text)
	}
	if text, given := rest[PayoutIPs]; given {
		delete(rest, PayoutIPs)
		list, err := Prefixes(text)
		if err != nil {
			return c, nil, false, err
		}
		if after := spaced(list); after != ips {
			set = append(set, setting{PayoutIPs, ips, after})
			light = light && narrower(ips, after)
		}
	}
	for name := range rest {
		return c, nil, false, problem.Field(name, "is not a setting of an account")
	}
	return c, set, light, nil
}

// kindOf returns the kind of a request that changes these settings.
func kindOf(place string, set []setting) string {
	only := func(name string) bool { return len(set) == 1 && set[0].Name == name }
	switch {
	case only(PayoutIPs):
		return KindAddresses
	case place != roles.Installation:
		return KindSettings
	case only(Blocked):
		return KindBlock
	}
	return KindTenant
}

// SetTenant requests settings of an account, by their names (Settings, PayoutIPs) and as texts. It leaves out values
// that are set already. id is the id of the form.
func (a *Changes) SetTenant(ctx context.Context, by By, id, tenantID string, values map[string]string, reason string) (Request, error) {
	v, kind := maps.Clone(Values(values)), KindTenant
	if by.Place != roles.Installation {
		kind = KindSettings
	}
	if _, ips := v[PayoutIPs]; ips && len(v) == 1 {
		kind = KindAddresses
	}
	if _, blocked := v[Blocked]; blocked && len(v) == 1 && by.Place == roles.Installation {
		kind = KindBlock
	}
	if v == nil {
		v = Values{}
	}
	v[FieldTenant] = tenantID
	return a.Do(ctx, by, kind, id, v, reason)
}

func (a *Changes) lookSettings(ctx context.Context, o Order) (Draft, error) {
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	list, err := a.Access.PayoutIPs(ctx, t.ID)
	if err != nil {
		return Draft{}, err
	}
	values := maps.Clone(o.Values)
	delete(values, FieldTenant)
	_, set, light, err := changeOf(values, t, spaced(list))
	if err != nil {
		return Draft{}, err
	}
	for _, s := range set {
		if settingOf(s.Name).url && s.After != "" {
			if err := a.Webhooks.Check(s.After); err != nil {
				return Draft{}, problem.Field(s.Name, err.Error())
			}
		}
	}
	if len(set) == 0 {
		if request, err := a.Get(ctx, o.By.Place, o.ID); err == nil && request.Requester == o.By.id() && request.Tenant == t.ID { // the same form again
			return Draft{Again: &request}, nil
		}
		return Draft{}, problem.New(problem.Invalid, "nothing_changed", "Nothing would change")
	}
	kind := kindOf(o.By.Place, set)
	texts := make([]string, len(set))
	for i, s := range set {
		if kind == KindSettings && !settingOf(s.Name).Own {
			return Draft{}, problem.New(problem.Forbidden, "not_own", "Only the installation can change "+s.Name)
		}
		texts[i] = fmt.Sprintf("%s from %q to %q", s.Name, s.Before, s.After)
	}
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Change of %s: %s", title, strings.Join(texts, ", "))
	return Draft{Kind: kind, Tenant: t.ID, Sentence: sentence, Payload: settings{t.ID, t.Name, set}, Light: light}, nil
}

// settingFields returns the fields of the settings for which take reports true.
func settingFields(take func(s Setting) bool) (fields []Field) {
	for _, s := range Settings() {
		if take(s) {
			fields = append(fields, Field{Name: s.Name, Label: s.Label, Options: s.Options, Max: tenant.MaxURL})
		}
	}
	return fields
}

// addressesField returns the field with the addresses of payouts.
var addressesField = Field{Name: PayoutIPs, Label: "Addresses of payouts", Hint: "Enter the whole list, separated by spaces, such as 192.0.2.7 198.51.100.0/24.", Max: 4000}

// settingsKinds are the kinds that change settings of an account.
func (a *Changes) settingsKinds() []Kind {
	every := append(settingFields(func(Setting) bool { return true }), addressesField)
	own := append(settingFields(func(s Setting) bool { return s.Own }), addressesField)
	return []Kind{
		a.settingsKind(KindTenant, "Settings of an account", roles.ChangeTenants).by(a.lookSettings, append([]Field{tenantField}, every...)...).showing(a.checkSettings),
		a.settingsKind(KindBlock, "Block of an account", roles.BlockTenants).by(a.lookSettings, tenantField, Field{Name: Blocked, Label: "Blocked", Options: onOff, Max: 3, Required: true}).showing(a.checkSettings),
		a.settingsKind(KindSettings, "The account's own settings", roles.ChangeSettings).by(a.lookSettings, append([]Field{tenantField}, own...)...).showing(a.checkSettings),
		a.settingsKind(KindAddresses, "Addresses of payouts", roles.ChangeAddresses).by(a.lookSettings, tenantField, addressesField).showing(a.checkSettings),
	}
}

func (a *Changes) settingsKind(name, title string, may roles.Permission) Kind {
	return written(a, name, title, Rule{Make: may, Check: roles.ApproveAccess}, func(tx *db.Tx, request Request, p settings) ([]audit.Change, error) {
		values := map[string]string{}
		for _, s := range p.Set {
			values[s.Name] = s.After
		}
		before, err := a.Tenants.Locked(tx, p.Tenant)
		if err != nil {
			return nil, err
		}
		if before.Name != p.Name {
			return nil, errChanged("The name of the account")
		}
		c, _, _, err := changeOf(values, before, "-")
		if err != nil {
			return nil, err
		}
		if _, _, err := a.Tenants.Set(tx, p.Tenant, c); err != nil {
			return nil, err
		}
		changes := make([]audit.Change, len(p.Set))
		for i, s := range p.Set {
			was := ""
			if s.Name == PayoutIPs {
				if was, err = a.setAddresses(tx, p.Tenant, s.After); err != nil {
					return nil, err
				}
			} else {
				was = settingNamed(s.Name).get(before)
			}
			if was != s.Before {
				return nil, errChanged(s.Name)
			}
			changes[i] = audit.Change{What: s.Name, Before: s.Before, After: s.After}
		}
		return changes, nil
	})
}

// setAddresses replaces the allow-list of a tenant, and returns the previous one.
func (a *Changes) setAddresses(tx *db.Tx, tenantID, text string) (before string, err error) {
	list, err := Prefixes(text)
	if err != nil {
		return "", err
	}
	was, err := a.Access.SetPayoutIPs(tx, tenantID, list)
	return spaced(was), err
}

func settingNamed(name string) Setting {
	all := Settings()
	return all[slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })]
}

// newTenant is an account to be created.
type newTenant struct {
	ID   string    `json:"id"`
	Name string    `json:"name"`
	Mode string    `json:"mode"`
	Set  []setting `json:"set"` // the settings that differ from the defaults
}

func (n newTenant) tenant() tenant.Tenant {
	return tenant.Tenant{ID: n.ID, Name: n.Name, Mode: tenant.Mode(n.Mode), PayoutLimitWallet: tenant.DefaultWalletLimit, PayoutLimitBank: tenant.DefaultBankLimit,
		FeeBearer: tenant.Merchant, Listed: tenant.ListedPayouts, Duplicates: tenant.RefuseDuplicates, RefundAirtime: tenant.RefundToWallet}
}

// CreateTenant requests an account. If tenantID is empty, the account gets an id that is made from the form's. values are as in
// SetTenant.
func (a *Changes) CreateTenant(ctx context.Context, by By, id, tenantID, name, mode string, values map[string]string, reason string) (Request, error) {
	v := maps.Clone(Values(values))
	if v == nil {
		v = Values{}
	}
	v["id"], v["name"], v["mode"] = tenantID, name, mode
	return a.Do(ctx, by, KindCreateTenant, id, v, reason)
}

func (a *Changes) lookCreateTenant(_ context.Context, o Order) (Draft, error) {
	values := maps.Clone(o.Values)
	n := newTenant{ID: cmp.Or(values["id"], tenant.IDOf(o.ID)), Name: values["name"], Mode: values["mode"]}
	for _, own := range []string{"id", "name", "mode"} {
		delete(values, own)
	}
	if err := n.tenant().Check(); err != nil {
		return Draft{}, err
	}
	var err error
	if _, n.Set, _, err = changeOf(values, n.tenant(), ""); err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Create the account %s (%s)", n.Name, n.Mode)
	for _, s := range n.Set {
		sentence += fmt.Sprintf(", %s %q", s.Name, s.After)
	}
	return Draft{Tenant: n.ID, Sentence: sentence, Payload: n, Light: n.Mode == string(tenant.Test)}, nil
}

func (a *Changes) createTenantKind() Kind {
	return written(a, KindCreateTenant, "New account", Rule{Make: roles.ChangeTenants, Check: roles.ApproveAccess}, func(tx *db.Tx, request Request, p newTenant) ([]audit.Change, error) {
		made, err := a.Tenants.Create(tx, p.tenant())
		if err != nil {
			return nil, err
		}
		changes, values := []audit.Change{{What: "name", After: made.Name}, {What: "mode", After: string(made.Mode)}}, map[string]string{}
		for _, s := range p.Set {
			values[s.Name] = s.After
			changes = append(changes, audit.Change{What: s.Name, Before: s.Before, After: s.After})
		}
		c, _, _, err := changeOf(values, made, "-")
		if err != nil {
			return nil, err
		}
		if _, _, err = a.Tenants.Set(tx, made.ID, c); err == nil {
			_, err = a.setAddresses(tx, made.ID, values[PayoutIPs])
		}
		return changes, err
	}).by(a.lookCreateTenant, append(append([]Field{{Name: "name", Label: "Name", Max: 120, Required: true}, {Name: "mode", Label: "Money", Hint: "Enter live or test.", Max: 4, Required: true},
		{Name: "id", Label: "Id", Hint: "Leave empty for a generated id.", Max: 64}}, settingFields(func(s Setting) bool { return s.Name != "name" })...), addressesField)...).showing(a.checkNewTenant)
}

// checkSettings returns each setting before and after. It warns of settings that allow unusually much.
func (a *Changes) checkSettings(ctx context.Context, r Request) (list []Fact, err error) {
	p, err := payloadOf[settings](r)
	if err != nil {
		return nil, err
	}
	t, err := a.Tenants.Get(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	ips, err := a.Access.PayoutIPs(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	for _, s := range p.Set {
		label, was := labelOf(s.Name), spaced(ips)
		if s.Name != PayoutIPs {
			was = settingNamed(s.Name).get(t)
		}
		if was != s.Before {
			return nil, errChanged(s.Name)
		}
		list = append(list, becomes(label, cmp.Or(s.Before, "none"), cmp.Or(s.After, "none"))...)
		list = append(list, settingWarnings(s, label)...)
		if s.Name == "name" {
			t.Name = s.After
			near, err := a.nearWarnings(ctx, t)
			if err != nil {
				return nil, err
			}
			list = append(list, near...)
		}
	}
	return list, nil
}

// checkNewTenant returns the settings of an account to be created, and warns of accounts with similar names.
func (a *Changes) checkNewTenant(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[newTenant](r)
	if err != nil {
		return nil, err
	}
	list := []Fact{{Name: "Name", Value: p.Name}, {Name: "Money", Value: p.Mode}, {Name: "Id", Value: p.ID}}
	for _, s := range p.Set {
		label := labelOf(s.Name)
		list = append(list, Fact{Name: label, Value: cmp.Or(s.After, "none")})
		list = append(list, settingWarnings(s, label)...)
	}
	near, err := a.nearWarnings(ctx, tenant.Tenant{ID: p.ID, Name: p.Name, Mode: tenant.Mode(p.Mode)})
	return append(list, near...), err
}

// labelOf returns the label of a setting.
func labelOf(name string) string {
	if name == PayoutIPs {
		return addressesField.Label
	}
	return settingNamed(name).Label
}

// Prefixes shorter than these, in bits, cause a warning.
const (
	wideIPv4 = 24
	wideIPv6 = 48
)

// settingWarnings returns warnings of a change that allows unusually much.
func settingWarnings(s setting, label string) (list []Fact) {
	if s.Name != PayoutIPs {
		was, err := money.Parse(s.Before)
		is, err2 := money.Parse(s.After)
		if err == nil && err2 == nil && was > 0 && is > tenfold*was {
			list = append(list, warning(label+": the limit grows more than tenfold."))
		}
		return list
	}
	if strings.TrimSpace(s.After) == "" {
		return append(list, warning("The list is empty, so no payout by a key is accepted after this change."))
	}
	prefixes, _ := Prefixes(s.After) // read before
	for _, p := range prefixes {
		if p.Addr().Is4() && p.Bits() < wideIPv4 || p.Addr().Is6() && p.Bits() < wideIPv6 {
			list = append(list, warning(fmt.Sprintf("%s is a wide range of addresses.", p)))
		}
	}
	return list
}
