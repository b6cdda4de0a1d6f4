// Package cli is the command line. There is one file for each noun, and a
// command is a struct whose members are its flags and whose Run does the work.
// Commands open the database themselves, with the same packages and the same
// guarded statements as the server, and work while it runs and while it does
// not. Apart from serve, migrate up and migrate copy none of them changes the schema. A command
// writes what the operator did into the audit log in the same transaction.
//
// Files:
//
//	cli.go                     the command line parsed and run, and exit codes
//	model.go                   the commands described for documents
//	help.go                    help for people, versions, completion
//	flags.go                   values of flags: amounts, quotas, switches
//	open.go                    the database opened, and what a command needs of it
//	authority.go               who gives a command (a person, or a user of the machine), and whether they may
//	order.go                   an order about money: checked, asked about, done
//	output.go, progress.go     tables, JSON and CSV; how far a long command is
//	serve.go                   the server: master key, log
//	collector.go               how much garbage the server may hold
//	doctor.go, health.go       what is wrong with an installation (doctor_scrape.go: by its metrics); whether a server is well
//	migrate.go                 the schema; migrate_copy.go: a move to PostgreSQL
//	backup.go                  backups made, checked and restored
//	recovery.go, claims.go     after a restore: the steps, and what customers claim
//	clock.go                   clocks of servers that were set
//	recovery_access.go         the keys and people to check after a restore
//	ledger.go, statement.go    books checked; statements, and one payment explained
//	wallet.go, credits.go      money of wallets and floats; SMS credits
//	payouts.go                 payments found, listed and resolved
//	fees.go, catalogue.go      prices; networks, services, banks and prefixes
//	providers.go               providers: state, pauses, routes, exchanges
//	webhooks.go, jobs.go       deliveries; the queue and its dead letters
//	tenant.go, key.go          accounts; API keys
//	people.go, approvals.go    persons and their roles; acts that wait
//	keys.go, audit.go          master keys; the audit log
//	privacy.go                 one person's data, shown and erased
//	messaging.go               what commands of texts share
//	campaigns.go, senders.go   campaigns and messages; sender IDs
//	contacts.go, otp.go        groups and imports; closed ranges of numbers
//	sample.go                  an installation filled with samples
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
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/makola/makola/internal/problem"
)

// commands is the whole command line; a noun is one member and one file.
type commands struct {
	Serve    serveCommand    `cmd:"" help:"Start the server."`
	Sim      simCommand      `cmd:"" help:"Run the simulator alone."`
	Sample   sampleCommand   `cmd:"" help:"Make a data folder with months of plausible history, to look at with makola serve."`
	Doctor   doctorCommand   `cmd:"" help:"Look for what is wrong with this installation, with the server's settings; changes nothing. Fails when a check does."`
	Health   healthCommand   `cmd:"" help:"Ask the server of this machine whether it takes requests, for health checks; fails where it does not."`
	Version  versionCommand  `cmd:"" help:"Print the version, the commit, Go's version and the schema; so does --version."`
	Help     helpCommand     `cmd:"" help:"Print the help of a command, as --help does."`
	Complete completeCommand `cmd:"" hidden:"" help:"What a shell asks to complete a line."`

	Completion completionCommand `cmd:"" help:"Print a script that completes commands and flags in a shell."`

	Migrate   migrateCommands   `cmd:"" help:"The schema: status, up; copy moves to PostgreSQL."`
	Tenant    tenantCommands    `cmd:"" help:"Customers: make, list, show, change."`
	People    peopleCommands    `cmd:"" help:"People of the console: create, list, invite, role, disable, enable, reset."`
	Acts      actsCommands      `cmd:"" help:"What people asked for that needs a second person: list, show."`
	Change    changeCommand     `cmd:"" help:"Request a change of any kind by its fields, such as makola change wallet.fund --tenant ID --amount 250 --reason TEXT."`
	Fees      feesCommands      `cmd:"" help:"Fee plans: show and set."`
	Key       keyCommands       `cmd:"" help:"API keys: make, list, rotate, revoke."`
	Keys      keysCommands      `cmd:"" help:"Master keys, under which secrets are sealed: status, rotate. API keys are makola key."`
	Wallet    walletCommands    `cmd:"" help:"Wallets: show, fund, adjust, transfer."`
	Float     floatCommands     `cmd:"" help:"Money at the providers: show, add."`
	Payouts   payoutsCommands   `cmd:"" help:"Payments: list, stuck, show, resolve, decide."`
	Ledger    ledgerCommands    `cmd:"" help:"The books: check, balance, statement."`
	Audit     auditCommands     `cmd:"" help:"What operators did."`
	Privacy   privacyCommands   `cmd:"" help:"What is known of a person: export, erase."`
	Providers providersCommands `cmd:"" help:"Providers: list, pause, resume, routes, exchanges."`
	Catalogue catalogueCommands `cmd:"" help:"Airtime networks, data services and banks: list, change."`
	Webhooks  webhooksCommands  `cmd:"" help:"Events sent to customers: list, attempts, replay, secret."`
	Senders   sendersCommands   `cmd:"" help:"Sender IDs: list, create, approve, reject."`
	Credits   creditsCommands   `cmd:"" help:"SMS credits: sell, refund, report."`
	Campaigns campaignsCommands `cmd:"" help:"Campaigns: list, messages, stop."`
	OTP       otpCommands       `cmd:"" name:"otp" help:"One-time passwords: ranges of numbers that are closed, reopen."`
	Contacts  contactsCommands  `cmd:"" help:"Customers' contacts: groups, import, opt-outs."`
	Backup    backupCommands    `cmd:"" help:"Copies of the database: make, verify, list, drill, record."`
	Restore   restoreCommand    `cmd:"" help:"Make a database of a backup, in a new place: a folder without one, or a PostgreSQL database without tables."`
	Recovery  recoveryCommands  `cmd:"" help:"A database that may have gone back in time: status, begin, open, skip, allow, end."`
	Clock     clockCommands     `cmd:"" help:"Clocks of servers that were set: steps, accept."`
	Jobs      jobsCommands      `cmd:"" help:"The durable queue: list, dead letters, rerun, depth."`
}

// The exit codes.
const (
	exitOK          = 0  // done
	exitInternal    = 1  // something went wrong that is not the operator's doing, or a check found something wrong
	exitUsage       = 2  // wrong flags or values
	exitUnavailable = 3  // the database or a provider cannot be used now; trying later is right
	exitNotFound    = 4  // there is no such thing
	exitConflict    = 5  // done before, or by another command
	exitForbidden   = 6  // not allowed
	exitFunds       = 7  // a wallet, credits or a float do not cover it
	exitRefused     = 8  // a provider said no
	exitUnknown     = 9  // the outcome is unknown: look before trying again
	exitDeclined    = 10 // a question was answered with no: nothing was done
	exitWaits       = 11 // it waits for a second person, who checks it in the console
)

var exitCodes = map[problem.Kind]int{
	problem.Malformed: exitUsage, problem.Invalid: exitUsage, problem.TooLarge: exitUsage,
	problem.Unavailable: exitUnavailable, problem.RateLimited: exitUnavailable,
	problem.NotFound:  exitNotFound,
	problem.Duplicate: exitConflict, problem.InProgress: exitConflict, problem.Gone: exitConflict,
	problem.Forbidden: exitForbidden, problem.Unauthenticated: exitForbidden,
	problem.InsufficientFunds: exitFunds, problem.InsufficientCredits: exitFunds,
	problem.Refused:  exitRefused,
	problem.Internal: exitInternal,
}

// codeUnknown is the code of a problem with an unknown outcome.
const codeUnknown = "outcome_unknown"

// env is what a command is given to work with.
type env struct {
	ctx            context.Context
	stdin          io.Reader
	flags          []*kong.Flag // that the line gives
	stdout, stderr io.Writer
	terminal       bool       // a person reads stderr and can answer on stdin
	authority      *authority // who gives a command that changes something
}

// warn writes a warning to stderr, in red where a person reads it.
func (e *env) warn(text string) {
	if terminal(e.stderr) && os.Getenv("NO_COLOR") == "" {
		text = "\x1b[31m" + text + "\x1b[0m"
	}
	fmt.Fprintf(e.stderr, "makola: %s\n", text)
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
	return run(args, &env{ctx: ctx, stdin: os.Stdin, stdout: stdout, stderr: stderr, terminal: interactive(os.Stdin, stderr)})
}

// run is Run in an environment.
func run(args []string, e *env) (code int) {
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
	parser, err := newParser(&root, e.stdout, e.stderr)
	if err != nil {
		fmt.Fprintln(e.stderr, "makola:", err)
		return exitInternal
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	command, err := parser.Parse(fieldFlags(args))
	if err != nil {
		fmt.Fprintln(e.stderr, "makola:", words(err.Error()))
		var parse *kong.ParseError
		if errors.As(err, &parse) && parse.Context != nil && parse.Context.Command() != "" {
			fmt.Fprintf(e.stderr, "Try: makola %s --help\n", parse.Context.Command())
		} else {
			fmt.Fprintln(e.stderr, "Try: makola --help")
		}
		return exitUsage
	}
	if err := checkVariables(parser.Model, os.Environ()); err != nil && !talks(command) {
		return report(e.stderr, err)
	}
	if err := oneDatabase(command); err != nil {
		return report(e.stderr, err)
	}
	e.flags = flagsOf(command)
	e.authority = authorityOf(command)
	if err := command.Run(e); err != nil {
		return report(e.stderr, err)
	}
	return exitOK
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
			return usage("--data names a folder and MAKOLA_DATABASE a PostgreSQL database, so it is not clear which database is meant. " +
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
		kong.TypeMapper(reflect.TypeFor[netip.Prefix](), kong.MapperFunc(addressesFlag)),
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

// usage is the refusal of flags that do not go together.
func usage(text string) error { return problem.New(problem.Malformed, "usage", text) }

// report says on stderr what went wrong and gives the exit code. This is the
// edge: nothing below it prints errors.
func report(stderr io.Writer, err error) int {
	if errors.Is(err, errDeclined) {
		fmt.Fprintln(stderr, "makola: Nothing was done.")
		return exitDeclined
	}
	var waits *waitsError
	if errors.As(err, &waits) {
		fmt.Fprintln(stderr, "makola:", waits)
		return exitWaits
	}
	p := problem.From(err)
	fmt.Fprintln(stderr, "makola:", p.Message)
	if len(p.Fields) > 1 || len(p.Fields) == 1 && p.Kind != problem.Invalid {
		for _, name := range p.FieldNames() {
			for _, text := range p.Fields[name] {
				fmt.Fprintf(stderr, "  %s %s\n", name, text)
			}
		}
	}
	if p.Cause != nil && slices.Contains([]problem.Kind{problem.Internal, problem.Unavailable}, p.Kind) {
		fmt.Fprintln(stderr, "  because:", p.Cause)
	} else if p.Kind == problem.Unavailable && err.Error() != p.Message { // the database's own words
		fmt.Fprintln(stderr, "  because:", strings.TrimPrefix(err.Error(), p.Message+": "))
	}
	if p.Code == codeUnknown {
		return exitUnknown
	}
	if code, ok := exitCodes[p.Kind]; ok {
		return code
	}
	return exitInternal
}
