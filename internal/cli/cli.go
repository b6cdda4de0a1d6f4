// Package cli is the command line: the tree of commands, the parser, and the commands that concern the program itself. A
// command is a struct whose members are its flags and whose Run does the work; frame has what they all use, and accounts,
// funds and operations have one file for each noun. Commands open the database themselves, with the same packages and the
// same guarded statements as the server, and work whether or not a server runs. Apart from serve, migrate up and migrate
// copy none of them changes the schema. A command writes what the operator did into the audit log in the same transaction.
//
// Files:
//
//	cli.go                     the tree of commands, the line parsed and run
//	model.go                   the commands described for documents
//	help.go                    help for people, versions, completion
//	serve.go                   the server and its log; the simulator
//	collector.go               how much garbage the server may hold
//	doctor.go, health.go       faults of an installation (doctor_scrape.go: by its metrics); the condition of a server
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/cli/accounts"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/cli/funds"
	"github.com/makola/makola/internal/cli/operations"
)

// commands is the whole command line; a noun is one member and one file.
type commands struct {
	Serve    serveCommand      `cmd:"" help:"Start the server."`
	Sim      simCommand        `cmd:"" help:"Run the simulator alone."`
	Sample   operations.Sample `cmd:"" help:"Make a data folder with months of plausible history, to look at with makola serve."`
	Doctor   doctorCommand     `cmd:"" help:"Look for what is wrong with this installation, with the server's settings; changes nothing. Fails when a check does."`
	Health   healthCommand     `cmd:"" help:"Ask the server of this machine whether it takes requests, for health checks; fails where it does not."`
	Version  versionCommand    `cmd:"" help:"Print the version, the commit, Go's version and the schema; so does --version."`
	Help     helpCommand       `cmd:"" help:"Print the help of a command, as --help does."`
	Complete completeCommand   `cmd:"" hidden:"" help:"What a shell asks to complete a line."`

	Completion completionCommand `cmd:"" help:"Print a script that completes commands and flags in a shell."`

	Migrate   operations.Migrate  `cmd:"" help:"The schema: status, up; copy moves to PostgreSQL."`
	Tenant    accounts.Tenant     `cmd:"" help:"Customers: make, list, show, change."`
	People    accounts.People     `cmd:"" help:"People of the console: create, list, invite, role, disable, enable, reset."`
	Acts      accounts.Acts       `cmd:"" help:"What people asked for that needs a second person: list, show."`
	Change    accounts.Change     `cmd:"" help:"Request a change of any kind by its fields, such as makola change wallet.fund --tenant ID --amount 250 --reason TEXT."`
	Fees      funds.Fees          `cmd:"" help:"Fee plans: show and set."`
	Key       accounts.Key        `cmd:"" help:"API keys: make, list, rotate, revoke."`
	Keys      operations.Keys     `cmd:"" help:"Master keys, under which secrets are sealed: status, rotate. API keys are makola key."`
	Wallet    funds.Wallet        `cmd:"" help:"Wallets: show, fund, adjust, transfer."`
	Float     funds.Float         `cmd:"" help:"Money at the providers: show, add."`
	Payouts   funds.Payouts       `cmd:"" help:"Payments: list, stuck, show, resolve, decide."`
	Ledger    funds.Ledger        `cmd:"" help:"The books: check, balance, statement."`
	Audit     accounts.Audit      `cmd:"" help:"What operators did."`
	Privacy   accounts.Privacy    `cmd:"" help:"What is known of a person: export, erase."`
	Providers funds.Providers     `cmd:"" help:"Providers: list, pause, resume, routes, exchanges."`
	Catalogue funds.Catalogue     `cmd:"" help:"Airtime networks, data services and banks: list, change."`
	Webhooks  accounts.Webhooks   `cmd:"" help:"Events sent to customers: list, attempts, replay, secret."`
	Senders   accounts.Senders    `cmd:"" help:"Sender IDs: list, create, approve, reject."`
	Credits   funds.Credits       `cmd:"" help:"SMS credits: sell, refund, report."`
	Campaigns accounts.Campaigns  `cmd:"" help:"Campaigns: list, messages, stop."`
	OTP       accounts.OTP        `cmd:"" name:"otp" help:"One-time passwords: ranges of numbers that are closed, reopen."`
	Contacts  accounts.Contacts   `cmd:"" help:"Customers' contacts: groups, import, opt-outs."`
	Backup    operations.Backup   `cmd:"" help:"Copies of the database: make, verify, list, drill, record."`
	Restore   operations.Restore  `cmd:"" help:"Make a database of a backup, in a new place: a folder without one, or a PostgreSQL database without tables."`
	Recovery  operations.Recovery `cmd:"" help:"A database that may have gone back in time: status, begin, open, skip, allow, end."`
	Clock     operations.Clock    `cmd:"" help:"Clocks of servers that were set: steps, accept."`
	Jobs      operations.Jobs     `cmd:"" help:"The durable queue: list, dead letters, rerun, depth."`
}

// exit carries the code out of the parser, which leaves the program after
// printing help.
type exit int

// Run runs the command line args (without the program's name) and gives the
// exit code. An interrupt ends the command's context; the next one ends the
// process, which nothing that it does minds.
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
	var root commands
	parser, err := newParser(&root, e.Stdout, e.Stderr)
	if err != nil {
		fmt.Fprintln(e.Stderr, "makola:", err)
		return frame.ExitInternal
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	command, err := parser.Parse(accounts.FieldFlags(args))
	if err != nil {
		fmt.Fprintln(e.Stderr, "makola:", words(err.Error()))
		var parse *kong.ParseError
		if errors.As(err, &parse) && parse.Context != nil && parse.Context.Command() != "" {
			fmt.Fprintf(e.Stderr, "Try: makola %s --help\n", parse.Context.Command())
		} else {
			fmt.Fprintln(e.Stderr, "Try: makola --help")
		}
		return frame.ExitUsage
	}
	if err := checkVariables(parser.Model, os.Environ()); err != nil && !talks(command) {
		return frame.Report(e.Stderr, err)
	}
	if err := oneDatabase(command); err != nil {
		return frame.Report(e.Stderr, err)
	}
	e.Flags = flagsOf(command)
	e.Authority = frame.AuthorityOf(command)
	if err := command.Run(e); err != nil {
		return frame.Report(e.Stderr, err)
	}
	return frame.ExitOK
}

// oneDatabase refuses a line that names a data folder while the environment names a PostgreSQL database: the operator may
// believe that the command is about the folder's. A server has both.
func oneDatabase(line *kong.Context) error {
	if command := line.Selected(); command == nil || command.Path() == "serve" {
		return nil
	}
	given := map[string]bool{}
	for _, f := range flagsOf(line) {
		given[f.Name] = true
	}
	for _, f := range line.Flags() {
		if url, _ := f.Target.Interface().(string); f.Name == "database" && url != "" && given["data"] && !given["database"] {
			return frame.Usage("--data names a folder and MAKOLA_DATABASE a PostgreSQL database, so it is not clear which database is meant. " +
				"Add --database for PostgreSQL, or unset MAKOLA_DATABASE for the folder. MAKOLA_DATA names a folder beside a PostgreSQL database")
		}
	}
	return nil
}

// flagsOf lists the flags that a line gives. Those that the environment gives are not among them.
func flagsOf(line *kong.Context) (flags []*kong.Flag) {
	for _, p := range line.Path {
		if p.Flag != nil {
			flags = append(flags, p.Flag)
		}
	}
	return flags
}

// interruptible gives a context that ends with the first interrupt. When it does,
// the next one is not caught any more.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
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

// newParser makes the parser of the whole command line.
func newParser(root *commands, stdout, stderr io.Writer) (*kong.Kong, error) {
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
	// An empty variable counts as unset: a program that passes its variables on passes unset ones as empty.
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

// helpOf is the help of a flag with its environment variable, and with the default where a placeholder stands in its place.
func helpOf(v *kong.Value) string {
	help := kong.DefaultHelpValueFormatter(v)
	if v.Flag != nil && v.Flag.PlaceHolder != "" && v.Default != "" {
		help += " Default: " + v.Default + "."
	}
	return help
}
