package route

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
)

// The defaults. A row is stored only if its key is missing, so that an operator's changes stay.

// idSpace is the namespace of catalogue ids. It makes them the same in every installation.
var idSpace = uuid.MustParse("5c2c4f0e-6c5e-5d0a-9f6b-2f8a3a1d7e10")

func stableID(kind, key string) string {
	return uuid.NewSHA1(idSpace, []byte(kind+"/"+key)).String()
}

// defaultRoutes returns the routes of a new installation: MTN first for MTN's wallets, and Hubtel for everything.
func defaultRoutes() []Route {
	both, hubtel := []string{"mtn", "hubtel"}, []string{"hubtel"}
	routes := []Route{}
	for _, op := range Routed() {
		routes = append(routes, Route{Operation: op, Channel: Any, Providers: hubtel})
	}
	for _, op := range []Operation{Collect, DisburseWallet, WalletName} {
		routes = append(routes, Route{Operation: op, Channel: string(msisdn.MTN), Providers: both})
	}
	return routes
}

var defaultNetworks = []AirtimeNetwork{
	{Network: msisdn.MTN, Name: "MTN"},
	{Network: msisdn.Telecel, Name: "Telecel"},
	{Network: msisdn.AirtelTigo, Name: "AirtelTigo"},
}

var defaultServices = []Service{
	{Key: "mtn_data", Name: "MTN Data Bundle", Network: msisdn.MTN},
	{Key: "telecel_data", Name: "Telecel Data Bundle", Network: msisdn.Telecel},
	{Key: "airteltigo_data", Name: "AirtelTigo Data Bundle", Network: msisdn.AirtelTigo},
	{Key: "mtn_broadband", Name: "MTN Broadband Bundle", Network: msisdn.MTN},
}

// defaultBanks are sort code, GIP code and name. Hubtel uses the GIP code, which is empty if unknown. Paystack uses
// the sort code, except for the banks of paystackCodes.
var defaultBanks = []struct{ code, gip, name string }{
	{"010100", "", "Bank of Ghana"},
	{"020100", "300302", "Standard Chartered Bank"},
	{"030100", "300303", "Absa Bank Ghana"},
	{"040100", "300304", "GCB Bank"},
	{"050100", "300305", "National Investment Bank"},
	{"060100", "300325", "United Bank for Africa"},
	{"070100", "300306", "ARB Apex Bank"},
	{"080100", "300307", "Agricultural Development Bank"},
	{"090100", "", "Société Générale Ghana"},
	{"100100", "300309", "Universal Merchant Bank"},
	{"110100", "300310", "Republic Bank Ghana"},
	{"120100", "300311", "Zenith Bank Ghana"},
	{"130100", "300312", "Ecobank Ghana"},
	{"140100", "300313", "CalBank"},
	{"170100", "300316", "First Atlantic Bank"},
	{"180100", "300317", "Prudential Bank"},
	{"190100", "300318", "Stanbic Bank Ghana"},
	{"200100", "300319", "FBNBank Ghana"},
	{"210100", "300320", "Bank of Africa Ghana"},
	{"230100", "300322", "Guaranty Trust Bank Ghana"},
	{"240100", "300323", "Fidelity Bank Ghana"},
	{"280100", "300329", "Access Bank Ghana"},
	{"330100", "300334", "First National Bank Ghana"},
	{"340100", "300331", "Consolidated Bank Ghana"},
	{"360100", "300324", "OmniBSIC Bank"},
	{"390100", "300362", "GHL Bank"},
}

// paystackCodes has the banks whose code at Paystack is not the sort code. A code is empty if Paystack's list lacks
// the bank. Source: two copies of this list from 2026, which agree.
var paystackCodes = map[string]string{"070100": "070101", "390100": ""}

func paystackCode(bank string) string {
	if code, other := paystackCodes[bank]; other {
		return code
	}
	return bank
}

var defaultPrefixes = map[msisdn.Network][]string{
	msisdn.MTN:        {"024", "025", "053", "054", "055", "059"},
	msisdn.Telecel:    {"020", "050"},
	msisdn.AirtelTigo: {"026", "027", "056", "057"},
}

const (
	sqlSeedRoute = `INSERT INTO provider_routes (tenant, mode, operation, channel, providers, actor, changed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, mode, operation, channel) DO NOTHING`
	sqlSeedNetwork = `INSERT INTO airtime_networks (network, id, name, status, position) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (network) DO NOTHING`
	sqlSeedService = `INSERT INTO data_services (service, id, name, network, status, position) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (service) DO NOTHING`
	sqlSeedBank     = `INSERT INTO banks (code, id, name, status) VALUES ($1, $2, $3, $4) ON CONFLICT (code) DO NOTHING`
	sqlSeedBankCode = `INSERT INTO bank_codes (bank, provider, code) VALUES ($1, $2, $3) ON CONFLICT (bank, provider) DO NOTHING`
	sqlSeedPrefix   = `INSERT INTO number_prefixes (prefix, network) VALUES ($1, $2) ON CONFLICT (prefix) DO NOTHING`
)

// Seed stores the missing defaults. Start calls it. A command may call it on a database that no server has used yet.
func (t *Table) Seed(ctx context.Context) error {
	now := db.Micros(t.clock.Now())
	return t.db.Write(ctx, func(tx *db.Tx) error {
		for _, r := range defaultRoutes() {
			tx.Defer(sqlSeedRoute, -1, Any, Any, string(r.Operation), r.Channel, strings.Join(r.Providers, ","), "makola", now)
		}
		for i, n := range defaultNetworks {
			tx.Defer(sqlSeedNetwork, -1, string(n.Network), stableID("network", string(n.Network)), n.Name, Active, i)
		}
		for i, s := range defaultServices {
			tx.Defer(sqlSeedService, -1, s.Key, stableID("service", s.Key), s.Name, string(s.Network), Active, i)
		}
		for _, b := range defaultBanks {
			tx.Defer(sqlSeedBank, -1, b.code, stableID("bank", b.code), b.name, Active)
			tx.Defer(sqlSeedBankCode, -1, b.code, "hubtel", b.gip)
			tx.Defer(sqlSeedBankCode, -1, b.code, "paystack", paystackCode(b.code))
		}
		for n, prefixes := range defaultPrefixes {
			for _, p := range prefixes {
				tx.Defer(sqlSeedPrefix, -1, p, string(n))
			}
		}
		t.forget(tx)
		return nil
	})
}
