package frame

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Writing are the flags of every command that changes something. In production, if there are people, a command names
// its person by a token or uses --break-glass. Otherwise it needs neither.
type Writing struct {
	TokenFile  string `name:"token-file" placeholder:"PATH" help:"File with your personal token. Create one in the console under Your account. MAKOLA_TOKEN holds the token itself."`
	BreakGlass bool   `name:"break-glass" help:"In an emergency: apply the change without a token and without approval. Raises an alert; needs --reason."`
}

// Reasoned is Writing for a command that has no separate reason flag.
type Reasoned struct {
	Writing
	Reason string `name:"reason" placeholder:"TEXT" help:"Reason, for the audit log. Required with a token or --break-glass."`
}

// Needs lists the commands that change something, with the permission at the installation that the owner of a token
// needs. A kind of change may need a further permission.
var Needs = map[string]roles.Permission{
	"account create": roles.ChangeTenants, "account set": roles.RequestChanges,
	"people create": roles.ChangePeople, "people invite": roles.ChangePeople, "people role": roles.ChangePeople,
	"people disable": roles.ChangePeople, "people enable": roles.ChangePeople, "people reset": roles.ChangePeople,
	"change": roles.RequestChanges, "fees set": roles.ChangeTenants,
	"key create": roles.ChangeKeys, "key set": roles.ChangeKeys, "key rotate": roles.ChangeKeys, "key revoke": roles.ChangeKeys,
	"wallet fund": roles.ChangeMoney, "wallet adjust": roles.ChangeMoney, "wallet transfer": roles.ChangeMoney, "wallet recover": roles.ChangeMoney,
	"day statement": roles.ChangeTreasury, "day exception": roles.ChangeTreasury, "day close": roles.ChangeTreasury, "day reopen": roles.ChangeTreasury,
	"float add": roles.ChangeTreasury,
	"bank add":  roles.ChangeTreasury, "bank close": roles.ChangeTreasury, "bank open": roles.ChangeTreasury, "bank sweep": roles.ChangeTreasury,
	"bank top-up": roles.ChangeTreasury, "bank settle": roles.ChangeTreasury, "bank arrived": roles.ChangeTreasury,
	"batch send":  roles.RequestChanges,
	"batch pause": roles.ChangeTreasury, "batch resume": roles.ChangeTreasury, "batch cancel": roles.ChangeTreasury,
	"payouts resolve": roles.ChangeTreasury, "payouts decide": roles.ChangeTreasury, "payouts refund": roles.ChangeMoney,
	"providers pause": roles.SwitchProviders, "providers resume": roles.SwitchProviders, "providers route": roles.ChangeMoney, "providers test": roles.SwitchProviders,
	"catalogue set": roles.ChangeTenants, "catalogue bank-code": roles.ChangeTenants, "catalogue prefix": roles.ChangeTenants,
	"webhooks replay": roles.ReplayWebhooks, "webhooks secret": roles.ReadSecrets,
	"senders create": roles.ReviewSenders, "senders approve": roles.ReviewSenders, "senders reject": roles.ReviewSenders,
	"credits sell": roles.ChangeMoney, "credits refund": roles.ChangeMoney,
	"campaigns stop": roles.StopCampaigns, "otp reopen": roles.ChangeTenants,
	"contacts add-group": roles.ChangeTenants, "contacts import": roles.ChangeTenants, "contacts optout": roles.ChangeTenants, "contacts optin": roles.ChangeTenants,
	"statements import": roles.ImportStatements,
	"privacy erase":     roles.ChangeTenants, "jobs rerun": roles.ChangeMoney, "clock accept": roles.ChangeMoney, "keys rotate": roles.ChangePeople, "figures rebuild": roles.ChangeMoney,
}

// moneyCommands are the commands that move money. A production machine whose clock is wrong does not run them.
var moneyCommands = map[string]bool{
	"wallet fund": true, "wallet adjust": true, "wallet transfer": true, "wallet recover": true, "float add": true,
	"bank open": true, "bank sweep": true, "bank top-up": true, "bank settle": true, "bank arrived": true,
	"batch send": true, "batch resume": true, "batch cancel": true,
	"payouts resolve": true, "payouts decide": true, "payouts refund": true, "credits sell": true, "credits refund": true,
}

// authority holds the token, reason and break-glass flag of a command.
type authority struct {
	command    string
	tokenFile  string
	breakGlass bool
	reason     string
}

// AuthorityOf returns the authority of a command line. It is nil for a command that changes nothing.
func AuthorityOf(line *kong.Context) *authority {
	command := line.Selected()
	if command == nil {
		return nil
	}
	path := CommandName(command)
	if _, changes := Needs[path]; !changes {
		return nil
	}
	a := &authority{command: path}
	for _, f := range line.Flags() {
		switch value := f.Target.Interface().(type) {
		case string:
			switch f.Name {
			case "token-file":
				a.tokenFile = value
			case "reason":
				a.reason = strings.TrimSpace(value)
			}
		case bool:
			if f.Name == "break-glass" {
				a.breakGlass = value
			}
		}
	}
	return a
}

// CommandName returns the name of a command, such as "account create", without its aliases.
func CommandName(command *kong.Node) string {
	name := command.Name
	for n := command.Parent; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		name = n.Name + " " + name
	}
	return name
}

// token reads the personal token. It is empty if there is none.
func (a *authority) token() (string, error) {
	if a.tokenFile == "" {
		return strings.TrimSpace(os.Getenv(config.EnvToken)), nil
	}
	var text []byte
	err := errors.Join(config.CheckOwnFile(a.tokenFile), config.CheckSecretFile(a.tokenFile))
	if err == nil {
		text, err = config.ReadSecretFile(a.tokenFile)
	}
	if err != nil {
		return "", problem.Wrap(err, problem.Invalid, "token_file", fmt.Sprintf("The file of --token-file cannot be read: %v", err))
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", problem.New(problem.Invalid, "token_file", "The file of --token-file is empty. Copy your personal token into its first line")
	}
	return token, nil
}
