package payments

import (
	"context"
	"regexp"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// nameTime bounds one question for a name, all rails together. Bank payouts
// ask inside their answer, whose whole budget is 8 s.
const nameTime = 4 * time.Second

// accountPattern is what a bank account number looks like at any bank.
var accountPattern = regexp.MustCompile(`^[0-9A-Za-z]{7,16}$`)

// WalletName asks for the registered name of a mobile money wallet. An empty
// network is guessed from the number. A number that no provider knows is
// Invalid on phone_number; providers that do not answer are Unavailable.
func (p *Payments) WalletName(ctx context.Context, tenantID string, network msisdn.Network, number msisdn.MSISDN) (string, error) {
	t, err := p.tenants.Get(ctx, tenantID)
	if err != nil {
		return "", err
	}
	if network == "" {
		guess, ok, err := p.routes.LikelyNetwork(ctx, number)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", problem.Field("phone_number", "belongs to no known network")
		}
		network = guess
	}
	return p.resolve(ctx, t, route.WalletName, string(network), "phone_number", func(ctx context.Context, r provider.Rail) (string, provider.Outcome) {
		return r.WalletNames.WalletName(ctx, network, number)
	})
}

// BankName asks for the name of the holder of a bank account; the refusals are
// WalletName's, on account_number and bank_id.
func (p *Payments) BankName(ctx context.Context, tenantID, bankID, account string) (string, error) {
	t, err := p.tenants.Get(ctx, tenantID)
	if err != nil {
		return "", err
	}
	if err := p.checkBankAccount(ctx, bankID, account); err != nil {
		return "", err
	}
	return p.bankName(ctx, t, bankID, account)
}

// checkBankAccount refuses accounts that cannot exist.
func (p *Payments) checkBankAccount(ctx context.Context, bankID, account string) error {
	var bad problem.Fields
	if !accountPattern.MatchString(account) {
		bad.Add("account_number", "must be 7 to 16 letters or digits")
	}
	bank, found, err := p.routes.Bank(ctx, bankID)
	switch {
	case err != nil:
		return err
	case !found:
		bad.Add("bank_id", "is not in the list of banks")
	case bank.Status != route.Active:
		bad.Add("bank_id", "is not served at the moment")
	}
	return bad.Err()
}

func (p *Payments) bankName(ctx context.Context, t tenant.Tenant, bankID, account string) (string, error) {
	name, err := p.resolve(ctx, t, route.BankName, bankID, "account_number", func(ctx context.Context, r provider.Rail) (string, provider.Outcome) {
		return r.BankNames.BankName(ctx, r.Banks[bankID], account)
	})
	if e := problem.From(err); e != nil && e.Code == "not_served" {
		err = problem.Field("bank_id", "is not served at the moment")
	}
	return name, err
}

// resolve asks the rails in order until one knows. Nothing moves, so that
// another rail may always be asked.
func (p *Payments) resolve(ctx context.Context, t tenant.Tenant, op route.Operation, channel, field string,
	ask func(context.Context, provider.Rail) (string, provider.Outcome),
) (string, error) {
	rails, err := p.routes.Choose(ctx, op, channel, t.ID, string(t.Mode))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	for _, r := range rails {
		begun := p.clock.Now()
		name, o := ask(ctx, r)
		p.routes.Report(r, op, o, p.clock.Since(begun))
		switch {
		case o.Class == provider.Accepted && name != "":
			return name, nil
		case o.Class == provider.Rejected:
			return "", problem.Field(field, "is not known to the "+holder(op))
		}
	}
	return "", problem.New(problem.Unavailable, "name_service_unavailable", "The name cannot be looked up at the moment. Nothing was sent; try again shortly.")
}

func holder(op route.Operation) string {
	if op == route.BankName {
		return "bank"
	}
	return "network"
}
