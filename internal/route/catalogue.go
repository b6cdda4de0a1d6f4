package route

import (
	"context"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// Catalogue reads all catalogues from the database, not from the cache.
func (t *Table) Catalogue(ctx context.Context) (Catalogue, error) {
	c, err := t.loadCatalogue(ctx)
	if err != nil {
		return Catalogue{}, err
	}
	return c.Catalogue, nil
}

const (
	sqlNetworks  = `SELECT network, id, name, status FROM airtime_networks ORDER BY position, network`
	sqlServices  = `SELECT service, id, name, network, status FROM data_services ORDER BY position, service`
	sqlBanks     = `SELECT code, id, name, status FROM banks ORDER BY name, code`
	sqlBankCodes = `SELECT bank, provider, code FROM bank_codes WHERE code <> ''`
	sqlPrefixes  = `SELECT prefix, network FROM number_prefixes`
)

// loadCatalogue reads the five small tables in one round trip.
func (t *Table) loadCatalogue(ctx context.Context) (*catalogue, error) {
	c := &catalogue{}
	codes := map[string]map[string]string{} // by sort code
	err := t.db.Read(ctx, func(tx *db.Tx) error {
		*c = catalogue{Catalogue: Catalogue{Prefixes: map[string]msisdn.Network{}}, bankCodes: map[string]map[string]string{}}
		clear(codes)
		return tx.Gather(
			db.Query{SQL: sqlNetworks, Each: func(row *db.Row) error {
				var n AirtimeNetwork
				err := row.Scan((*string)(&n.Network), &n.ID, &n.Name, &n.Status)
				c.Networks = append(c.Networks, n)
				return err
			}},
			db.Query{SQL: sqlServices, Each: func(row *db.Row) error {
				var s Service
				err := row.Scan(&s.Key, &s.ID, &s.Name, (*string)(&s.Network), &s.Status)
				c.Services = append(c.Services, s)
				return err
			}},
			db.Query{SQL: sqlBanks, Each: func(row *db.Row) error {
				var b Bank
				err := row.Scan(&b.Code, &b.ID, &b.Name, &b.Status)
				c.Banks = append(c.Banks, b)
				return err
			}},
			db.Query{SQL: sqlBankCodes, Each: func(row *db.Row) error {
				var bank, rail, code string
				err := row.Scan(&bank, &rail, &code)
				if codes[bank] == nil {
					codes[bank] = map[string]string{}
				}
				codes[bank][rail] = code
				return err
			}},
			db.Query{SQL: sqlPrefixes, Each: func(row *db.Row) error {
				var prefix, network string
				err := row.Scan(&prefix, &network)
				c.Prefixes[prefix] = msisdn.Network(network)
				return err
			}},
		)
	})
	if err != nil {
		return nil, err
	}
	for i, b := range c.Banks {
		c.Banks[i].Codes = codes[b.Code]
		for rail, code := range codes[b.Code] {
			if c.bankCodes[rail] == nil {
				c.bankCodes[rail] = map[string]string{}
			}
			c.bankCodes[rail][b.ID] = code
		}
	}
	t.known.Store(c)
	return c, nil
}

// Networks lists the airtime networks, including inactive ones, whose status is part of the response.
func (t *Table) Networks(ctx context.Context) ([]AirtimeNetwork, error) {
	c, err := t.catalogue.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	return append([]AirtimeNetwork(nil), c.Networks...), nil
}

// Network returns an airtime network by its id.
func (t *Table) Network(ctx context.Context, id string) (AirtimeNetwork, bool, error) {
	c, err := t.catalogue.Get(ctx, struct{}{})
	if err != nil {
		return AirtimeNetwork{}, false, err
	}
	for _, n := range c.Networks {
		if n.ID == id {
			return n, true, nil
		}
	}
	return AirtimeNetwork{}, false, nil
}

// Services lists the active data services.
func (t *Table) Services(ctx context.Context) ([]Service, error) {
	c, err := t.catalogue.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	var list []Service
	for _, s := range c.Services {
		if s.Status == Active {
			list = append(list, s)
		}
	}
	return list, nil
}

// Service returns a data service by its id, even if it is no longer active.
func (t *Table) Service(ctx context.Context, id string) (Service, bool, error) {
	c, err := t.catalogue.Get(ctx, struct{}{})
	if err != nil {
		return Service{}, false, err
	}
	for _, s := range c.Services {
		if s.ID == id {
			return s, true, nil
		}
	}
	return Service{}, false, nil
}

// Banks lists the active banks that a tenant's payouts can reach, by name. One of our providers must serve the bank
// and look up names of its accounts. Paused and failing providers count as well, because clients keep the list for a
// day.
func (t *Table) Banks(ctx context.Context, tenant, mode string) ([]Bank, error) {
	c, err := t.catalogue.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	sw, err := t.switches.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	var list []Bank
	for _, b := range c.Banks {
		served := b.Status == Active
		for _, op := range []Operation{DisburseBank, BankName} {
			served = served && len(t.serving(sw, c, op, b.ID, tenant, mode)) > 0
		}
		if served {
			list = append(list, b)
		}
	}
	return list, nil
}

// Bank returns a bank by its id, even if it is no longer active.
func (t *Table) Bank(ctx context.Context, id string) (Bank, bool, error) {
	c, err := t.catalogue.Get(ctx, struct{}{})
	if err != nil {
		return Bank{}, false, err
	}
	for _, b := range c.Banks {
		if b.ID == id {
			return b, true, nil
		}
	}
	return Bank{}, false, nil
}

// LikelyNetwork returns the network that a number's prefix suggests. The longest listed prefix counts. Numbers can
// move between networks, so callers must not refuse a request because of the result.
func (t *Table) LikelyNetwork(ctx context.Context, m msisdn.MSISDN) (msisdn.Network, bool, error) {
	c, err := t.catalogue.Get(ctx, struct{}{})
	if err != nil {
		return "", false, err
	}
	local := m.Local()
	for n := len(local); n > 0; n-- {
		if network, ok := c.Prefixes[local[:n]]; ok {
			return network, network != "", nil
		}
	}
	return "", false, nil
}

const sqlSetBankCode = `INSERT INTO bank_codes (bank, provider, code) SELECT code, $2, $3 FROM banks WHERE code = $1
	ON CONFLICT (bank, provider) DO UPDATE SET code = excluded.code`

// SetBankCode stores a provider's own code of a bank, which is identified by its sort code. An empty code means that
// the provider does not reach the bank.
func (t *Table) SetBankCode(tx *db.Tx, bank, providerName, code string) error {
	var f problem.Fields
	t.CheckProvider(&f, providerName)
	if len(code) > 36 {
		f.Add("code", "must have at most 36 characters")
	}
	if err := f.Err(); err != nil {
		return err
	}
	t.forget(tx)
	n, err := tx.Exec(sqlSetBankCode, bank, providerName, code)
	if err == nil && n == 0 {
		return noEntry(bank)
	}
	return err
}

const sqlSetPrefix = `INSERT INTO number_prefixes (prefix, network) VALUES ($1, $2)
	ON CONFLICT (prefix) DO UPDATE SET network = excluded.network`

// SetPrefix assigns a range of numbers to a network. An empty network removes the assignment. The prefix is in local
// form, such as 024 or 0553.
func (t *Table) SetPrefix(tx *db.Tx, prefix string, n msisdn.Network) error {
	if len(prefix) < 2 || len(prefix) > 10 || prefix[0] != '0' || strings.Trim(prefix, "0123456789") != "" {
		return problem.Field("prefix", "must be the first digits of a local number, such as 024")
	}
	t.forget(tx)
	_, err := tx.Exec(sqlSetPrefix, prefix, string(n))
	return err
}
