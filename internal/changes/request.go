package changes

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Lasts is how long a request waits for its approvers.
const Lasts = 24 * time.Hour

// State is the state of a request. Its values are stored.
type State string

// The states. Every state except Waiting is final.
const (
	Waiting   State = "waiting"
	Done      State = "done"
	Rejected  State = "rejected"
	Withdrawn State = "withdrawn" // the requester withdrew it
	Expired   State = "expired"
	Failed    State = "failed" // its subject refused the change
)

// Request is a change request.
type Request struct {
	ID            string // id of the form: a form that is sent twice makes one request
	Kind          string // kind of the change, such as "wallet.fund"
	Tenant        string // tenant that the change concerns; empty: the installation
	Place         string // place whose people request and approve it: a tenant's id, or identity.Installation
	Payload       json.RawMessage
	Sentence      string // the payload for people
	Reason        string
	Requester     string   // id of the person who requested, or who made the requesting Key; empty if that person is not known
	RequesterName string   // e-mail address of the requester, or name of the key
	Key           string   // id of the API key that requested; empty: a person requested
	Member        string   // free text of an older key: a person whom it may name cannot approve
	Barred        []string // ids of further people who may not approve: the people who created or rotated the Key, and its member
	Origin        string   // address of the requester
	Digest        string
	Amount        money.Pesewas // amount that the change moves; 0: none
	Needs         int           // approvers
	State         State
	MadeAt        time.Time
	ExpiresAt     time.Time
	EndedAt       time.Time // zero: the request waits
	Note          string    // reason of the rejection or failure
	Checks        []Check
	// Refused is the reason if the subject refused the change in this call. It is not stored, but Note may have
	// the same reason.
	Refused *problem.Error
	// Secret is shown once to the requester, and Code once to the approver. They are set when the requester has just
	// applied the request without an approver. They are never stored here.
	Secret, Code string
	// Facts are the facts that the requester saw.
	Facts Facts
	// Actor is the person who applies the request. Shown is the content of the approver's page. Both are set for
	// Apply and Finish only.
	Actor, Shown string
	// Made is the id of an object that the change has created, such as the payment of a transfer.
	Made string
}

// Check is an approval of a request.
type Check struct {
	Person, Name string
	At           time.Time
	Note         string // remark for others: who invited the approver, and whether approver and requester share a network or browser
	// Lapsed marks an approval that no longer counts: its author lost the permission, was reset, or got the role
	// after the request was made. Counted sets Lapsed while the request waits.
	Lapsed bool
}

// Approvals returns how many of a request's approvals count.
func (a Request) Approvals() (n int) {
	for _, c := range a.Checks {
		if !c.Lapsed {
			n++
		}
	}
	return n
}

// own reports whether a person made the request, or has or may have the key that made it.
func (a Request) own(p identity.Person) bool {
	return p.ID == a.Requester || slices.Contains(a.Barred, p.ID) || identity.Named(a.Member, p)
}

// Rule holds the permissions to request and to approve a kind.
type Rule struct {
	Make, Check roles.Permission
	// Light requests need no approver unless a line of the policy requires one.
	Light bool
	// ByKey reports that API keys may request the kind. Such requests need no approver unless a line of the policy
	// requires one.
	ByKey bool
	// Lasts is how long a request of the kind waits for its approvers. Zero means the constant Lasts.
	Lasts time.Duration
}

// lasts is how long a request waits for its approvers.
func (r Rule) lasts() time.Duration { return cmp.Or(r.Lasts, Lasts) }

// By is the person who requests or decides, and the address of the request.
type By struct {
	Visitor identity.Visitor
	// Machine names the operating system's user if a command names no person. It is for the audit log. Such a request
	// needs no approver, and its Requester is identity.Machine. The command line decides whether a command needs a
	// person.
	Machine string
	Origin  string // an IP address, or the machine
	Place   string // place of the request or decision: a tenant's id, or identity.Installation
}

// id returns the id under which the requester is stored.
func (by By) id() string {
	if by.Machine != "" {
		return identity.Machine
	}
	return by.Visitor.Person.ID
}

// name returns the requester's name for people.
func (by By) name() string {
	return cmp.Or(by.Machine, by.Visitor.Person.Email)
}

// role returns the requester's role at the place.
func (by By) role() roles.Role {
	if by.Machine != "" {
		return roles.Owner
	}
	return by.Visitor.Role(by.Place)
}

// person returns the id of the person who made the request. It is empty if no person did.
func (a Request) person() string {
	if a.byMachine() {
		return ""
	}
	return a.Requester
}

// reference returns the requester's own reference, such as the number of a bank slip. It is empty if the kind has
// none.
func (a Request) reference() string {
	var p struct{ Reference string }
	_ = json.Unmarshal(a.Payload, &p) // a payload of another form has no such value
	return p.Reference
}

// largestPayout returns the amount of a refund, or of the largest payout of a batch, because the policy's line for
// payouts also applies to them. It is zero for other kinds.
func (a Request) largestPayout() money.Pesewas {
	if a.Kind == KindRefund {
		return a.Amount
	}
	var p struct{ Largest money.Pesewas }
	_ = json.Unmarshal(a.Payload, &p) // a payload of another form has no such value
	return p.Largest
}

// About returns the e-mail address of the person whom a request changes. is is false for a request of another kind.
func About(a Request) (email string, is bool) {
	var p struct{ Email string }
	_ = json.Unmarshal(a.Payload, &p) // a payload of another form has no such value
	return p.Email, strings.HasPrefix(a.Kind, "people.") && p.Email != ""
}

// byMachine reports whether a command without a person made the request.
func (a Request) byMachine() bool { return a.Requester == identity.Machine }

// digest returns a hash of everything that an approver is shown. Each member is hashed with its length before it.
func (a Request) digest() string {
	sum := sha256.New()
	members := []string{"makola act 1", a.ID, a.Kind, a.Tenant, string(a.Payload), a.Sentence, a.Reason, a.Requester, a.RequesterName, a.Origin, a.MadeAt.UTC().Format(time.RFC3339Nano), a.Amount.String(), strconv.Itoa(a.Needs)}
	if a.Place != roles.Installation { // requests of the installation are hashed as in the previous release
		members[0] = "makola act 2"
		members = append(members, a.Place)
	}
	if a.Key != "" {
		members[0] = "makola act 3"
		members = append(members, a.Key, a.Member)
	}
	if len(a.Barred) > 0 {
		members[0] = "makola act 4"
		members = append(members, strings.Join(a.Barred, " "))
	}
	if facts := a.Facts.text(); facts != "" {
		members[0] = "makola act 5"
		members = append(members, facts)
	}
	for _, s := range members {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		sum.Write(size[:])
		sum.Write([]byte(s))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// same reports whether two requests are for the same change. It ignores their times.
func (a Request) same(b Request) bool {
	return a.Kind == b.Kind && a.Tenant == b.Tenant && a.Place == b.Place && string(a.Payload) == string(b.Payload) && a.Reason == b.Reason && a.Requester == b.Requester
}
