package identity

import "slices"

// Site is one of the two parts of the console: that of a tenant's people, and that of the installation's.
type Site string

// The sites.
const (
	TenantSite       Site = "tenant"
	InstallationSite Site = "installation"
)

// SiteOf gives the site of a tenant or of the Installation.
func SiteOf(tenant string) Site {
	if tenant == Installation {
		return InstallationSite
	}
	return TenantSite
}

// Role is what a person is at a tenant or at the installation. Stored; never renamed.
type Role string

// The roles. Owner, Support and Auditor exist on both sites.
const (
	Owner   Role = "owner"
	Support Role = "support"
	Auditor Role = "auditor"

	Admin     Role = "admin"
	Finance   Role = "finance"   // makes payouts
	Signatory Role = "signatory" // checks them
	Marketing Role = "marketing"
	Developer Role = "developer"

	Operations Role = "operations" // makes acts
	Approver   Role = "approver"   // checks them
	Compliance Role = "compliance" // senders, blocks
	Treasury   Role = "treasury"   // float, reconciliation
	SRE        Role = "sre"        // queues, nodes; neither money nor numbers
)

// Roles gives the roles of a site, in the order of the printed table.
func Roles(s Site) []Role {
	if s == TenantSite {
		return []Role{Owner, Admin, Finance, Signatory, Marketing, Developer, Support, Auditor}
	}
	return []Role{Owner, Operations, Approver, Compliance, Treasury, Support, SRE, Auditor}
}

func (r Role) at(s Site) bool { return slices.Contains(Roles(s), r) }

// strong are the roles that move money, keys or roles, decide about who may, or stop what moves it: what they make is an act.
var strong = map[Site][]Role{
	TenantSite:       {Owner, Admin, Finance, Signatory, Developer},
	InstallationSite: {Owner, Operations, Approver, Compliance, Treasury, Support, SRE}, // support sees accounts from inside
}

// NeedsFactor says whether the people of a role must have a second factor in production.
func (r Role) NeedsFactor(s Site) bool { return slices.Contains(strong[s], r) }

// Permission is one right of a role.
type Permission string

// The permissions.
const (
	ReadHome       Permission = "home.read"
	ReadPayments   Permission = "payments.read"
	ExportPayments Permission = "payments.export"
	ReadNumbers    Permission = "numbers.read"
	RevealNumbers  Permission = "numbers.reveal"
	SearchNumbers  Permission = "numbers.search"
	ReadExchanges  Permission = "exchanges.read"
	ReadTransfers  Permission = "transfers.read"
	ReadWebhooks   Permission = "webhooks.read"
	ReplayWebhooks Permission = "webhooks.replay"
	ReadMessages   Permission = "messages.read"
	ReadRequests   Permission = "requests.read"
	ReadBalances   Permission = "balances.read"
	ReadAudit      Permission = "audit.read"
	ReadTenants    Permission = "tenants.read"
	ViewAs         Permission = "tenants.view_as"
	ReadProviders  Permission = "providers.read"
	ReadTreasury   Permission = "treasury.read"
	ReadChecks     Permission = "checks.read"
	ReadActs       Permission = "acts.read"
	MakeActs       Permission = "acts.make"
	CheckActs      Permission = "acts.check"
	MakePayouts    Permission = "payouts.make"
	CheckPayouts   Permission = "payouts.check"
	MakeMoney      Permission = "money.make"
	CheckMoney     Permission = "money.check"
	MakePolicy     Permission = "policy.make"
	CheckPolicy    Permission = "policy.check"
	MakeTreasury   Permission = "treasury.make"

	SwitchProviders Permission = "providers.switch"
	StopCampaigns   Permission = "campaigns.stop"

	UseSimulator Permission = "simulator.use"

	ReadAccess    Permission = "access.read"
	ReadSecrets   Permission = "secrets.read"
	ReadPeople    Permission = "people.read"
	MakeTenants   Permission = "tenants.make"
	BlockTenants  Permission = "tenants.block"
	MakeSettings  Permission = "settings.make"
	MakeAddresses Permission = "addresses.make"
	MakeKeys      Permission = "keys.make"
	CheckAccess   Permission = "access.check"
	ReviewSenders Permission = "senders.review"
	MakePeople    Permission = "people.make"
	CheckPeople   Permission = "people.check"
)

// Grant is one line of the policy: a permission and the roles of each site that have it.
type Grant struct {
	Permission   Permission
	Means        string // completes "may ..."
	Tenant       []Role
	Installation []Role
}

// Policy is the table of roles and permissions. Anything that is not in it is refused.
func Policy() []Grant { return slices.Clone(policy) }

var policy = []Grant{
	{ReadHome, "see the first page",
		[]Role{Owner, Admin, Finance, Signatory, Marketing, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support, SRE, Auditor}},
	{ReadPayments, "see payments and what became of them",
		[]Role{Owner, Admin, Finance, Signatory, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support, Auditor}},
	{ExportPayments, "see totals and take lists away as files",
		[]Role{Owner, Admin, Finance, Signatory, Auditor},
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadNumbers, "see whole phone and account numbers, texts and the bodies of webhooks",
		[]Role{Owner, Admin, Marketing},
		[]Role{Owner, Operations, Approver, Compliance}},
	{RevealNumbers, "see the whole number and the name of one payment; that it was shown is in the audit log",
		[]Role{Owner, Admin, Finance, Signatory, Support},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support}},
	{SearchNumbers, "search payments by phone number, account or name; each is in the audit log",
		[]Role{Owner, Admin, Finance, Signatory, Support},
		[]Role{Owner, Operations, Compliance, Support}},
	{ReadExchanges, "see what was said to providers and what they answered",
		nil,
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadTransfers, "see the transfers of a payment in the ledger",
		[]Role{Owner, Admin, Finance, Signatory, Auditor},
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadWebhooks, "see webhooks and the attempts to deliver them",
		[]Role{Owner, Admin, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Support, Auditor}},
	{ReplayWebhooks, "have a webhook delivered again",
		[]Role{Owner, Admin, Developer},
		[]Role{Owner, Operations}},
	{ReadMessages, "see campaigns and what became of their messages",
		[]Role{Owner, Admin, Marketing, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Support, Auditor}},
	{ReadRequests, "see requests of the JSON interface that were refused or failed",
		[]Role{Owner, Admin, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Support, SRE, Auditor}},
	{ReadBalances, "see balances",
		[]Role{Owner, Admin, Finance, Signatory, Auditor},
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadAudit, "see what operators did",
		[]Role{Owner, Admin, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Auditor}},
	{ReadTenants, "see tenants and their settings",
		nil,
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support, Auditor}},
	{ViewAs, "see a tenant's own pages, with what both its auditor and their own role here may",
		nil,
		[]Role{Owner, Operations, Support}},
	{ReadProviders, "see the state of providers",
		nil,
		[]Role{Owner, Operations, Approver, Treasury, Support, SRE, Auditor}},
	{ReadTreasury, "see what we hold at providers",
		nil,
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadChecks, "see when the books were checked last, and what was found",
		nil,
		[]Role{Owner, Operations, Approver, Treasury, SRE, Auditor}},
	{ReadActs, "see acts that were made, and what became of them",
		[]Role{Owner, Admin, Finance, Signatory, Developer, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, SRE, Auditor}},
	{MakeActs, "withdraw acts of their own, and go on with them; what acts are about has lines of its own",
		[]Role{Owner, Admin, Finance, Developer},
		[]Role{Owner, Operations, Compliance, Treasury, SRE}},
	{CheckActs, "approve or reject acts of others, as far as their lines below go",
		[]Role{Owner, Admin, Signatory},
		[]Role{Owner, Approver, Compliance}},
	{MakePayouts, "send payouts to wallets and bank accounts by a page",
		[]Role{Owner, Admin, Finance},
		nil},
	{CheckPayouts, "approve or reject payouts of others that wait for a check",
		[]Role{Owner, Admin, Signatory},
		nil},
	{MakeMoney, "put money into wallets and correct them; where a check is needed, it waits for another person",
		nil,
		[]Role{Owner, Operations}},
	{CheckMoney, "approve or reject what others made with money",
		nil,
		[]Role{Owner, Approver}},
	{MakeTreasury, "book what was paid in at providers, end payments of unknown outcome by statements, and empty suspense; where a check is needed, it waits for another person",
		nil,
		[]Role{Owner, Operations, Treasury}},
	{SwitchProviders, "pause providers and let them go on; no check is needed where no line of the policy asks for one",
		nil,
		[]Role{Owner, Operations, SRE}},
	{StopCampaigns, "stop a campaign: what is unsent fails and its credits go back",
		[]Role{Owner, Admin},
		[]Role{Owner, Operations, Compliance}},
	{MakePolicy, "change how many checkers acts need; where a check is needed, it waits for another person",
		[]Role{Owner},
		[]Role{Owner}},
	{CheckPolicy, "approve or reject such a change",
		[]Role{Owner, Admin},
		[]Role{Owner, Approver}},
	{ReadAccess, "see API keys (never their text), payout addresses and settings",
		[]Role{Owner, Admin, Developer, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Auditor}},
	{ReadSecrets, "see the secret that signs webhooks; that it was shown is in the audit log",
		[]Role{Owner, Admin, Developer},
		[]Role{Owner, Operations}},
	{ReadPeople, "see who has a role there",
		[]Role{Owner, Admin, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Auditor}},
	{MakeTenants, "make accounts and change their settings and limits",
		nil,
		[]Role{Owner, Operations}},
	{BlockTenants, "block an account, and let it go on",
		nil,
		[]Role{Owner, Operations, Compliance}},
	{MakeSettings, "change the settings that are the account's own",
		[]Role{Owner, Admin},
		nil},
	{MakeAddresses, "change from which addresses payouts are taken",
		[]Role{Owner, Admin, Developer},
		[]Role{Owner, Operations}},
	{MakeKeys, "make and rotate API keys as far as their own rights go, revoke any, and change the secret of webhooks",
		[]Role{Owner, Admin, Developer},
		[]Role{Owner, Operations}},
	{CheckAccess, "approve or reject what others made of accounts, settings, addresses, keys, secrets and sender IDs",
		[]Role{Owner, Admin},
		[]Role{Owner, Approver}},
	{ReviewSenders, "approve and reject sender IDs",
		nil,
		[]Role{Owner, Operations, Compliance}},
	{MakePeople, "invite people, change their roles, disable and reset them; nobody gives a right that they lack",
		[]Role{Owner, Admin},
		[]Role{Owner, Operations}},
	{CheckPeople, "approve or reject what others made of people",
		[]Role{Owner, Admin},
		[]Role{Owner, Approver}},
	{UseSimulator, "use the simulator's handsets, faults and clock (development mode)",
		nil,
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support, SRE}},
}

// Can says whether a role of a site has a permission.
func Can(s Site, r Role, p Permission) bool {
	for _, g := range policy {
		if g.Permission == p {
			roles := g.Tenant
			if s == InstallationSite {
				roles = g.Installation
			}
			return slices.Contains(roles, r)
		}
	}
	return false
}

// MayViewAs reports whether an operator of a role has a permission on a tenant's own pages: the tenant's auditor has it, and
// so has the operator's role at the installation.
func (r Role) MayViewAs(p Permission) bool {
	return Can(InstallationSite, r, ViewAs) && Can(InstallationSite, r, p) && Can(TenantSite, Auditor, p)
}

// Covers says whether a role of a site has every permission of another one there, so that it may give that role.
func (r Role) Covers(s Site, other Role) bool {
	for _, g := range policy {
		if Can(s, other, g.Permission) && !Can(s, r, g.Permission) {
			return false
		}
	}
	return r.at(s) && other.at(s)
}

// Installation is the tenant of a membership at the installation itself.
const Installation = ""
