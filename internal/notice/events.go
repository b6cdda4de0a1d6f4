package notice

import (
	"slices"

	"github.com/makola/makola/internal/roles"
)

// Topic is a group of events for which a person chooses together. Stored.
type Topic string

// The topics.
const (
	Approvals Topic = "approvals"
	Money     Topic = "money"
	Providers Topic = "providers"
	Accounts  Topic = "accounts"
	System    Topic = "system"
	Security  Topic = "security"
)

// Choice is when a person is notified of a topic. Stored.
type Choice string

// The choices.
const (
	AtOnce Choice = "at_once"
	Daily  Choice = "daily"
	Never  Choice = "never"
)

// Topics returns the topics in the order of the page of choices.
func Topics() []Topic { return []Topic{Approvals, Money, Providers, Accounts, System, Security} }

// topicRule is the rule for the notices of a topic.
type topicRule struct {
	title string
	means string
	kept  bool // an owner cannot choose never; if a channel fails, another channel delivers the notices
	// atOnce lists the roles that are notified at once unless they choose otherwise. The others are notified daily.
	atOnce []roles.Role
}

var topicRules = map[Topic]topicRule{
	Approvals: {"Approvals", "Change requests and payouts that await your approval, and the outcome of your own requests", false,
		[]roles.Role{roles.Owner, roles.Admin, roles.Finance, roles.Signatory, roles.Operations, roles.Approver, roles.Compliance, roles.Treasury, roles.Developer, roles.SRE}},
	Money: {"Money", "Payments whose outcome is unknown, low floats, books that do not balance, old exceptions of statements, days that are not closed, finished batches", true,
		[]roles.Role{roles.Owner, roles.Admin, roles.Finance, roles.Operations, roles.Treasury, roles.SRE}},
	Providers: {"Providers", "Circuit breakers of providers that open or close", false, []roles.Role{roles.Operations, roles.SRE}},
	Accounts:  {"Account", "Webhooks that fail, decisions about sender IDs, API keys that expire", false, []roles.Role{roles.Owner, roles.Admin, roles.Developer}},
	System:    {"System", "Recoveries, old backups, certificates that expire", false, []roles.Role{roles.Owner, roles.Operations, roles.SRE}},
	Security:  {"Security", "Sign-ins from a new network, changes of your password, second factor and roles, new API keys, break-glass", true, nil},
}

// Title returns the name of a topic on pages, and a description of its events.
func (t Topic) Title() (title, means string) { return topicRules[t].title, topicRules[t].means }

// Kept reports whether an owner may not choose never.
func (t Topic) Kept() bool { return topicRules[t].kept }

// defaultOf returns the choice of a role that has chosen nothing. Facts about a person's own account are sent at
// once.
func defaultOf(t Topic, r roles.Role) Choice {
	if t == Security || slices.Contains(topicRules[t].atOnce, r) {
		return AtOnce
	}
	return Daily
}

// Event is a kind of fact. Values are stored.
type Event string

// The events.
const (
	RequestWaits    Event = "request.waits"
	RequestApproved Event = "request.approved"
	RequestRejected Event = "request.rejected"
	RequestExpired  Event = "request.expired"
	RequestFailed   Event = "request.failed"

	PaymentUnknown Event = "payment.unknown"
	FloatLow       Event = "float.low"
	BooksWrong     Event = "books.wrong"
	BatchFinished  Event = "batch.finished"
	ExceptionsOld  Event = "exceptions.old"
	DaysOpen       Event = "days.open"

	CircuitOpen   Event = "circuit.open"
	CircuitClosed Event = "circuit.closed"

	WebhooksFail  Event = "webhooks.fail"
	SenderDecided Event = "sender.decided"
	KeyEnds       Event = "key.ends"

	RecoveryBegan   Event = "recovery.began"
	BackupOld       Event = "backup.old"
	CertificateEnds Event = "certificate.ends"
	Undelivered     Event = "notice.undelivered"

	NewNetwork      Event = "person.network"
	FactorChanged   Event = "person.factor"
	PasswordChanged Event = "person.password"
	PhoneChanged    Event = "person.phone"
	RoleChanged     Event = "person.role"
	KeyChanged      Event = "key.changed"
	BreakGlass      Event = "break_glass"

	Test Event = "test"
)

// eventRule has the texts of an event and its readers.
type eventRule struct {
	topic Topic
	needs roles.Permission // permission of its readers at the place; not used if the notice names its only reader
	one   string           // title of a single fact
	many  string           // title of several facts, with %d; empty: the same title
	over  Event            // event of the condition's end; empty: no notice of the end
	path  string           // path of the page at the place
	own   bool             // about the reader's own account, so every role may see it
}

// eventRules is the table of all events with their topics, readers and texts.
var eventRules = map[Event]eventRule{
	RequestWaits:    {topic: Approvals, needs: roles.ReadChanges, one: "A change request awaits your approval", many: "%d change requests await your approval", path: "/acts"},
	RequestApproved: {topic: Approvals, needs: roles.ReadChanges, one: "Your change request was approved", many: "%d of your change requests were approved", path: "/acts"},
	RequestRejected: {topic: Approvals, needs: roles.ReadChanges, one: "Your change request was rejected", many: "%d of your change requests were rejected", path: "/acts"},
	RequestExpired:  {topic: Approvals, needs: roles.ReadChanges, one: "Your change request expired", many: "%d of your change requests expired", path: "/acts"},
	RequestFailed:   {topic: Approvals, needs: roles.ReadChanges, one: "Your change request failed", many: "%d of your change requests failed", path: "/acts"},

	PaymentUnknown: {topic: Money, needs: roles.ReadPayments, one: "The outcome of a payment is unknown", many: "The outcome of %d payments is unknown", path: "/stuck"},
	FloatLow:       {topic: Money, needs: roles.ReadTreasury, one: "The float at a provider covers less than a day", many: "The floats at %d providers cover less than a day", path: "/float"},
	BooksWrong:     {topic: Money, needs: roles.ReadChecks, one: "A book does not balance", many: "%d books do not balance", path: "/checks"},
	BatchFinished:  {topic: Money, needs: roles.ReadPayments, one: "A batch ended", many: "%d batches ended", path: "/batches"},

	ExceptionsOld: {topic: Money, needs: roles.ReadStatements, one: "Exceptions of a statement are older than three days", many: "Exceptions of %d statements are older than three days", path: "/exceptions"},
	DaysOpen:      {topic: Money, needs: roles.ReadTreasury, one: "A day of the books is not closed in time", many: "Days of %d books are not closed in time", path: "/days"},

	CircuitOpen: {topic: Providers, needs: roles.ReadProviders, one: "The circuit breaker of a provider opened", many: "The circuit breakers of %d operations opened", over: CircuitClosed,
		path: "/providers"},
	CircuitClosed: {topic: Providers, needs: roles.ReadProviders, one: "The circuit breaker of a provider closed", many: "The circuit breakers of %d operations closed", path: "/providers"},

	WebhooksFail:  {topic: Accounts, needs: roles.ReadWebhooks, one: "Webhooks have failed for an hour"},
	SenderDecided: {topic: Accounts, needs: roles.ReadMessages, one: "A sender ID was approved or rejected", many: "%d sender IDs were approved or rejected", path: "/messages"},
	KeyEnds:       {topic: Accounts, needs: roles.ReadAccess, one: "An API key expires soon", many: "%d API keys expire soon", path: "/access"},

	RecoveryBegan:   {topic: System, needs: roles.ReadChecks, one: "A recovery began: the database may have gone back in time"},
	BackupOld:       {topic: System, needs: roles.ReadChecks, one: "The last backup is old"},
	CertificateEnds: {topic: System, needs: roles.ReadChecks, one: "The server's certificate expires soon"},
	Undelivered: {topic: System, needs: roles.ReadChecks, one: "A message about money or security was not delivered by mail", many: "%d messages about money or security were not delivered by mail",
		path: "/notices"},

	NewNetwork:      {topic: Security, own: true, one: "You signed in from a new network", many: "You signed in from new networks %d times"},
	FactorChanged:   {topic: Security, own: true, one: "Your second factor or a recovery code was changed or used"},
	PasswordChanged: {topic: Security, own: true, one: "Your password was changed"},
	PhoneChanged:    {topic: Security, own: true, one: "Your phone number for notices was changed"},
	RoleChanged:     {topic: Security, needs: roles.ReadPeople, one: "A person or a role was changed", many: "People or roles were changed %d times", path: "/people"},
	KeyChanged:      {topic: Security, needs: roles.ReadAccess, one: "An API key or the webhook secret was changed", many: "API keys or the webhook secret were changed %d times"},
	BreakGlass:      {topic: Security, needs: roles.ReadAudit, one: "A command was run with --break-glass", many: "%d commands were run with --break-glass", path: "/audit"},

	Test: {topic: System, needs: roles.ReadHome, one: "Test notice"},
}
