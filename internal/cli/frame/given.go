package frame

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
)

// Writing is what every command takes that changes something: who gives it. In production, where there are people, a command
// names its person by a token, or breaks the glass; elsewhere it needs neither.
type Writing struct {
	TokenFile  string `name:"token-file" placeholder:"PATH" help:"File with your personal token, which the console makes on the page Your account. MAKOLA_TOKEN has the token itself."`
	BreakGlass bool   `name:"break-glass" help:"In an emergency: do it at once, without a token and without a second person. Red in the audit log, with an alert; needs --reason."`
}

// Reasoned is writing for a command that asks for no reason by itself.
type Reasoned struct {
	Writing
	Reason string `name:"reason" placeholder:"TEXT" help:"Why, for the audit log. Needed with a token or --break-glass."`
}

// Needs are the commands that change something, and what the person of a token must be allowed to at the installation. A
// command whose act has a kind of its own needs what the kind says, too.
var Needs = map[string]identity.Permission{
	"tenant create": identity.MakeTenants, "tenant set": identity.MakeActs,
	"people create": identity.MakePeople, "people invite": identity.MakePeople, "people role": identity.MakePeople,
	"people disable": identity.MakePeople, "people enable": identity.MakePeople, "people reset": identity.MakePeople,
	"change": identity.MakeActs, "fees set": identity.MakeTenants,
	"key create": identity.MakeKeys, "key set": identity.MakeKeys, "key rotate": identity.MakeKeys, "key revoke": identity.MakeKeys,
	"wallet fund": identity.MakeMoney, "wallet adjust": identity.MakeMoney, "wallet transfer": identity.MakeMoney, "wallet recover": identity.MakeMoney,
	"float add":       identity.MakeTreasury,
	"payouts resolve": identity.MakeTreasury, "payouts decide": identity.MakeTreasury,
	"providers pause": identity.SwitchProviders, "providers resume": identity.SwitchProviders, "providers route": identity.MakeMoney,
	"catalogue set": identity.MakeTenants, "catalogue bank-code": identity.MakeTenants, "catalogue prefix": identity.MakeTenants,
	"webhooks replay": identity.ReplayWebhooks, "webhooks secret": identity.ReadSecrets,
	"senders create": identity.ReviewSenders, "senders approve": identity.ReviewSenders, "senders reject": identity.ReviewSenders,
	"credits sell": identity.MakeMoney, "credits refund": identity.MakeMoney,
	"campaigns stop": identity.StopCampaigns, "otp reopen": identity.MakeTenants,
	"contacts add-group": identity.MakeTenants, "contacts import": identity.MakeTenants, "contacts optout": identity.MakeTenants, "contacts optin": identity.MakeTenants,
	"privacy erase": identity.MakeTenants, "jobs rerun": identity.MakeMoney, "clock accept": identity.MakeMoney, "keys rotate": identity.MakePeople,
}

// moneyCommands are the commands that move money. A production machine whose clock is wrong does not run them.
var moneyCommands = map[string]bool{
	"wallet fund": true, "wallet adjust": true, "wallet transfer": true, "wallet recover": true, "float add": true,
	"payouts resolve": true, "payouts decide": true, "credits sell": true, "credits refund": true,
}

// authority is what a command that changes something was given.
type authority struct {
	command    string
	tokenFile  string
	breakGlass bool
	reason     string
}

// AuthorityOf reads it from the line; nil for a command that changes nothing.
func AuthorityOf(line *kong.Context) *authority {
	command := line.Selected()
	if command == nil {
		return nil
	}
	path, _, _ := strings.Cut(command.Path(), " (") // an older name follows in brackets
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

// token reads the personal token; none is empty.
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
		return "", problem.Wrap(err, problem.Invalid, "token_file", fmt.Sprintf("The file of --token-file cannot be used: %v", err))
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", problem.New(problem.Invalid, "token_file", "The file of --token-file is empty")
	}
	return token, nil
}
