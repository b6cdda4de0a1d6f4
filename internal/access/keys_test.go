package access

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// successor mints the key with which Rotate replaces an old one. It has the same tenant, member, rights and lifetime,
// but a new text.
func successor(a *Access, old Key) (Minted, error) {
	n := NewKey{Tenant: old.Tenant, Live: strings.HasPrefix(old.Hint, livePrefix), Member: old.Member, Person: old.Person, Label: old.Label, Scopes: old.Scopes, Daily: old.Daily}
	if !old.ExpiresAt.IsZero() {
		n.Expiry = old.ExpiresAt.Sub(old.CreatedAt)
	}
	return a.Mint(n)
}

// makeKey mints and stores a key.
func makeKey(t *testing.T, d *db.DB, a *Access, n NewKey) Minted {
	t.Helper()
	m, err := a.Mint(n)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d, func(tx *db.Tx) error { a.CreateKey(tx, m); return nil })
	return m
}

// works reports whether a key is accepted. It fails the test if a refusal has another kind or text than the usual
// one.
func works(t *testing.T, a *Access, text string) bool {
	t.Helper()
	_, err := a.Authenticate(t.Context(), text)
	if err == nil {
		return true
	}
	e := problem.From(err)
	if e.Kind != problem.Unauthenticated || e.Message != "Invalid API key" {
		t.Fatalf("the refusal is %v", err)
	}
	return false
}

func TestKey_belongsToATenantAndShownOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, _ := other(d, start)
		m := makeKey(t, d, a, NewKey{Tenant: "t1", Live: true, Member: "Ama", Scopes: []Scope{Payout, Read}})
		if !strings.HasPrefix(m.Text, "mk_live_") || len(m.Text) != 57 {
			t.Fatalf("the key has %d characters", len(m.Text))
		}
		c, err := a.Authenticate(t.Context(), m.Text)
		if err != nil || c.Tenant != "t1" || c.Member != "Ama" || c.KeyID != m.Key.ID {
			t.Fatalf("%+v, %v", c, err)
		}
		if !c.Can(Read) || !c.Can(Payout) || c.Can(Collect) || c.Can(All) {
			t.Fatalf("scopes are %v", c.Scopes)
		}
		all, err := a.Authenticate(t.Context(), makeKey(t, d, a, NewKey{Tenant: "t1"}).Text)
		if err != nil || !all.Can(Contacts) || !all.Can(Payout) {
			t.Fatalf("a key without scopes: %+v, %v", all, err)
		}
		var stored string
		read(t, d, `SELECT hash || id || hint || member || scopes FROM api_keys WHERE tenant = 't1' AND member = 'Ama'`, &stored)
		if strings.Contains(stored, m.Text[12:len(m.Text)-4]) || strings.Contains(stored, m.Text) {
			t.Fatal("the database has the key itself")
		}
		keys, err := a.Keys(t.Context(), "t1")
		if err != nil || len(keys) != 2 || keys[0].Hint != m.Text[:12]+"..."+m.Text[53:] {
			t.Fatalf("%+v, %v", keys, err)
		}
	})
}

func TestKey_unknownIsRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, _ := other(d, start)
		m := makeKey(t, d, a, NewKey{Tenant: "t1"})
		never, err := a.Mint(NewKey{Tenant: "t1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			"", "x", never.Text, m.Text + " ", m.Text[:56], strings.ToUpper(m.Text), strings.Replace(m.Text, "test", "live", 1),
			strings.Repeat("a", 1<<16), m.Key.ID, hashKey(m.Text), m.Key.Hint,
		} {
			if works(t, a, text) {
				t.Errorf("%.80q works", text)
			}
		}
		if !works(t, a, m.Text) {
			t.Error("the key itself does not work")
		}
	})
}

func TestKey_mistypedCostsNoQuery(t *testing.T) {
	a, _ := other(nil, start) // a query would panic
	m, err := a.Mint(NewKey{Tenant: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Text {
		for _, c := range []byte("0aZ") {
			if m.Text[i] == c {
				continue
			}
			if works(t, a, m.Text[:i]+string(c)+m.Text[i+1:]) {
				t.Fatalf("character %d changed to %c was taken", i, c)
			}
		}
	}
}

func TestRevoke_reachesNodesInASecond(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		here, _ := other(d, start)
		there, thereClock := other(d, start)
		m := makeKey(t, d, here, NewKey{Tenant: "t1"})
		if !works(t, here, m.Text) || !works(t, there, m.Text) {
			t.Fatal("the key does not work")
		}
		thereClock.Advance(400 * time.Millisecond)
		for range 2 { // the second time changes nothing
			write(t, d, func(tx *db.Tx) error { _, err := here.RevokeKey(tx, "t1", m.Key.ID); return err })
		}
		if works(t, here, m.Text) {
			t.Error("the node that revoked still takes the key")
		}
		thereClock.Advance(Freshness - 400*time.Millisecond)
		if works(t, there, m.Text) {
			t.Error("after a second the other node still takes the key")
		}
		keys, err := here.Keys(t.Context(), "t1")
		if err != nil || len(keys) != 1 || keys[0].State(start) != "revoked" || !keys[0].RevokedAt.Equal(start) {
			t.Fatalf("%+v, %v", keys, err)
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error { _, err := here.RevokeKey(tx, "t2", m.Key.ID); return err })
		if !problem.Is(err, problem.NotFound) {
			t.Fatalf("another tenant's key: %v", err)
		}
	})
}

func TestKey_expiresExactly(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, c := other(d, start)
		m := makeKey(t, d, a, NewKey{Tenant: "t1", Expiry: time.Hour})
		c.Advance(time.Hour - time.Microsecond)
		if !works(t, a, m.Text) {
			t.Fatal("expired early")
		}
		c.Advance(time.Microsecond) // the row is still cached
		if works(t, a, m.Text) {
			t.Fatal("works after its time")
		}
	})
}

func TestRotate_oldKeyWorksInTheOverlap(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, c := other(d, start)
		first := makeKey(t, d, a, NewKey{Tenant: "t1", Member: "Ama", Scopes: []Scope{Read}, Live: true})
		if !works(t, a, first.Text) {
			t.Fatal("the key does not work")
		}
		second, err := successor(a, first.Key)
		if err != nil {
			t.Fatal(err)
		}
		rotate := func(tenant, id string, to Minted, overlap time.Duration) error {
			return d.Write(t.Context(), func(tx *db.Tx) error { _, err := a.Rotate(tx, tenant, id, to, overlap); return err })
		}
		if err := rotate("t1", first.Key.ID, second, MaxOverlap+1); !problem.Is(err, problem.Invalid) {
			t.Fatalf("an overlap too long: %v", err)
		}
		if err := rotate("t2", first.Key.ID, second, time.Hour); !problem.Is(err, problem.NotFound) {
			t.Fatalf("another tenant's key: %v", err)
		}
		if err := rotate("t1", first.Key.ID, second, time.Hour); err != nil {
			t.Fatal(err)
		}
		caller, err := a.Authenticate(t.Context(), second.Text)
		if err != nil || caller.Member != "Ama" || caller.Can(Payout) || !caller.Can(Read) || !strings.HasPrefix(second.Text, livePrefix) {
			t.Fatalf("%+v, %v", caller, err)
		}
		third, err := successor(a, first.Key)
		if err != nil {
			t.Fatal(err)
		}
		if err := rotate("t1", first.Key.ID, third, time.Hour); !problem.Is(err, problem.InProgress) {
			t.Fatalf("rotated twice: %v", err)
		}
		if works(t, a, third.Text) {
			t.Fatal("a refused rotation left a key")
		}
		c.Advance(time.Hour - time.Microsecond)
		if !works(t, a, first.Text) {
			t.Fatal("the old key ended before the overlap")
		}
		c.Advance(time.Microsecond)
		if works(t, a, first.Text) || !works(t, a, second.Text) {
			t.Fatal("after the overlap the new key, and only it, must work")
		}
		if err := rotate("t1", first.Key.ID, third, time.Hour); !problem.Is(err, problem.InProgress) {
			t.Fatalf("an expired key was rotated: %v", err)
		}
	})
}

func TestRotate_keepsTheExpiry(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, c := other(d, start)
		first := makeKey(t, d, a, NewKey{Tenant: "t1", Expiry: time.Hour})
		c.Advance(30 * time.Minute)
		second, err := successor(a, first.Key)
		if err != nil {
			t.Fatal(err)
		}
		if want := start.Add(90 * time.Minute); !second.Key.ExpiresAt.Equal(want) {
			t.Fatalf("the successor ends at %v, want its predecessor's lifetime: %v", second.Key.ExpiresAt, want)
		}
		write(t, d, func(tx *db.Tx) error {
			_, err := a.Rotate(tx, "t1", first.Key.ID, second, 24*time.Hour)
			return err
		})
		c.Advance(30 * time.Minute)
		if works(t, a, first.Text) || !works(t, a, second.Text) {
			t.Fatal("the overlap lengthened the old key")
		}
	})
}

func TestKey_refusesInvalid(t *testing.T) {
	a, _ := other(nil, start)
	for _, n := range []NewKey{
		{}, {Tenant: "t", Scopes: []Scope{"everything"}}, {Tenant: "t", Member: strings.Repeat("x", 81)},
		{Tenant: "t", Member: " x"}, {Tenant: "t", Member: "\xff"}, {Tenant: "t", Expiry: -1},
	} {
		if m, err := a.Mint(n); !problem.Is(err, problem.Invalid) {
			t.Errorf("%+v gave %+v, %v", n, m.Key, err)
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		m, err := a.Mint(NewKey{Tenant: "t"})
		if err != nil || seen[m.Text] || !wellFormed(m.Text) {
			t.Fatalf("%v, seen before %v", err, seen[m.Text])
		}
		seen[m.Text] = true
	}
}
