package lookup

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

// nameTime bounds one question for a name, all rails together. A bank payout asks for the name before it is accepted,
// and its whole answer may take 8 s.
const nameTime = 4 * time.Second

// accountPattern matches bank account numbers of every bank.
var accountPattern = regexp.MustCompile(`^[0-9A-Za-z]{7,16}$`)

// WalletName asks for the registered name of a mobile money wallet. An empty network is guessed from the number. A
// number that no provider knows is Invalid on phone_number; Unavailable means that no provider answered.
func (e *Lookups) WalletName(ctx context.Context, tenantID string, network msisdn.Network, number msisdn.MSISDN) (string, error) {
	if network == "" {
		guess, ok, err := e.routes.LikelyNetwork(ctx, number)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", problem.Field("phone_number", "belongs to no known network")
		}
		network = guess
	}
	return e.name(ctx, tenantID, route.WalletName, string(network), "phone_number", func(ctx context.Context, r provider.Rail) (string, provider.Outcome) {
		return r.WalletNames.WalletName(ctx, network, number)
	})
}

// PayeeName asks for the name of the holder of a bank account at the rails that may pay it, best first, by the code with
// which each pays. rail is the one that answered, and the only one that may pay by this name. Errors are BankName's.
func (e *Lookups) PayeeName(ctx context.Context, tenantID, bankID, account string) (name, rail string, err error) {
	if err := e.CheckBankAccount(ctx, bankID, account); err != nil {
		return "", "", err
	}
	t, err := e.tenants.Get(ctx, tenantID)
	if err != nil {
		return "", "", err
	}
	paying, probe, err := e.routes.Choose(ctx, route.DisburseBank, bankID, t.ID, string(t.Mode))
	probe.GiveBack(ctx) // nothing is paid here
	if err != nil {
		return "", "", servedBank(err)
	}
	paying = slices.DeleteFunc(paying, func(r provider.Rail) bool { return r.BankNames == nil })
	if len(paying) == 0 {
		return "", "", bankNotServed()
	}
	return e.ask(ctx, paying, route.BankName, "account_number", func(ctx context.Context, r provider.Rail) (string, provider.Outcome) {
		return r.BankNames.BankName(ctx, r.Banks[bankID], account)
	})
}

// BankName asks for the name of the holder of a bank account. It refuses what CheckBankAccount refuses, an account that
// the bank does not know as Invalid on account_number, and is Unavailable where no provider answered.
func (e *Lookups) BankName(ctx context.Context, tenantID, bankID, account string) (string, error) {
	if err := e.CheckBankAccount(ctx, bankID, account); err != nil {
		return "", err
	}
	name, err := e.name(ctx, tenantID, route.BankName, bankID, "account_number", func(ctx context.Context, r provider.Rail) (string, provider.Outcome) {
		return r.BankNames.BankName(ctx, r.Banks[bankID], account)
	})
	return name, servedBank(err)
}

// servedBank names the field of a bank that no provider serves.
func servedBank(err error) error {
	if p := problem.From(err); p != nil && p.Code == "not_served" {
		return bankNotServed()
	}
	return err
}

func bankNotServed() error { return problem.Field("bank_id", "is not served at the moment") }

// BankServed refuses a bank that an operator switched off, with the code "not_served". It does not ask for a provider.
func (e *Lookups) BankServed(ctx context.Context, bankID string) error {
	bank, found, err := e.routes.Bank(ctx, bankID)
	if err == nil && found && bank.Status != route.Active {
		err = problem.New(problem.Unavailable, "not_served", "The bank is not served at the moment")
	}
	return err
}

// CheckBankAccount checks an account number and a bank without asking a provider. An impossible number, or a bank
// that is unknown or not served, is Invalid on account_number or bank_id.
func (e *Lookups) CheckBankAccount(ctx context.Context, bankID, account string) error {
	var bad problem.Fields
	if !accountPattern.MatchString(account) {
		bad.Add("account_number", "must be 7 to 16 letters or digits")
	}
	bank, found, err := e.routes.Bank(ctx, bankID)
	switch {
	case err != nil:
		return err
	case !found:
		bad.Add("bank_id", "is not in the list of banks")
	case bank.Status != route.Active:
		bad.Merge(bankNotServed())
	}
	return bad.Err()
}

// name asks the tenant's rails in order until one knows the name.
func (e *Lookups) name(ctx context.Context, tenantID string, op route.Operation, channel, field string,
	ask func(context.Context, provider.Rail) (string, provider.Outcome),
) (string, error) {
	t, err := e.tenants.Get(ctx, tenantID)
	if err != nil {
		return "", err
	}
	rails, _, err := e.routes.Choose(ctx, op, channel, t.ID, string(t.Mode))
	if err != nil {
		return "", err
	}
	name, _, err := e.ask(ctx, rails, op, field, ask)
	return name, err
}

// ask asks rails in order until one knows the name.
func (e *Lookups) ask(ctx context.Context, rails []provider.Rail, op route.Operation, field string,
	ask func(context.Context, provider.Rail) (string, provider.Outcome),
) (name, rail string, err error) {
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	for _, r := range rails {
		begun := e.clock.Now()
		name, o := ask(ctx, r)
		e.routes.Report(r, op, o, e.clock.Since(begun))
		switch {
		case o.Class == provider.Accepted && name != "":
			return name, r.Name, nil
		case o.Class == provider.Rejected:
			return "", "", problem.Field(field, "is not known to the "+register(op))
		}
	}
	return "", "", problem.New(problem.Unavailable, "name_service_unavailable", "The name cannot be looked up at the moment. Nothing was sent; try again shortly.")
}

// register is who has the names that op asks for.
func register(op route.Operation) string {
	if op == route.BankName {
		return "bank"
	}
	return "network"
}
