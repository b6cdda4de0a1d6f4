package sample

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/makola/makola/internal/money"
)

// open makes the shops as they are on the first morning: accounts, money, credits, contacts.
func (m *maker) open(ctx context.Context) error {
	m.shops = newShops()
	ready := m.app.Ready()
	for n, s := range m.shops {
		random := rand.New(rand.NewPCG(m.seed, uint64(n)+1)) // a history, not a secret
		for range s.customers {
			s.people = append(s.people, newPerson(random))
		}
		var err error
		if s.id, s.key, s.sender, s.group = ready.TenantID, ready.APIKey, ready.SenderID, ready.GroupID; n > 0 {
			s.sender = ""
			if s.id, s.key, err = m.operator.createTenant(ctx, s.name); err != nil {
				return err
			}
			m.clock.Advance(2 * time.Second) // the server looks for accounts at most once a second
			if s.group, err = m.newGroup(ctx, s); err != nil {
				return err
			}
		}
		if err := m.operator.fund(ctx, s, 25_000*money.Cedi); err != nil {
			return err
		}
		if err := m.operator.sell(ctx, s, 500); err != nil {
			return err
		}
		var contacts []map[string]any
		for _, p := range s.people[:s.contacts] {
			contacts = append(contacts, map[string]any{"phone_number": p.phone, "first_name": p.first, "last_name": p.last})
		}
		if err := m.ask(ctx, s, http.MethodPost, "/sms-api/contact/addBulkContact", map[string]any{"contact_group_id": s.group, "contacts": contacts}, nil); err != nil {
			return err
		}
	}
	return m.catalogue(ctx, m.shops[0])
}

func (m *maker) newGroup(ctx context.Context, s *shop) (string, error) {
	var made struct{ Data named }
	err := m.ask(ctx, s, http.MethodPost, "/sms-api/contact/addGroup", map[string]any{"name": "Weavers and customers"}, &made)
	return made.Data.ID, err
}
