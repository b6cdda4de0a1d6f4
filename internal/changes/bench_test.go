package changes

import (
	"testing"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/identitytest"
)

// BenchmarkAnAct measures a deposit to a wallet by two people: its request and its approval.
func BenchmarkChange(b *testing.B) {
	for _, e := range dbtest.Engines() {
		b.Run(e.String(), func(b *testing.B) {
			f := install(b, dbtest.Open(b, e), nil, true)
			for b.Loop() {
				request := f.fund()
				if _, err := f.Approve(b.Context(), f.first, request.ID, request.Digest); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWhoAsks measures how a request finds its person: from a session that this node read within the last second, and from
// a session that it must read.
func BenchmarkWhoAsks(b *testing.B) {
	for _, e := range dbtest.Engines() {
		f := install(b, dbtest.Open(b, e), nil, false)
		one := identitytest.Join(b, f.db, f.clock, f.people, "yaw@example.com", identity.Membership{Role: roles.Operations})
		b.Run(e.String()+"/remembered", func(b *testing.B) {
			for b.Loop() {
				identitytest.Visit(b, f.people, one.Token)
			}
		})
		b.Run(e.String()+"/read", func(b *testing.B) {
			for b.Loop() { // a node with an empty cache
				identitytest.Visit(b, identity.New(f.db, f.clock, f.log, identity.Options{}), one.Token)
			}
		})
	}
}
