// Package roles defines the roles of people, the permissions of each role, and the sites where they count. The code
// holds the policy as one table. docs/people.md prints it, and each route of the console names a permission of it.
package roles

import "slices"

// Site is one of the two parts of the console: the pages of a tenant, or the pages of the installation.
type Site string

// The sites.
const (
	TenantSite       Site = "tenant"
	InstallationSite Site = "installation"
)

// SiteOf returns the site of a tenant or of the Installation.
func SiteOf(tenant string) Site {
	if tenant == Installation {
		return InstallationSite
	}
	return TenantSite
}

// Role is the role of a person at a tenant or at the installation. It is stored, so a name never changes.
type Role string

// The roles. Owner, Support and Auditor exist at both sites.
const (
	Owner   Role = "owner"
	Support Role = "support"
	Auditor Role = "auditor"

	Admin     Role = "admin"
	Finance   Role = "finance"   // requests payouts
	Signatory Role = "signatory" // approves payouts
	Marketing Role = "marketing"
	Developer Role = "developer"

	Operations Role = "operations" // requests changes
	Approver   Role = "approver"   // approves changes
	Compliance Role = "compliance" // senders, blocks
	Treasury   Role = "treasury"   // float, reconciliation
	SRE        Role = "sre"        // queues and nodes, without access to money or phone numbers
)

// At returns the roles of a site, in the order of the printed table.
func At(s Site) []Role {
	if s == TenantSite {
		return []Role{Owner, Admin, Finance, Signatory, Marketing, Developer, Support, Auditor}
	}
	return []Role{Owner, Operations, Approver, Compliance, Treasury, Support, SRE, Auditor}
}

// about describes the roles in a few words, for the forms that give them.
var about = map[Role]string{
	Owner: "all permissions", Support: "finds payments for callers", Auditor: "reads, changes nothing",
	Admin: "people, keys, settings and payouts", Finance: "requests payouts", Signatory: "approves payouts", Marketing: "writes campaigns", Developer: "keys, webhooks and failed requests",
	Operations: "requests changes", Approver: "approves changes of others", Compliance: "reviews sender IDs, blocks accounts", Treasury: "floats, statements and days", SRE: "queues and nodes, no numbers",
}

// About describes the role in a few words.
func (r Role) About() string { return about[r] }

// ExistsAt reports whether the role exists at a site.
func (r Role) ExistsAt(s Site) bool { return slices.Contains(At(s), r) }

// strong lists the roles that request or approve changes of money, keys or roles, or that can stop money from moving.
var strong = map[Site][]Role{
	TenantSite:       {Owner, Admin, Finance, Signatory, Developer},
	InstallationSite: {Owner, Operations, Approver, Compliance, Treasury, Support, SRE}, // support sees the pages of accounts
}

// NeedsFactor reports whether people with the role must have a second factor in production.
func (r Role) NeedsFactor(s Site) bool { return slices.Contains(strong[s], r) }

// Permission is one permission of a role.
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
	NotePayments   Permission = "payments.note"
	ReadMessages   Permission = "messages.read"
	ReadRequests   Permission = "requests.read"
	ReadBalances   Permission = "balances.read"
	ReadAudit      Permission = "audit.read"
	ReadTenants    Permission = "tenants.read"
	ViewAs         Permission = "tenants.view_as"
	ReadProviders  Permission = "providers.read"
	ReadTreasury   Permission = "treasury.read"
	ReadChecks     Permission = "checks.read"
	ReadChanges    Permission = "changes.read"
	RequestChanges Permission = "changes.request"
	ApproveChanges Permission = "changes.approve"
	RequestPayouts Permission = "payouts.request"
	ApprovePayouts Permission = "payouts.approve"
	ChangeMoney    Permission = "money.change"
	ApproveMoney   Permission = "money.approve"
	ChangePolicy   Permission = "policy.change"
	ApprovePolicy  Permission = "policy.approve"
	ChangeTreasury Permission = "treasury.change"

	ReadStatements   Permission = "statements.read"
	ImportStatements Permission = "statements.import"

	SwitchProviders Permission = "providers.switch"
	SendCampaigns   Permission = "campaigns.send"
	StopCampaigns   Permission = "campaigns.stop"

	UseSimulator Permission = "simulator.use"

	ReadAccess      Permission = "access.read"
	ReadSecrets     Permission = "secrets.read"
	ReadPeople      Permission = "people.read"
	ChangeTenants   Permission = "tenants.change"
	BlockTenants    Permission = "tenants.block"
	ChangeSettings  Permission = "settings.change"
	ChangeAddresses Permission = "addresses.change"
	ChangeKeys      Permission = "keys.change"
	ApproveAccess   Permission = "access.approve"
	ReviewSenders   Permission = "senders.review"
	ChangePeople    Permission = "people.change"
	ApprovePeople   Permission = "people.approve"
)

// Grant is one line of the policy: a permission, and the roles of each site that have it.
type Grant struct {
	Permission   Permission
	Means        string // completes the sentence "may ..."
	Tenant       []Role
	Installation []Role
}

// Policy returns the table of roles and permissions. A permission that is not in the table is refused.
func Policy() []Grant { return slices.Clone(policy) }

var policy = []Grant{
	{ReadHome, "see the first page",
		[]Role{Owner, Admin, Finance, Signatory, Marketing, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support, SRE, Auditor}},
	{ReadPayments, "see payments and their status",
		[]Role{Owner, Admin, Finance, Signatory, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support, Auditor}},
	{ExportPayments, "see totals and download lists as files",
		[]Role{Owner, Admin, Finance, Signatory, Auditor},
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadNumbers, "see full phone and account numbers, message texts and webhook bodies",
		[]Role{Owner, Admin, Marketing},
		[]Role{Owner, Operations, Approver, Compliance}},
	{RevealNumbers, "see the full number and the name of one payment (recorded in the audit log)",
		[]Role{Owner, Admin, Finance, Signatory, Support},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support}},
	{SearchNumbers, "search payments by phone number, account or name (recorded in the audit log)",
		[]Role{Owner, Admin, Finance, Signatory, Support},
		[]Role{Owner, Operations, Compliance, Support}},
	{ReadExchanges, "see requests to providers and their responses",
		nil,
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadTransfers, "see the ledger transfers of a payment",
		[]Role{Owner, Admin, Finance, Signatory, Auditor},
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadWebhooks, "see webhooks and their delivery attempts",
		[]Role{Owner, Admin, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Support, Auditor}},
	{ReplayWebhooks, "send a webhook again",
		[]Role{Owner, Admin, Developer},
		[]Role{Owner, Operations}},
	{NotePayments, "add notes to payments, and take charge of payments that need attention",
		nil,
		[]Role{Owner, Operations, Compliance, Treasury, Support}},
	{ReadMessages, "see campaigns and the status of their messages",
		[]Role{Owner, Admin, Marketing, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Support, Auditor}},
	{ReadRequests, "see API requests that were refused or failed",
		[]Role{Owner, Admin, Developer, Support, Auditor},
		[]Role{Owner, Operations, Approver, Support, SRE, Auditor}},
	{ReadBalances, "see balances",
		[]Role{Owner, Admin, Finance, Signatory, Auditor},
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadAudit, "see the audit log",
		[]Role{Owner, Admin, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Auditor}},
	{ReadTenants, "see accounts and their settings",
		nil,
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support, Auditor}},
	{ViewAs, "see the pages of an account, limited to permissions that both its auditor and the operator's role have",
		nil,
		[]Role{Owner, Operations, Support}},
	{ReadProviders, "see the state of providers",
		nil,
		[]Role{Owner, Operations, Approver, Treasury, Support, SRE, Auditor}},
	{ReadTreasury, "see the balances at providers",
		nil,
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ReadChecks, "see the last check of the books and its findings",
		nil,
		[]Role{Owner, Operations, Approver, Treasury, SRE, Auditor}},
	{ReadChanges, "see change requests and their outcome",
		[]Role{Owner, Admin, Finance, Signatory, Marketing, Developer, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Treasury, SRE, Auditor}},
	{RequestChanges, "withdraw and complete their own change requests; the subject of a request needs its own permission below",
		[]Role{Owner, Admin, Finance, Marketing, Developer},
		[]Role{Owner, Operations, Compliance, Treasury, SRE}},
	{ApproveChanges, "approve or reject change requests of others, for the subjects permitted below",
		[]Role{Owner, Admin, Signatory},
		[]Role{Owner, Approver, Compliance}},
	{RequestPayouts, "send payouts to wallets and bank accounts from a page",
		[]Role{Owner, Admin, Finance},
		nil},
	{ApprovePayouts, "approve or reject payouts of others that await approval",
		[]Role{Owner, Admin, Signatory},
		nil},
	{ChangeMoney, "credit and correct wallets, with approval where the policy requires it",
		nil,
		[]Role{Owner, Operations}},
	{ApproveMoney, "approve or reject credits and corrections of others",
		nil,
		[]Role{Owner, Approver}},
	{ChangeTreasury, "book deposits at providers, manage bank accounts, close days, set unknown outcomes from statements, and clear suspense, with approval where the policy requires it",
		nil,
		[]Role{Owner, Operations, Treasury}},
	{ReadStatements, "see statements of providers and banks, and their differences from our payments",
		nil,
		[]Role{Owner, Operations, Approver, Treasury, Auditor}},
	{ImportStatements, "import statements of providers and banks, and take charge of exceptions",
		nil,
		[]Role{Owner, Operations, Treasury}},
	{SwitchProviders, "pause and resume providers, with approval where the policy requires it",
		nil,
		[]Role{Owner, Operations, SRE}},
	{SendCampaigns, "write campaigns on a page and send them, with approval where the policy requires it",
		[]Role{Owner, Admin, Marketing},
		nil},
	{StopCampaigns, "stop a campaign: unsent messages fail and their credits are returned",
		[]Role{Owner, Admin},
		[]Role{Owner, Operations, Compliance}},
	{ChangePolicy, "change how many approvers a change needs, with approval where the policy requires it",
		[]Role{Owner},
		[]Role{Owner}},
	{ApprovePolicy, "approve or reject changes of the approval policy",
		[]Role{Owner, Admin},
		[]Role{Owner, Approver}},
	{ReadAccess, "see API keys (never the key itself), payout addresses and settings",
		[]Role{Owner, Admin, Developer, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Auditor}},
	{ReadSecrets, "see the secret that signs webhooks (recorded in the audit log)",
		[]Role{Owner, Admin, Developer},
		[]Role{Owner, Operations}},
	{ReadPeople, "see people and their roles",
		[]Role{Owner, Admin, Auditor},
		[]Role{Owner, Operations, Approver, Compliance, Auditor}},
	{ChangeTenants, "create accounts and change their settings and limits",
		nil,
		[]Role{Owner, Operations}},
	{BlockTenants, "block and unblock an account",
		nil,
		[]Role{Owner, Operations, Compliance}},
	{ChangeSettings, "change the account's own settings",
		[]Role{Owner, Admin},
		nil},
	{ChangeAddresses, "change the addresses from which payouts are accepted",
		[]Role{Owner, Admin, Developer},
		[]Role{Owner, Operations}},
	{ChangeKeys, "create and rotate API keys with no more rights than their own, revoke any key, and change the webhook secret",
		[]Role{Owner, Admin, Developer},
		[]Role{Owner, Operations}},
	{ApproveAccess, "approve or reject changes of accounts, settings, addresses, keys, secrets and sender IDs",
		[]Role{Owner, Admin},
		[]Role{Owner, Approver}},
	{ReviewSenders, "approve and reject sender IDs",
		nil,
		[]Role{Owner, Operations, Compliance}},
	{ChangePeople, "invite people, change their roles, disable and reset them, without giving permissions that they lack themselves",
		[]Role{Owner, Admin},
		[]Role{Owner, Operations}},
	{ApprovePeople, "approve or reject changes of people and roles",
		[]Role{Owner, Admin},
		[]Role{Owner, Approver}},
	{UseSimulator, "use the simulator's handsets, faults and clock (development mode)",
		nil,
		[]Role{Owner, Operations, Approver, Compliance, Treasury, Support, SRE}},
}

// Can reports whether a role at a site has a permission.
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

// MayViewAs reports whether an operator with the role has a permission on the pages of a tenant. Both the operator's role at
// the installation and the tenant's auditor must have it.
func (r Role) MayViewAs(p Permission) bool {
	return Can(InstallationSite, r, ViewAs) && Can(InstallationSite, r, p) && Can(TenantSite, Auditor, p)
}

// Covers reports whether a role at a site has every permission of another role there. Only then may it give that role.
func (r Role) Covers(s Site, other Role) bool {
	for _, g := range policy {
		if Can(s, other, g.Permission) && !Can(s, r, g.Permission) {
			return false
		}
	}
	return r.ExistsAt(s) && other.ExistsAt(s)
}

// Installation takes the place of a tenant for roles at the installation itself.
const Installation = ""
