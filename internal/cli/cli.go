// Package cli is the command line: the tree of commands, the parser, and the commands of the program itself. A
// command is a struct: its members are the flags, and its method Run executes it. Package frame has the parts that
// every command uses. Packages accounts, funds and operations have one file for each noun.
//
// Commands open the database themselves, through the packages and guarded statements of the server. They work whether
// or not a server runs. Only serve, migrate up and migrate copy change the schema. A command writes its audit entry
// in the transaction of the change.
//
// Files:
//
//	cli.go                     the tree of commands, the line parsed and run
//	model.go                   the commands described for documents
//	help.go                    help for people, versions, completion
//	serve.go                   the server and its log; the simulator
//	collector.go               limits of the garbage collector
//	doctor.go, health.go       checks of an installation (doctor_scrape.go: by its metrics); readiness of a server
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/cli/accounts"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/cli/funds"
	"github.com/makola/makola/internal/cli/operations"
)

// commands has the whole command line: a member for each noun, in the groups of makola --help.
type commands struct {
	Serve   serveCommand       `cmd:"" group:"Server:" help:"Start the server."`
	Doctor  doctorCommand      `cmd:"" group:"Server:" help:"Check this installation for problems, with the server's settings. Changes nothing; fails if a check fails."`
	Health  healthCommand      `cmd:"" group:"Server:" help:"Check whether the server on this machine is ready. Fails if it is not."`
	Migrate operations.Migrate `cmd:"" group:"Server:" help:"Manage the schema, and move to PostgreSQL."`
	Keys    operations.Keys    `cmd:"" group:"Server:" help:"Show and rotate master keys. For API keys use makola key."`
	Clock   operations.Clock   `cmd:"" group:"Server:" help:"List changes of servers' clocks, and accept a clock."`
	Jobs    operations.Jobs    `cmd:"" group:"Server:" help:"List and rerun background jobs."`
	Figures operations.Figures `cmd:"" group:"Server:" help:"Show and rebuild the figures of pages."`

	Backup   operations.Backup   `cmd:"" group:"Backup and recovery:" help:"Create, verify and list backups."`
	Restore  operations.Restore  `cmd:"" group:"Backup and recovery:" help:"Restore a backup into a new folder, or into an empty PostgreSQL database."`
	Recovery operations.Recovery `cmd:"" group:"Backup and recovery:" help:"Recover a database that may have lost its newest rows."`

	Account  accounts.Tenant   `cmd:"" name:"account" aliases:"tenant" group:"Accounts and people:" help:"Manage accounts."`
	Key      accounts.Key      `cmd:"" group:"Accounts and people:" help:"Manage API keys."`
	Webhooks accounts.Webhooks `cmd:"" group:"Accounts and people:" help:"List and replay webhooks, and manage their secrets."`
	People   accounts.People   `cmd:"" group:"Accounts and people:" help:"Manage people and their roles."`
	Privacy  accounts.Privacy  `cmd:"" group:"Accounts and people:" help:"Export and erase a person's data."`

	Change    accounts.Change    `cmd:"" group:"Changes:" help:"Request a change of any kind, such as makola change wallet.fund --account ID --amount 250 --reason TEXT."`
	Approvals accounts.Approvals `cmd:"" name:"approvals" aliases:"acts" group:"Changes:" help:"List change requests and the kinds of changes."`
	Audit     accounts.Audit     `cmd:"" group:"Changes:" help:"List, verify and export the audit log."`

	Wallet     funds.Wallet     `cmd:"" group:"Money:" help:"Show, fund and correct wallets, and move money between them."`
	Payouts    funds.Payouts    `cmd:"" group:"Money:" help:"Find, show and resolve payments."`
	Batch      funds.Batch      `cmd:"" group:"Money:" help:"Pay many people by a file: check and send it, follow the batch, and take its results."`
	Fees       funds.Fees       `cmd:"" group:"Money:" help:"Show and set fee plans."`
	Float      funds.Float      `cmd:"" group:"Money:" help:"Show floats at providers, and record deposits."`
	Ledger     funds.Ledger     `cmd:"" group:"Money:" help:"Check the ledger, and print balances and statements."`
	Statements funds.Statements `cmd:"" group:"Money:" help:"Import statements of providers and banks, and list them."`
	Providers  funds.Providers  `cmd:"" group:"Money:" help:"Manage providers and routes."`
	Day        funds.Day        `cmd:"" group:"Money:" help:"Show, close and reopen days of the books, and compare them with statements."`
	Bank       funds.Bank       `cmd:"" group:"Money:" help:"Manage bank accounts of the company, and money between them and floats."`
	Catalogue  funds.Catalogue  `cmd:"" group:"Money:" help:"Manage networks, data services and banks."`

	Senders   accounts.Senders   `cmd:"" group:"Messages:" help:"Review sender IDs."`
	Credits   funds.Credits      `cmd:"" group:"Messages:" help:"Sell, refund and report SMS credits."`
	Campaigns accounts.Campaigns `cmd:"" group:"Messages:" help:"List and stop campaigns."`
	Incoming  accounts.Incoming  `cmd:"" group:"Messages:" help:"List texts from handsets, and the numbers that receive them."`
	OTP       accounts.OTP       `cmd:"" name:"otp" group:"Messages:" help:"Manage ranges of numbers that are closed for one-time passwords."`
	Contacts  accounts.Contacts  `cmd:"" group:"Messages:" help:"Manage contact groups and opt-outs."`

	Sim    simCommand        `cmd:"" group:"Development:" help:"Start the simulator without a server."`
	Sample operations.Sample `cmd:"" group:"Development:" help:"Create a data folder with months of sample history, to view with makola serve."`

	Version    versionCommand    `cmd:"" group:"This program:" help:"Print the version, the commit, Go's version and the schema. Same as --version."`
	Help       helpCommand       `cmd:"" group:"This program:" help:"Print the help of a command. Same as --help."`
	Completion completionCommand `cmd:"" group:"This program:" help:"Print a script for shell completion."`
	Complete   completeCommand   `cmd:"" hidden:"" group:"This program:" help:"Print completions of a line for the shell."`
}

// exit is the panic value with which the parser ends after it has printed help.
type exit int

// Run runs the command line args, without the program's name, and returns the exit code. An interrupt ends the
// command's context. A second interrupt ends the process, which is always safe.
func Run(args []string, stdout, stderr io.Writer) (code int) {
	ctx, stop := interruptible()
	defer stop()
	return run(args, &frame.Env{Version: Version(), Ctx: ctx, Stdin: os.Stdin, Stdout: stdout, Stderr: stderr, Terminal: frame.Interactive(os.Stdin, stderr)})
}

// run is Run in an environment.
func run(args []string, e *frame.Env) (code int) {
	defer func() {
		if p := recover(); p != nil {
			left, ok := p.(exit)
			if !ok {
				panic(p)
			}
			code = int(left)
		}
	}()
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	parser, err := newParser(branch(args[0]), e.Stdout, e.Stderr)
	if err != nil {
		fmt.Fprintln(e.Stderr, "makola:", err)
		return frame.ExitInternal
	}
	command, err := parser.Parse(accounts.FieldFlags(args))
	if err != nil {
		fmt.Fprintln(e.Stderr, "makola:", words(err.Error()))
		var parse *kong.ParseError
		if errors.As(err, &parse) && parse.Context != nil && parse.Context.Selected() != nil {
			fmt.Fprintf(e.Stderr, "Try: makola %s --help\n", frame.CommandName(parse.Context.Selected()))
		} else {
			fmt.Fprintln(e.Stderr, "Try: makola --help")
		}
		return frame.ExitUsage
	}
	if err := checkVariables(parser.Model, os.Environ()); err != nil && !talks(command) {
		all, wrong := Model() // the variable may be meant for another command
		if wrong == nil {
			wrong = checkVariables(all, os.Environ())
		}
		if wrong != nil {
			return frame.Report(e.Stderr, wrong)
		}
	}
	if err := oneDatabase(command); err != nil {
		return frame.Report(e.Stderr, err)
	}
	e.Flags = flagsOf(command)
	e.Authority = frame.AuthorityOf(command)
	if err := perform(e, command); err != nil {
		return frame.Report(e.Stderr, err)
	}
	return frame.ExitOK
}

// perform runs a command. If a table of aliases has the command, it requests the change. Otherwise it calls
// the command's Run.
func perform(e *frame.Env, command *kong.Context) error {
	for _, table := range []map[string]frame.Alias{accounts.Aliases, funds.Aliases, operations.Aliases} {
		if alias, is := table[frame.CommandName(command.Selected())]; is {
			return alias.Run(e, command)
		}
	}
	return command.Run(e)
}

// oneDatabase refuses --data while MAKOLA_DATABASE is set, except for serve, which uses both. The operator may expect
// the command to read the database in the folder.
func oneDatabase(line *kong.Context) error {
	if command := line.Selected(); command == nil || frame.CommandName(command) == "serve" {
		return nil
	}
	given := map[string]bool{}
	for _, f := range flagsOf(line) {
		given[f.Name] = true
	}
	for _, f := range line.Flags() {
		if url, _ := f.Target.Interface().(string); f.Name == "database" && url != "" && given["data"] && !given["database"] {
			return frame.Usage("--data names a folder and MAKOLA_DATABASE a PostgreSQL database: give only one of them. " +
				"Add --database for PostgreSQL, or unset MAKOLA_DATABASE for the folder. MAKOLA_DATA may stay set next to a PostgreSQL database")
		}
	}
	return nil
}

// flagsOf lists the flags given on the line, without those of the environment.
func flagsOf(line *kong.Context) (flags []*kong.Flag) {
	for _, p := range line.Path {
		if p.Flag != nil {
			flags = append(flags, p.Flag)
		}
	}
	return flags
}

// interruptible returns a context that ends with the first interrupt. From then on interrupts are no longer caught.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup the signal is ignored
		signal.Notify(caught, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-caught:
		case <-ctx.Done():
		}
		signal.Stop(caught)
		cancel()
	}()
	return ctx, cancel
}

// branch returns the commands below the first argument, or all commands if it names none. Describing all of them to
// the parser takes longer than most commands.
func branch(name string) any {
	all := reflect.TypeFor[commands]()
	for i := range all.NumField() {
		noun := all.Field(i)
		names := append(strings.Split(noun.Tag.Get("aliases"), ","), cmp.Or(noun.Tag.Get("name"), strings.ToLower(noun.Name)))
		if slices.Contains(names, name) && name != "" {
			return reflect.New(reflect.StructOf([]reflect.StructField{noun})).Interface()
		}
	}
	return &commands{}
}

// newParser makes the parser of a tree of commands.
func newParser(root any, stdout, stderr io.Writer) (*kong.Kong, error) {
	parser, err := kong.New(root,
		kong.Name("makola"),
		kong.Description("Collect and send mobile money, send bank transfers, sell airtime and data, send SMS: one program, one interface."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ValueFormatter(helpOf),
		kong.TypeMapper(reflect.TypeFor[netip.Prefix](), kong.MapperFunc(frame.AddressesFlag)),
	)
	if err != nil {
		return nil, err
	}
	// An empty variable counts as unset, because some programs pass unset variables on as empty ones.
	return parser, kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, is := node.(*kong.Flag); is {
			flag.Tag.Envs = slices.DeleteFunc(slices.Clone(flag.Tag.Envs), func(name string) bool {
				value, set := os.LookupEnv(name)
				return set && value == ""
			})
		}
		return next(nil)
	})
}

// helpOf returns the help of a flag with its environment variable, and with the default if a placeholder hides it.
func helpOf(v *kong.Value) string {
	help := kong.DefaultHelpValueFormatter(v)
	if v.Flag != nil && v.Flag.PlaceHolder != "" && v.Default != "" {
		help += " Default: " + v.Default + "."
	}
	return help
}
