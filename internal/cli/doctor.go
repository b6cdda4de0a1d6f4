package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/timekeeping"
)

// doctorCommand checks an installation with the settings of a server. It changes nothing and sends no request to a
// provider.
type doctorCommand struct {
	config.Server `embed:""`
	Output        string        `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"Format of the output: table, json or csv."`
	Within        time.Duration `name:"within" default:"5s" placeholder:"DURATION" help:"Maximum time for each provider, and for the server's metrics, to answer."`
}

// The states of a finding. Only fail makes the command fail.
const (
	stateOK   = "ok"
	stateWarn = "warn"
	stateFail = "fail"
)

// A finding is one line of the report.
type finding struct {
	check string // name of the check
	state string
	fact  string // result of the check
	fix   string // the fix; empty if nothing is to be done
}

var findingColumns = []frame.Column[finding]{
	{Name: "state", Value: func(f finding) any { return f.state }},
	{Name: "check", Value: func(f finding) any { return f.check }},
	{Name: "fact", Value: func(f finding) any { return f.fact }},
	{Name: "fix", Value: func(f finding) any { return f.fix }},
}

// Limits beyond which a finding is a warning or a failure.
const (
	skewWarn      = time.Second
	skewFail      = 5 * time.Second // a lease of the queue lasts 15 s
	fewFiles      = 256
	unknownWarn   = time.Minute
	unknownFail   = time.Hour      // the alert
	checkFail     = 2 * time.Hour  // the alert
	fullCheckFail = 72 * time.Hour // the alert
	backupFail    = 26 * time.Hour
	certificateBy = 14 * 24 * time.Hour
)

// A doctor collects findings.
type doctor struct {
	*doctorCommand
	e      *frame.Env
	clock  *clock.Clock
	files  int // number of files that this process may have open
	secret config.Secret
	found  []finding
}

// Run prints the findings. It fails if a check fails.
func (c *doctorCommand) Run(e *frame.Env) error {
	if c.Production() {
		if err := frame.ReadableFlag(e.Flags); err != nil {
			return err
		}
	}
	d := &doctor{doctorCommand: c, e: e, clock: clock.Real(), files: app.Descriptors()}
	d.examine(e.Ctx)
	if err := frame.PrintAll(e.Stdout, c.Output, findingColumns, d.found); err != nil {
		return err
	}
	failed := 0
	for _, f := range d.found {
		if f.state == stateFail {
			failed++
		}
	}
	if failed > 0 {
		return problem.New(problem.Internal, "unhealthy", fmt.Sprintf("%d of %d checks fail", failed, len(d.found)))
	}
	return nil
}

// examine runs every check: first the settings, then the database, the server on this machine, and the providers.
func (d *doctor) examine(ctx context.Context) {
	d.variables(os.Environ())
	d.settings()
	d.masterKey()
	d.stored(ctx)
	d.disk()
	d.descriptors()
	d.certificate()
	d.running(ctx)
	d.mailServer(ctx)
	d.providers(ctx)
}

func (d *doctor) ok(check, format string, values ...any) {
	d.found = append(d.found, finding{check, stateOK, fmt.Sprintf(format, values...), ""})
}

func (d *doctor) warn(check, fact, fix string) {
	d.found = append(d.found, finding{check, stateWarn, fact, fix})
}

func (d *doctor) fail(check, fact, fix string) {
	d.found = append(d.found, finding{check, stateFail, fact, fix})
}

// variables finds environment variables that no setting reads.
func (d *doctor) variables(environment []string) {
	model, err := Model()
	if err == nil {
		err = checkVariables(model, environment)
	}
	if err != nil {
		d.fail("variables", problem.From(err).Message, "unset it or correct its name; a server does not start with it")
		return
	}
	d.ok("variables", "every MAKOLA_ variable that is set is known")
}

// settings finds settings that serve refuses.
func (d *doctor) settings() {
	unfit := d.Wrong()
	mode := "development"
	if d.Production() {
		mode = "production, because " + d.WhyProduction()
		key := d.Server
		key.Secret, _ = frame.MasterKey() // faults of the master key are reported by masterKey
		unfit = append(key.Missing(), unfit...)
	}
	for _, what := range unfit {
		d.fail("settings", "the server needs "+what, "set it with the other settings of the server; the mode is "+mode)
	}
	if len(unfit) == 0 {
		d.ok("settings", "complete; the mode is %s", mode)
	}
}

// masterKey checks the key itself. Another check compares it with the database.
func (d *doctor) masterKey() {
	const remedy = "set " + config.EnvMasterKeyFile + " to a file made with openssl rand -hex 32, or to your copy of the key"
	secret, err := frame.MasterKey()
	if err == nil && secret.Empty() && d.Production() {
		d.fail("key", "there is no master key", remedy)
		return
	}
	development := secret.Empty()
	if err == nil && development {
		secret, err = app.DevelopmentSecret(d.Storage, false)
	}
	if err != nil {
		d.fail("key", fmt.Sprintf("the master key cannot be read: %v", err), remedy)
		return
	}
	d.secret = secret
	for _, key := range keyVariables {
		if path := os.Getenv(key.file); path != "" && os.Getenv(key.text) == "" {
			if err := config.CheckSecretFile(path); err != nil {
				d.fail("key", err.Error(), "chmod 600 "+path)
				return
			}
		}
	}
	switch {
	case development:
		d.ok("key", "the development key, which is not for production")
	case secret.Weak():
		d.warn("key", "the master key does not look random", remedy)
	default:
		d.ok("key", "set, and random")
	}
}

// stored makes the checks that read the database.
func (d *doctor) stored(ctx context.Context) {
	c := frame.Common{Storage: d.Storage}
	fix := "check MAKOLA_DATABASE or MAKOLA_DATA, and whether the database runs; for a new installation first run makola migrate up"
	if err := c.There(); err != nil {
		d.fail("database", problem.From(err).Message, fix)
		return
	}
	opened, err := db.Open(ctx, db.Options{URL: d.Database, Path: d.SQLite(), MaxConns: frame.Connections})
	if resource, message := postgres.Exhausted(err); resource != "" {
		d.fail("database", fmt.Sprintf("PostgreSQL has no %s left: %s", resource, message), exhaustedFix(resource))
		return
	}
	if err != nil {
		d.fail("database", fmt.Sprintf("it cannot be opened: %v", err), fix)
		return
	}
	defer func() {
		if err := opened.Close(); err != nil {
			d.warn("database", fmt.Sprintf("it was not closed: %v", err), "")
		}
	}()
	d.ok("database", "%s answers", opened.Engine())
	d.skew(ctx, opened)
	if opened.Engine() == db.Postgres {
		d.connections(ctx, opened)
		d.room(ctx, opened)
	}
	if !d.schema(ctx, opened) {
		return
	}
	d.clockSteps(ctx, opened)
	o := frame.Assemble(opened, d.clock)
	d.installation(ctx, o)
	d.recoveryState(ctx, o)
	d.oldestUnknown(ctx, o)
	d.lastBackup(ctx, o)
	d.unassigned(ctx, o)
}

// exhaustedFix is the fix if PostgreSQL has used up a resource.
func exhaustedFix(resource string) string {
	switch resource {
	case "disk space":
		return "free space on PostgreSQL's disk: inactive replication slots, kept WAL and logs are the usual causes"
	case "connections":
		return "raise max_connections or the limit of the role or database, or lower --connections; pg_stat_activity lists the open connections"
	}
	return "check PostgreSQL's log and the resources of its machine"
}

// connections compares PostgreSQL's limit with the open connections and those of a node.
func (d *doctor) connections(ctx context.Context, opened *db.DB) {
	const check = "connections of PostgreSQL"
	c, err := opened.Connections(ctx)
	if err != nil {
		d.fail(check, err.Error(), "check the database's log")
		return
	}
	if fact := fmt.Sprintf("%d of %d are open, a node opens up to %d", c.Used, c.Most, d.Server.Connections); c.Most-c.Used < int64(d.Server.Connections) {
		d.warn(check, fact, exhaustedFix("connections"))
	} else {
		d.ok(check, "%s", fact)
	}
}

// room checks whether PostgreSQL's disk has space for a few megabytes, by writing them. SQL cannot query the free
// space.
func (d *doctor) room(ctx context.Context, opened *db.DB) {
	const check = "disk of PostgreSQL"
	err := opened.TryRoom(ctx)
	switch resource, message := postgres.Exhausted(err); {
	case err == nil:
		d.ok(check, "stored %d MB and rolled them back", db.TriedRoom>>20)
	case resource != "":
		d.fail(check, fmt.Sprintf("PostgreSQL has no %s left: %s", resource, message), exhaustedFix(resource))
	default:
		d.warn(check, fmt.Sprintf("the test with %d MB failed: %v", db.TriedRoom>>20, err), "GRANT TEMPORARY ON DATABASE to the role, or look at PostgreSQL's log")
	}
}

// skew compares this machine's clock with the database's clock.
func (d *doctor) skew(ctx context.Context, opened *db.DB) {
	before := d.clock.Now()
	theirs, err := opened.Now(ctx)
	if err != nil {
		d.fail("clock", fmt.Sprintf("the database's time cannot be read: %v", err), "check the database's log")
		return
	}
	took := d.clock.Since(before)
	skew := before.Add(took / 2).Sub(theirs).Abs()
	fact := fmt.Sprintf("%s from the database's", skew.Round(time.Millisecond))
	const fix = "synchronise both machines by NTP: timedatectl status, chronyc tracking"
	switch {
	case skew-took/2 > skewFail:
		d.fail("clock", fact, fix)
	case skew-took/2 > skewWarn:
		d.warn("clock", fact, fix)
	default:
		d.ok("clock", "%s", fact)
	}
}

// stepsShown is how long doctor reports a step of a clock.
const stepsShown = 7 * 24 * time.Hour

// clockSteps reports when the clock of a server was set.
func (d *doctor) clockSteps(ctx context.Context, opened *db.DB) {
	list, err := timekeeping.List(ctx, opened, d.clock.Now().Add(-stepsShown), 100)
	list = slices.DeleteFunc(list, func(s timekeeping.Step) bool { return s.By == 0 }) // an operator has accepted the step
	switch {
	case err != nil:
		d.fail("clock steps", err.Error(), "check the database's log")
	case len(list) == 0:
		d.ok("clock steps", "none in seven days")
	default:
		last := list[0]
		d.warn("clock steps", fmt.Sprintf("%d steps in seven days, the last at %s by %v on %s", len(list), last.At.UTC().Format(time.RFC3339), last.By, last.Node),
			"let NTP slew the clock instead of setting it, and check whether a virtual machine was paused")
	}
}

// schema checks that the database has every migration of this program.
func (d *doctor) schema(ctx context.Context, opened *db.DB) bool {
	all, err := opened.MigrationStatus(ctx)
	if err != nil {
		d.fail("schema", err.Error(), "run the release that migrated this database last, or a newer one")
		return false
	}
	pending, newest := 0, all[len(all)-1].Number
	for _, m := range all {
		if m.Pending() {
			pending++
		}
	}
	if pending > 0 {
		d.fail("schema", fmt.Sprintf("the database lacks %d of the %d migrations of this program", pending, newest), "make a backup, then run makola migrate up")
		return false
	}
	d.ok("schema", "%d, the schema of this program", newest)
	return true
}

// installation checks that the master key belongs to this database.
func (d *doctor) installation(ctx context.Context, o *frame.Opened) {
	if d.secret.Empty() {
		return // reported by another check
	}
	err := o.Installation.CheckSecret(ctx, d.secret)
	switch {
	case errors.Is(err, installation.ErrWrongSecret):
		d.fail("key of the database", "the database belongs to another master key", "find the key of the servers: without it references and secrets are lost")
		d.secret = config.Secret{}
	case problem.Is(err, problem.Forbidden):
		d.fail("installation", problem.From(err).Message, "read docs/operations/scale.md, Move from SQLite to PostgreSQL")
		d.secret = config.Secret{}
	case err != nil:
		d.fail("key of the database", err.Error(), "check the database's log")
	default:
		d.ok("key of the database", "this master key belongs to the database")
		d.ring(ctx, o)
	}
}

// ring checks that the key ring has every key that sealed a stored value, and that no rotation is unfinished.
func (d *doctor) ring(ctx context.Context, o *frame.Opened) {
	sealed := o.Sealed(d.secret)
	if err := sealed.Check(ctx); err != nil {
		d.fail("ring of keys", problem.From(err).Message, "put the key back into "+config.EnvMasterKeyFile+"; a server does not start without it")
		return
	}
	keys, err := sealed.Keys(ctx)
	if err != nil {
		d.fail("ring of keys", err.Error(), "check the database's log")
		return
	}
	for _, k := range keys[1:] {
		if k.Total() > 0 {
			d.warn("ring of keys", fmt.Sprintf("%d are sealed under key %s, which is not the active one", k.Total(), k.Name), "run makola keys rotate when every server has the same ring")
			return
		}
	}
	d.ok("ring of keys", "all secrets are sealed under the active key, %s", keys[0].Name)
}

// recoveryState checks that no recovery is open.
func (d *doctor) recoveryState(ctx context.Context, o *frame.Opened) {
	s, err := o.Recovery().State(ctx)
	switch {
	case err != nil:
		d.fail("recovery", err.Error(), "check the database's log")
	case s.Closed():
		d.fail("recovery", fmt.Sprintf("closed since %s: customers get 503", s.BegunAt.UTC().Format(time.RFC3339)), "run makola recovery status, then makola recovery open")
	case s.Lasts():
		d.warn("recovery", fmt.Sprintf("open since %s", s.BegunAt.UTC().Format(time.RFC3339)), "run makola recovery status to see the remaining work, then makola recovery end")
	default:
		d.ok("recovery", "none in progress")
	}
}

// oldestUnknown finds payments whose outcome only an operator can determine.
func (d *doctor) oldestUnknown(ctx context.Context, o *frame.Opened) {
	if d.secret.Empty() {
		d.warn("unknown outcomes", "unknown, because no valid master key is set", "see the line about the master key")
		return
	}
	p := o.Payments(d.secret)
	defer p.Close()
	all, err := p.Unknown(ctx)
	if err != nil {
		d.fail("unknown outcomes", err.Error(), "check the database's log")
		return
	}
	count, oldest := int64(0), time.Time{}
	for _, u := range all {
		count += int64(u.Count)
		if u.Count > 0 && (oldest.IsZero() || u.Oldest.Before(oldest)) {
			oldest = u.Oldest
		}
	}
	if count == 0 {
		d.ok("unknown outcomes", "none")
		return
	}
	age := d.clock.Since(oldest)
	fact := fmt.Sprintf("%d payments, the oldest %s old", count, age.Round(time.Second))
	const fix = "run makola payouts stuck, then follow docs/runbooks/payout-stuck.md"
	if age > unknownFail {
		d.fail("unknown outcomes", fact, fix)
	} else {
		d.warn("unknown outcomes", fact, fix)
	}
}

// lastBackup checks the age of the last backup.
func (d *doctor) lastBackup(ctx context.Context, o *frame.Opened) {
	const fix = "run makola backup create and makola backup drill once a day by a timer; after a backup with another tool run makola backup record"
	bad := d.warn
	if d.Production() {
		bad = d.fail
	}
	last, found, err := backup.Last(ctx, o.DB)
	switch {
	case err != nil:
		d.fail("backup", err.Error(), "check the database's log")
	case !found:
		bad("backup", "the database has no record of a backup", fix)
	case d.clock.Since(last.MadeAt) > backupFail:
		bad("backup", fmt.Sprintf("the last one is %s old: %s", d.clock.Since(last.MadeAt).Round(time.Minute), last.File), fix)
	default:
		d.ok("backup", "%s old: %s", d.clock.Since(last.MadeAt).Round(time.Minute), last.File)
	}
}

// disk checks the free space for SQLite or, on PostgreSQL, for the journal.
func (d *doctor) disk() {
	const mb = 1 << 20
	free, known := db.Free(d.Data)
	if !known {
		d.warn("disk", fmt.Sprintf("the free space of %s cannot be read", d.Data), "set MAKOLA_DATA to an existing folder")
		return
	}
	reserve := uint64(max(d.DiskReserve, 0)) * mb
	fact := fmt.Sprintf("%d MB free in %s, %d MB are reserved for payments", free/mb, d.Data, reserve/mb)
	if d.Database != "" {
		fact = fmt.Sprintf("%d MB free in %s; another check tests PostgreSQL's own disk", free/mb, d.Data)
	}
	switch {
	case free < reserve:
		d.fail("disk", fact, "free space: below the reserve contacts, campaigns and sender IDs are refused")
	case free < 2*reserve:
		d.warn("disk", fact, "make room soon")
	default:
		d.ok("disk", "%s", fact)
	}
}

// descriptors compares the limit of open files with the allowed connections.
func (d *doctor) descriptors() {
	room := d.files / 4 * 3
	fact := fmt.Sprintf("this shell allows %d open files, which is enough for %d of %d clients", d.files, room, d.MaxClients)
	const fix = "LimitNOFILE=65536 in the unit of the service, or ulimit -n"
	switch {
	case d.files < fewFiles:
		d.fail("descriptors", fact, fix)
	case room < d.MaxClients:
		d.warn("descriptors", fact, fix)
	default:
		d.ok("descriptors", "%s", fact)
	}
}

// certificate checks the server's own certificate if the server ends TLS itself.
func (d *doctor) certificate() {
	if d.TLSCert == "" {
		return
	}
	const fix = "renew it: the server reads a changed file within a second"
	pair, err := tls.LoadX509KeyPair(d.TLSCert, d.TLSKey)
	if err != nil {
		d.fail("certificate", err.Error(), "correct MAKOLA_TLS_CERT and MAKOLA_TLS_KEY")
		return
	}
	left := pair.Leaf.NotAfter.Sub(d.clock.Now())
	fact := fmt.Sprintf("ends on %s", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	switch {
	case left <= 0:
		d.fail("certificate", fact, fix)
	case left < certificateBy:
		d.warn("certificate", fact, fix)
	default:
		d.ok("certificate", "%s", fact)
	}
}

// mailServer connects to the mail server of notices and signs in. It sends no mail.
func (d *doctor) mailServer(ctx context.Context) {
	const check = "mail server"
	if !d.SMTP.Enabled() {
		if d.Production() {
			d.warn(check, "none is configured, so nobody gets mails about stuck money or waiting requests", "set MAKOLA_SMTP_HOST and MAKOLA_SMTP_FROM")
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	if err := notice.Probe(ctx, d.SMTP); err != nil {
		d.fail(check, fmt.Sprintf("%s does not accept mail: %v", d.SMTP.Host, err), "check MAKOLA_SMTP_..., the firewall and the mail server's log; until then nobody gets mails")
		return
	}
	d.ok(check, "%s accepts connections", d.SMTP.Host)
}

// providers opens a TLS connection to every provider and closes it again. It sends no request.
func (d *doctor) providers(ctx context.Context) {
	peers, err := d.Peers()
	if err != nil {
		d.fail("providers", err.Error(), "correct the setting")
		return
	}
	if len(peers) == 0 {
		d.egressProxy(ctx)
		d.ok("providers", "none is configured")
		return
	}
	proxy := d.egressProxy(ctx)
	results := make([]finding, len(peers))
	var all sync.WaitGroup
	for i, p := range peers {
		all.Go(func() { results[i] = d.reach(ctx, proxy, p) })
	}
	all.Wait()
	d.found = append(d.found, results...)
}

// egressProxy connects to the egress proxy, if one is set, and closes the connection again. It opens no tunnel.
func (d *doctor) egressProxy(ctx context.Context) *outbound.Proxy {
	proxy, err := d.Egress.Proxy(slog.New(slog.DiscardHandler))
	if err != nil || proxy == nil { // an invalid URL is reported by the check of the settings
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	const check = "egress proxy"
	conn, err := proxy.Reach(ctx)
	if err != nil {
		d.fail(check, fmt.Sprintf("%s cannot be reached: %s", proxy.Address(), proxy.Explain(err)), "check MAKOLA_PROXY, the firewall and the proxy; until then nothing is sent to providers and webhook receivers")
		return proxy
	}
	_ = conn.Close()
	d.ok(check, "%s accepts connections; direct connections are used for loopback and %s", proxy.Address(), cmp.Or(strings.Join(d.Egress.Except, ", "), "nothing else"))
	return proxy
}

// reach connects to one provider, through the egress proxy if the provider's requests use it.
func (d *doctor) reach(ctx context.Context, proxy *outbound.Proxy, p config.Peer) finding {
	ctx, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	if !p.Proxied || !proxy.Through(p.Address) {
		proxy = nil
	}
	check, how, by := "provider "+p.Name, "without TLS", ""
	if p.TLS != nil {
		how = "with TLS"
	}
	fix := "check DNS, the firewall, and whether the provider allows our addresses"
	if proxy != nil {
		by = ", through the egress proxy"
		fix = "check the proxy's log, its list of allowed hosts, and whether the provider allows the proxy's addresses"
	}
	conn, err := proxy.Dial((&net.Dialer{}).DialContext)(ctx, "tcp", p.Address)
	if err != nil {
		return finding{check, stateFail, fmt.Sprintf("%s cannot be reached%s: %s", p.Address, by, proxy.Explain(err)), fix}
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	if p.TLS != nil {
		if err := tls.Client(conn, p.TLS).HandshakeContext(ctx); err != nil {
			return finding{check, stateFail, fmt.Sprintf("%s cannot be reached%s: %v", p.Address, by, err), fix}
		}
	}
	return finding{check, stateOK, fmt.Sprintf("%s accepts connections, %s%s", p.Address, how, by), ""}
}

// unassigned finds live money at a provider that is booked without an account there.
func (d *doctor) unassigned(ctx context.Context, o *frame.Opened) {
	const check = "floats"
	var ids []ledger.AccountID
	for _, name := range app.Providers() {
		ids = append(ids, ledger.Float(name))
	}
	balances, err := o.Ledger.Balances(ctx, ledger.GHS, ids)
	if err != nil {
		d.fail(check, err.Error(), "check the database's log")
		return
	}
	found := len(d.found)
	for _, id := range ids {
		if held := -balances[id]; held != 0 {
			d.warn(check, fmt.Sprintf("%s of %s are not assigned to an account at the provider", ledger.GHS.Text(held), id),
				"compare with the provider's balances, and assign the money by makola float add with --take and with --account")
		}
	}
	if len(d.found) == found {
		d.ok(check, "all money is assigned to an account at its provider")
	}
}
