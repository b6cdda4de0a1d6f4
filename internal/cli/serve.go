package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/problem"
)

// version is set by the linker for a release. For other builds it is empty, and the commit is shown.
var version = ""

// serveCommand starts the server.
type serveCommand struct {
	config.Server `embed:""`
	LogFormat     string `name:"log-format" env:"MAKOLA_LOG_FORMAT" enum:"auto,text,json" default:"auto" help:"text, json, or auto: text on a terminal, JSON elsewhere."`
	LogLevel      string `name:"log-level" env:"MAKOLA_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"Minimum level of log lines."`
}

// Run serves until an interrupt.
func (c *serveCommand) Run(e *frame.Env) error {
	secret, err := frame.MasterKey()
	if err != nil {
		return problem.Wrap(err, problem.Invalid, "master_key", fmt.Sprintf("The master key cannot be used: %v", err))
	}
	c.Secret = secret
	if err := readable(c.Server, e.Flags); err != nil {
		return err
	}
	outliveTheLog()
	collectLess(gcPercent)
	limitMemory(e.Ctx, c.Database != "")
	log := newLog(e.Stderr, c.LogFormat, c.LogLevel)
	a, err := app.Start(e.Ctx, c.Server, app.Options{Version: Version(), Out: e.Stdout, Log: log, Supervisor: supervisor(os.Getpid(), os.Getenv)})
	if err != nil {
		return serveProblem(err)
	}
	return a.Run(e.Ctx)
}

// supervisor holds the variables that systemd sets for the process.
func supervisor(pid int, getenv func(string) string) app.Supervisor {
	s := app.Supervisor{Socket: getenv("NOTIFY_SOCKET")}
	if of := getenv("WATCHDOG_PID"); of == "" || of == strconv.Itoa(pid) {
		if micros, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil {
			s.Watchdog = time.Duration(micros) * time.Microsecond
		}
	}
	return s
}

// readable refuses secrets of a production server that other users of the machine can read, in the list of processes or in
// a file.
func readable(s config.Server, flags []*kong.Flag) error {
	if !s.Production() {
		return nil
	}
	if err := frame.ReadableFlag(flags); err != nil {
		return err
	}
	for _, key := range keyVariables {
		if path := os.Getenv(key.file); path != "" && os.Getenv(key.text) == "" {
			if err := config.CheckSecretFile(path); err != nil {
				return problem.Wrap(err, problem.Invalid, "master_key", fmt.Sprintf("The master key cannot be used: %v", err))
			}
		}
	}
	return nil
}

// keyVariables are the variables of each key ring: one with the keys themselves, and one with the name of their
// file.
var keyVariables = []struct{ text, file string }{
	{config.EnvMasterKey, config.EnvMasterKeyFile},
	{config.EnvReferenceKey, config.EnvReferenceKeyFile},
}

// outliveTheLog ignores SIGPIPE, which would end the server at the next log line after its output was closed.
func outliveTheLog() { signal.Ignore(syscall.SIGPIPE) }

// serveProblem adds the fix to the error of a server that did not start.
func serveProblem(err error) error {
	switch {
	case errors.Is(err, db.ErrLocked):
		return problem.Wrap(err, problem.InProgress, "folder_in_use", strings.TrimPrefix(err.Error(), "db: "))
	case errors.Is(err, installation.ErrWrongSecret):
		return problem.Wrap(err, problem.Invalid, "master_key", "The master key cannot be used: "+err.Error())
	case errors.Is(err, app.ErrAddressInUse):
		return problem.New(problem.Unavailable, "address_in_use", fmt.Sprintf("%v\nChoose another address, for example: --listen 127.0.0.1:8081, or for the metrics: --metrics-listen 127.0.0.1:9091", err))
	case errors.Is(err, app.ErrAddressUnfit):
		return problem.New(problem.Invalid, "address_unfit", fmt.Sprintf("%v\nChoose an address of this machine, and a port that this user may open: --listen (MAKOLA_LISTEN), or for the metrics --metrics-listen (MAKOLA_METRICS_LISTEN)", err))
	}
	return err
}

func newLog(to io.Writer, format, level string) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // the parser has already checked the value
	options := &slog.HandlerOptions{Level: least, ReplaceAttr: withUnits}
	if format == "auto" {
		format = "json"
		if frame.Terminal(to) {
			format = "text"
		}
	}
	if format == "text" {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}

// withUnits formats durations as in the text format, such as 1.5s. JSON would print nanoseconds.
func withUnits(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// nextVersion is the version of a build that is not a release.
const nextVersion = "0.1.0"

// Version returns the release, or the commit of a build that is not a release.
func Version() string {
	if version != "" {
		return version
	}
	return nextVersion + " (" + cmp.Or(commit(), "unreleased") + ")"
}

// commit returns the commit of the build, and an empty text if the build does not contain it.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 7 {
				return s.Value[:7]
			}
		}
	}
	return ""
}

// simCommand runs the simulator without a server.
type simCommand struct {
	Listen    string `name:"listen" default:"127.0.0.1:8090" placeholder:"ADDRESS" help:"Address of the providers' interfaces and the control interface; port 0 means any free port."`
	SMPP      string `name:"smpp-listen" default:"127.0.0.1:2775" placeholder:"ADDRESS" help:"Address of the simulated message centre. If the port is in use, a free port is used."`
	Data      string `name:"data" default:"./makola-data" placeholder:"FOLDER" help:"Folder of the simulator's data."`
	Currency  string `name:"mtn-sandbox-currency" default:"EUR" placeholder:"CODE" help:"Currency of MTN's target environment sandbox."`
	Reasons   bool   `name:"mtn-reason-object" help:"Send the reason of a failed MTN payment as an object, as in MTN's specification, not as a text."`
	ReadyFile string `name:"ready-file" placeholder:"PATH" help:"Write a JSON file with the simulator's URL here once it listens."`
}

// Validate refuses an empty folder, an invalid currency and an address that other machines reach.
func (c *simCommand) Validate() error {
	if len(c.Currency) != 3 || strings.Trim(c.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return problem.Field("mtn-sandbox-currency", "must be three capital letters, such as EUR")
	}
	return config.Storage{Data: c.Data}.Validate()
}

// Run serves the simulator until an interrupt.
func (c *simCommand) Run(e *frame.Env) error {
	if !config.Loopback(c.Listen) || !config.Loopback(c.SMPP) {
		return problem.Field("listen", "must be a loopback address, because everybody who reaches the simulator can control it")
	}
	outliveTheLog()
	collectLess(gcPercentSimulator)
	return serveProblem(app.RunSimulator(e.Ctx, app.SimulatorOptions{
		Listen: c.Listen, SMPPListen: c.SMPP, Data: c.Data, ReadyFile: c.ReadyFile, MTNSandboxCurrency: c.Currency, MTNReasonObject: c.Reasons,
		Out: e.Stdout, Log: newLog(e.Stderr, "auto", "info"),
	}))
}
