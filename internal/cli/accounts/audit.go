package accounts

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/problem"
)

// Audit holds the commands of makola audit.
type Audit struct {
	List   auditList   `cmd:"" help:"List entries of the audit log with what they changed, newest first."`
	Verify auditVerify `cmd:"" help:"Verify the chain of the audit log, and report every altered, missing or inserted entry. Needs the master key."`
	Export auditExport `cmd:"" help:"Print the whole audit log with its hashes, oldest first, one JSON object a line. The export is logged."`
}

type auditList struct {
	frame.Common
	Tenant string      `name:"account" aliases:"tenant" placeholder:"ID" help:"Account that the entries are about, by id or unique name."`
	Actor  string      `name:"actor" help:"Actor of the entries, such as cli:ama."`
	Action string      `name:"action" help:"Action of the entries, such as tenant.set."`
	Before string      `name:"before" placeholder:"ID" help:"List entries older than the entry with this id."`
	Limit  frame.Count `name:"limit" default:"100" help:"Maximum number of rows."`
}

func auditColumns(names map[string]string) []frame.Column[audit.Entry] {
	return []frame.Column[audit.Entry]{
		{Name: "id", Value: func(a audit.Entry) any { return a.ID }},
		{Name: "at", Value: func(a audit.Entry) any { return a.At }},
		{Name: "actor", Value: func(a audit.Entry) any { return a.Actor }},
		{Name: "person", Value: func(a audit.Entry) any { return a.Person }},
		{Name: "origin", Value: func(a audit.Entry) any { return a.Origin }},
		{Name: "action", Value: func(a audit.Entry) any { return a.Action }},
		{Name: "tenant", Value: func(a audit.Entry) any { return a.Tenant }},
		{Name: "customer", Value: func(a audit.Entry) any { return names[a.Tenant] }},
		{Name: "subject", Value: func(a audit.Entry) any { return a.Subject }},
		{Name: "changes", Value: func(a audit.Entry) any { return changesOf(a) }},
		{Name: "reason", Value: func(a audit.Entry) any { return a.Reason }},
		{Name: "details", Value: func(a audit.Entry) any {
			details, _ := a.Details.(json.RawMessage)
			return details
		}},
		{Name: "link", Value: func(a audit.Entry) any { return a.Link }},
	}
}

// changesOf returns the changes of an entry, one text for each.
func changesOf(a audit.Entry) (texts []string) {
	for _, c := range a.Changes() {
		texts = append(texts, c.What+": "+frame.Cell(c.Before)+" → "+frame.Cell(c.After)+";")
	}
	return texts
}

// Run lists the log.
func (c *auditList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		entries, err := o.Log.List(e.Ctx, audit.Filter{
			Tenant: c.Tenant, Actor: c.Actor, Action: c.Action, Before: c.Before, Limit: int(c.Limit),
		})
		if err != nil {
			return err
		}
		var ids []string
		for _, a := range entries {
			ids = append(ids, a.Tenant)
		}
		names, err := o.Named(e.Ctx, ids)
		if err != nil {
			return err
		}
		columns := frame.Narrow(c.Output, auditColumns(names), "at", "actor", "action", "customer", "changes", "reason")
		return frame.PrintAll(e.Stdout, c.Output, columns, entries)
	})
}

type auditVerify struct {
	frame.Common
	Head string `name:"head" placeholder:"NUMBER:HASH" help:"Head of the chain that you stored elsewhere, such as a head from the server's log. Fails if the chain does not contain it."`
}

// Run verifies the log. It prints every fault. The command fails if there is one.
func (c *auditVerify) Run(e *frame.Env) error {
	kept, err := headOf(c.Head)
	if err != nil {
		return err
	}
	return c.With(e, func(o *frame.Opened) error {
		log, err := c.keyed(e, o)
		if err != nil {
			return err
		}
		v, err := log.Verify(e.Ctx, kept)
		if err != nil {
			return err
		}
		if err := frame.PrintOne(e.Stdout, c.Output, []frame.Column[audit.Verified]{
			{Name: "at", Value: func(v audit.Verified) any { return v.At }},
			{Name: "linked", Value: func(v audit.Verified) any { return v.Links }},
			{Name: "unlinked", Value: func(v audit.Verified) any { return v.Unlinked }},
			{Name: "linked_late", Value: func(v audit.Verified) any { return v.Late }},
			{Name: "keyed_from", Value: func(v audit.Verified) any { return v.Keyed }},
			{Name: "unchecked", Value: func(v audit.Verified) any { return v.Unchecked }},
			{Name: "head", Value: func(v audit.Verified) any { return headText(v.Head) }},
			{Name: "ok", Value: func(v audit.Verified) any { return v.OK() }},
			{Name: "faults", Value: func(v audit.Verified) any { return v.FaultCount }},
			{Name: "problems", Value: func(v audit.Verified) any { return faultTexts(v.Faults) }},
		}, v); err != nil {
			return err
		}
		if v.FaultCount == 0 && v.Unchecked > 0 {
			return problem.New(problem.Invalid, "master_key", fmt.Sprintf("%d links need the master key and were not checked. Set %s or %s as for the server",
				v.Unchecked, config.EnvMasterKey, config.EnvMasterKeyFile))
		}
		if !v.OK() {
			return problem.New(problem.Internal, "audit_log_changed", fmt.Sprintf("The audit log was altered: %d faults. See docs/runbooks/audit-log-changed.md", v.FaultCount))
		}
		return nil
	})
}

// keyed sets the master key of the log. Without a key the command checks the numbers of entries, and the links from
// before the chain had a key. It refuses a master key that differs from the servers' key.
func (c *auditVerify) keyed(e *frame.Env, o *frame.Opened) (*audit.Log, error) {
	set, err := frame.MasterKey()
	if err != nil {
		return nil, frame.Unusable(err)
	}
	secret, err := frame.StoredSecret(c.Storage)
	if err == nil {
		err = o.Installation.CheckSecret(e.Ctx, secret)
	}
	switch {
	case err == nil:
		return o.Log.Keyed(secret), nil
	case set.Empty():
		fmt.Fprintln(e.Stderr, "makola: No master key on this machine: links that need it are not checked")
		return o.Log, nil
	case errors.Is(err, installation.ErrWrongSecret):
		return nil, frame.Unusable(err)
	default:
		return nil, err
	}
}

func headText(h audit.Head) string {
	if h.Number == 0 {
		return ""
	}
	return strconv.FormatInt(h.Number, 10) + ":" + h.Hash
}

// headOf parses the output of headText.
func headOf(text string) (h audit.Head, err error) {
	if text == "" {
		return h, nil
	}
	number, hash, _ := strings.Cut(text, ":")
	if h.Number, err = strconv.ParseInt(number, 10, 64); err != nil || h.Number < 1 || len(hash) != 64 {
		return audit.Head{}, problem.Field("head", "must be a number, a colon and 64 hexadecimal digits, as audit verify prints it")
	}
	h.Hash = strings.ToLower(hash)
	return h, nil
}

func faultTexts(faults []audit.Fault) (texts []string) {
	for _, f := range faults {
		place := "outside the chain"
		if f.Number > 0 {
			place = "link " + strconv.FormatInt(f.Number, 10)
		}
		if f.Entry != "" {
			place += ", entry " + f.Entry
		}
		texts = append(texts, string(f.Kind)+": "+place+": "+f.What)
	}
	return texts
}

type auditExport struct {
	config.Storage
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Run exports the log. The audit entry of the export is committed before the first line is printed.
func (c *auditExport) Run(e *frame.Env) error {
	common := frame.Common{Storage: c.Storage}
	return common.With(e, func(o *frame.Opened) error {
		err := o.Change(e.Ctx, audit.Entry{Action: "audit.export", Subject: "audit_log", Reason: c.Reason}, func(*db.Tx) (any, error) { return nil, nil })
		if err != nil {
			return err
		}
		out := json.NewEncoder(e.Stdout)
		return o.Log.Export(e.Ctx, func(l audit.Linked) error { return out.Encode(exportOf(l)) })
	})
}

// exported is a line of an export.
type exported struct {
	Link     int64      `json:"link,omitempty"`
	Hash     string     `json:"hash,omitempty"`
	LinkedAt *time.Time `json:"linked_at,omitempty"`
	ID       string     `json:"id"`
	At       time.Time  `json:"at"`
	Actor    string     `json:"actor"`
	Person   string     `json:"person"`
	Origin   string     `json:"origin"`
	Action   string     `json:"action"`
	Tenant   string     `json:"tenant"`
	Subject  string     `json:"subject"`
	Reason   string     `json:"reason"`
	Details  string     `json:"details"` // the text that was hashed
}

func exportOf(l audit.Linked) exported {
	details, _ := l.Details.(json.RawMessage)
	x := exported{Link: l.Link, Hash: l.Hash, ID: l.ID, At: l.At, Actor: l.Actor, Person: l.Person, Origin: l.Origin, Action: l.Action,
		Tenant: l.Tenant, Subject: l.Subject, Reason: l.Reason, Details: string(details)}
	if !l.LinkedAt.IsZero() {
		x.LinkedAt = &l.LinkedAt
	}
	return x
}
