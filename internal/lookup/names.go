package lookup

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

// nameTime is the maximum time of one name lookup, over all rails. A payout to a bank looks the name up before it is
// accepted, and must be answered within 8 s.
const nameTime = 4 * time.Second

// accountPattern matches bank account numbers of every bank.
var accountPattern = regexp.MustCompile(`^[0-9A-Za-z]{7,16}$`)

// WalletName returns the registered name of a mobile money wallet. If the network is empty, it is guessed from the
// number. If no provider knows the number, the error is Invalid on phone_number. If no provider answered, it is
// Unavailable.
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

// PayeeName returns the name of the holder of a bank account. It queries the rails that may pay the account, best
// first, each with the code with which it pays. rail is the rail that answered, and only that rail may pay by this
// name. Errors are those of BankName. The error is Invalid on amount if no rail pays this amount.
func (e *Lookups) PayeeName(ctx context.Context, tenantID, bankID, account string, amount money.Pesewas) (name, rail string, err error) {
	if err := e.CheckBankAccount(ctx, bankID, account); err != nil {
		return "", "", err
	}
	t, err := e.tenants.Get(ctx, tenantID)
	if err != nil {
		return "", "", err
	}
	paying, probe, err := e.routes.ChooseFor(ctx, route.Work{Operation: route.DisburseBank, Channel: bankID, Tenant: t.ID, Mode: string(t.Mode), Amount: amount})
	probe.GiveBack(ctx) // nothing is submitted here
	if err != nil {
		return "", "", route.OnAmount(servedBank(err))
	}
	paying = slices.DeleteFunc(paying, func(r provider.Rail) bool { return r.BankNames == nil })
	if len(paying) == 0 {
		return "", "", bankNotServed()
	}
	return e.ask(ctx, paying, route.BankName, "account_number", func(ctx context.Context, r provider.Rail) (string, provider.Outcome) {
		return r.BankNames.BankName(ctx, r.Banks[bankID], account)
	})
}

// BankName returns the name of the holder of a bank account. It returns the errors of CheckBankAccount. If the bank
// does not know the account, the error is Invalid on account_number. If no provider answered, it is Unavailable.
func (e *Lookups) BankName(ctx context.Context, tenantID, bankID, account string) (string, error) {
	if err := e.CheckBankAccount(ctx, bankID, account); err != nil {
		return "", err
	}
	name, err := e.name(ctx, tenantID, route.BankName, bankID, "account_number", func(ctx context.Context, r provider.Rail) (string, provider.Outcome) {
		return r.BankNames.BankName(ctx, r.Banks[bankID], account)
	})
	return name, servedBank(err)
}

// servedBank adds the field to the error about a bank that no provider serves.
func servedBank(err error) error {
	if p := problem.From(err); p != nil && p.Code == "not_served" {
		return bankNotServed()
	}
	return err
}

func bankNotServed() error { return problem.Field("bank_id", "is not served at the moment") }

// BankServed returns an error with the code "not_served" for a bank that an operator switched off. It does not check
// whether a provider serves the bank.
func (e *Lookups) BankServed(ctx context.Context, bankID string) error {
	bank, found, err := e.routes.Bank(ctx, bankID)
	if err == nil && found && bank.Status != route.Active {
		err = problem.New(problem.Unavailable, "not_served", "The bank is not served at the moment")
	}
	return err
}

// CheckBankAccount checks an account number and a bank without querying a provider. If the number is impossible, or
// the bank is unknown or not served, the error is Invalid on account_number or bank_id.
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

// name queries the tenant's rails in order until one knows the name.
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

// ask queries rails in order until one knows the name.
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

// register returns the name of the institution that has the names for op.
func register(op route.Operation) string {
	if op == route.BankName {
		return "bank"
	}
	return "network"
}
