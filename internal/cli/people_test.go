package cli

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/identity"
)

// TestPeople_createdInvitedDisabled: the audit log has each command with its reason, and a link signs its person in once.
func TestPeople_createdInvitedDisabled(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		tenant := w.object("tenant", "create", "Adom", "--mode", "live")["id"].(string)
		people := identity.New(w.db, clock.Real(), audit.New(w.db, clock.Real()), identity.Options{})
		token := func(made map[string]any) string {
			t.Helper()
			u, err := url.Parse(made["link"].(string))
			if err != nil || u.Host != "pay.example.com" || u.Path != "/first" {
				t.Fatalf("%v, %v", made, err)
			}
			return u.Query().Get("t")
		}
		code := func(made map[string]any) string { return made["code"].(string) }
		const at = "--public-url=https://pay.example.com/"
		made := w.object("people", "create", "--email", "Ama@example.com", "--name", "Ama Owusu", "--role", "owner", at)
		if _, err := people.Accept(t.Context(), token(made), code(made), "correct horse battery", "", netip.Addr{}); err != nil {
			t.Fatal(err)
		}
		w.run(exitConflict, "people", "create", "--email", "ama@example.com", "--role", "owner")
		w.run(exitConflict, "people", "create", "--email", "ama@example.com", "--role", "owner", "--tenant", "Adom")
		w.run(exitUsage, "people", "create", "--email", "kofi@example.com", "--role", "king")
		w.run(exitNotFound, "people", "invite", "kofi@example.com", "--role", "finance", "--tenant", "nobody", "--reason", "x")
		if made := w.object("people", "invite", "ama@example.com", "--role", "finance", "--tenant", "Adom", "--reason", "helps out"); made["link"] != "" {
			t.Fatalf("a person with a password got a link: %v", made)
		}
		kofi := w.object("people", "invite", "kofi@example.com", "--role", "support", "--reason", "new", at)
		w.run(exitForbidden, "people", "disable", "ama@example.com", "--reason", "x")
		w.run(exitForbidden, "people", "role", "ama@example.com", "--role", "none", "--reason", "x")
		w.run(exitOK, "people", "role", "kofi@example.com", "--role", "owner", "--reason", "promoted")
		w.run(exitForbidden, "people", "disable", "ama@example.com", "--reason", "x") // the other owner has never signed in
		if _, err := people.Accept(t.Context(), token(kofi), code(kofi), "correct horse battery", "", netip.Addr{}); err != nil {
			t.Fatal(err)
		}
		w.run(exitOK, "people", "disable", "ama@example.com", "--reason", "left")
		if _, errs := w.run(exitForbidden, "people", "disable", "kofi@example.com", "--reason", "x"); !strings.Contains(errs, "last owner") {
			t.Fatal(errs)
		}
		w.run(exitOK, "people", "enable", "ama@example.com", "--reason", "is back")
		reset := w.object("people", "reset", "ama@example.com", "--reason", "lost the phone", at)
		list := w.list("people", "list")
		if len(list) != 2 || list[0]["email"] != "ama@example.com" || list[0]["password"] != false || list[0]["roles"].([]any)[1] != "finance of Adom" || list[1]["roles"].([]any)[0] != "owner of the installation" {
			t.Fatalf("%v", list)
		}
		if _, err := people.Accept(t.Context(), token(reset), code(reset), "another green market stall", "", netip.Addr{}); err != nil {
			t.Fatal(err)
		}
		var acts []string
		for _, a := range w.list("audit", "list") {
			if action := a["action"].(string); strings.HasPrefix(action, "people.") {
				acts = append(acts, action+" "+a["reason"].(string)+" "+a["changes"].([]any)[0].(string))
			}
			if strings.Contains(fmt.Sprint(a), token(reset)) || strings.Contains(fmt.Sprint(a), code(reset)) {
				t.Error("a link or its code is in the audit log")
			}
		}
		want := []string{"people.reset lost the phone password and second factor of ama@example.com: as they were → none;", "people.enable is back ama@example.com may sign in: no → yes;", "people.disable left ama@example.com may sign in: yes → no;",
			"people.role promoted role at the installation of kofi@example.com: support → owner;", "people.invite new role at the installation of kofi@example.com: - → support;",
			"people.invite helps out role at the customer of ama@example.com: - → finance;", "people.invite none given role at the installation of ama@example.com: - → owner;"}
		if strings.Join(acts, "\n") != strings.Join(want, "\n") {
			t.Fatal(strings.Join(acts, "\n"))
		}
		if log := w.list("audit", "list", "--tenant", tenant, "--action", "people.invite"); len(log) != 1 {
			t.Fatalf("%v", log)
		}
	})
}
