package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/timekeeping"
)

// doctorCommand looks at an installation as a server with the same settings would find it. It changes nothing, and sends
// no request to a provider.
type doctorCommand struct {
	config.Server `embed:""`
	Output        string        `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"table, json or csv."`
	Within        time.Duration `name:"within" default:"5s" placeholder:"DURATION" help:"How long a provider, and the server's metrics, may take to answer."`
}

// The states of a finding. Only fail makes the command fail.
const (
	stateOK   = "ok"
	stateWarn = "warn"
	stateFail = "fail"
)

// A finding is one line of the report.
type finding struct {
	check string // what was looked at
	state string
	fact  string // what was seen
	fix   string // what to do about it; empty when nothing is to be done
}

var findingColumns = []column[finding]{
	{"state", func(f finding) any { return f.state }},
	{"check", func(f finding) any { return f.check }},
	{"fact", func(f finding) any { return f.fact }},
	{"fix", func(f finding) any { return f.fix }},
}

// Limits beyond which a finding is a warning or a failure.
const (
	skewWarn      = time.Second
	skewFail      = 5 * time.Second // a lease of the queue lasts 15 s
	fewFiles      = 256
	unknownWarn   = time.Minute
	unknownFail   = time.Hour     // the alert
	checkFail     = 2 * time.Hour // the alert
	backupFail    = 26 * time.Hour
	certificateBy = 14 * 24 * time.Hour
)

// A doctor collects findings.
type doctor struct {
	*doctorCommand
	e      *env
	clock  *clock.Clock
	files  int // that this process may have open
	secret config.Secret
	found  []finding
}

// Run prints the findings and fails when a check does.
func (c *doctorCommand) Run(e *env) error {
	if c.Production() {
		if err := readableFlag(e.flags); err != nil {
			return err
		}
	}
	d := &doctor{doctorCommand: c, e: e, clock: clock.Real(), files: app.Descriptors()}
	d.examine(e.ctx)
	if err := printAll(e.stdout, c.Output, findingColumns, d.found); err != nil {
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

// examine makes every check: first what needs nothing, then the database, the server that runs here, and the providers.
func (d *doctor) examine(ctx context.Context) {
	d.variables(os.Environ())
	d.settings()
	d.masterKey()
	d.stored(ctx)
	d.disk()
	d.descriptors()
	d.certificate()
	d.running(ctx)
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

// variables finds settings in the environment that nothing reads.
func (d *doctor) variables(environment []string) {
	model, err := Model()
	if err == nil {
		err = checkVariables(model, environment)
	}
	if err != nil {
		d.fail("variables", problem.From(err).Message, "unset it, or correct its name; a server does not start with it")
		return
	}
	d.ok("variables", "every MAKOLA_ variable that is set is known")
}

// settings finds what a start would refuse.
func (d *doctor) settings() {
	unfit := d.Wrong()
	mode := "development"
	if d.Production() {
		mode = "production, because " + d.WhyProduction()
		key := d.Server
		key.Secret, _ = masterKey() // what is wrong with it is a finding of its own
		unfit = append(key.Missing(), unfit...)
	}
	for _, what := range unfit {
		d.fail("settings", "the server needs "+what, "set it where the server's settings are; the mode is "+mode)
	}
	if len(unfit) == 0 {
		d.ok("settings", "complete; the mode is %s", mode)
	}
}

// masterKey looks at the key itself. Whether it is that of the database is a check of its own.
func (d *doctor) masterKey() {
	const remedy = "set " + config.EnvMasterKeyFile + " to a file made with openssl rand -hex 32, or to the copy that you keep of it"
	secret, err := masterKey()
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
		d.ok("key", "the key of development, which is not for production")
	case secret.Weak():
		d.warn("key", "the master key does not look random", remedy)
	default:
		d.ok("key", "there, and random")
	}
}

// stored makes the checks that the database answers.
func (d *doctor) stored(ctx context.Context) {
	c := common{Storage: d.Storage}
	fix := "look at MAKOLA_DATABASE or MAKOLA_DATA and whether the database runs; a new installation begins with makola migrate up"
	if err := c.there(); err != nil {
		d.fail("database", problem.From(err).Message, fix)
		return
	}
	opened, err := db.Open(ctx, db.Options{URL: d.Database, Path: d.SQLite(), MaxConns: connections})
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
	o := assemble(opened, d.clock)
	d.installation(ctx, o)
	d.recoveryState(ctx, o)
	d.oldestUnknown(ctx, o)
	d.lastBackup(ctx, o)
	d.unassigned(ctx, o)
}

// exhaustedFix is what to do where PostgreSQL has no more of a resource.
func exhaustedFix(resource string) string {
	switch resource {
	case "disk space":
		return "make room on PostgreSQL's disk: replication slots that nobody reads, kept WAL and logs fill it most often"
	case "connections":
		return "raise max_connections or the limit of the role or database, or lower --connections; pg_stat_activity lists who has them"
	}
	return "look at PostgreSQL's log and at the resources of its machine"
}

// connections compares PostgreSQL's limit with the connections that are open and those of a node.
func (d *doctor) connections(ctx context.Context, opened *db.DB) {
	const check = "connections of PostgreSQL"
	c, err := opened.Connections(ctx)
	if err != nil {
		d.fail(check, err.Error(), "look at the database's log")
		return
	}
	if fact := fmt.Sprintf("%d of %d are open, a node opens up to %d", c.Used, c.Most, d.Server.Connections); c.Most-c.Used < int64(d.Server.Connections) {
		d.warn(check, fact, exhaustedFix("connections"))
	} else {
		d.ok(check, "%s", fact)
	}
}

// room tries whether PostgreSQL's disk takes another few megabytes: SQL cannot ask for its free space.
func (d *doctor) room(ctx context.Context, opened *db.DB) {
	const check = "disk of PostgreSQL"
	err := opened.TryRoom(ctx)
	switch resource, message := postgres.Exhausted(err); {
	case err == nil:
		d.ok(check, "took %d MB, which were rolled back", db.TriedRoom>>20)
	case resource != "":
		d.fail(check, fmt.Sprintf("PostgreSQL has no %s left: %s", resource, message), exhaustedFix(resource))
	default:
		d.warn(check, fmt.Sprintf("whether it takes %d MB is not known: %v", db.TriedRoom>>20, err), "GRANT TEMPORARY ON DATABASE to the role, or look at PostgreSQL's log")
	}
}

// skew holds this machine's clock against the database's.
func (d *doctor) skew(ctx context.Context, opened *db.DB) {
	before := d.clock.Now()
	theirs, err := opened.Now(ctx)
	if err != nil {
		d.fail("clock", fmt.Sprintf("the database does not tell the time: %v", err), "look at the database's log")
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

// stepsShown is for how long a step of a clock is shown.
const stepsShown = 7 * 24 * time.Hour

// clockSteps shows when the clock of a server was set.
func (d *doctor) clockSteps(ctx context.Context, opened *db.DB) {
	list, err := timekeeping.List(ctx, opened, d.clock.Now().Add(-stepsShown), 100)
	list = slices.DeleteFunc(list, func(s timekeeping.Step) bool { return s.By == 0 }) // accepted by an operator
	switch {
	case err != nil:
		d.fail("clock steps", err.Error(), "look at the database's log")
	case len(list) == 0:
		d.ok("clock steps", "none in seven days")
	default:
		last := list[0]
		d.warn("clock steps", fmt.Sprintf("%d in seven days, the last at %s by %v on %s", len(list), last.At.UTC().Format(time.RFC3339), last.By, last.Node),
			"let NTP slew the clock instead of setting it, and look for a virtual machine that was paused")
	}
}

// schema says whether the database has this program's.
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
	d.ok("schema", "%d, as this program has", newest)
	return true
}

// installation says whether the master key is the one that the database was made with.
func (d *doctor) installation(ctx context.Context, o *opened) {
	if d.secret.Empty() {
		return // said before
	}
	err := o.installation.CheckSecret(ctx, d.secret)
	switch {
	case errors.Is(err, installation.ErrWrongSecret):
		d.fail("key of the database", "the database was made with another master key", "find the key that the servers use: without it references and secrets are lost")
		d.secret = config.Secret{}
	case problem.Is(err, problem.Forbidden):
		d.fail("installation", problem.From(err).Message, "look at docs/operations/scale.md, Move from SQLite to PostgreSQL")
		d.secret = config.Secret{}
	case err != nil:
		d.fail("key of the database", err.Error(), "look at the database's log")
	default:
		d.ok("key of the database", "the database takes this master key")
		d.ring(ctx, o)
	}
}

// ring says whether the ring has every key under which something is sealed, and whether a rotation is unfinished.
func (d *doctor) ring(ctx context.Context, o *opened) {
	sealed := o.sealed(d.secret)
	if err := sealed.Check(ctx); err != nil {
		d.fail("ring of keys", problem.From(err).Message, "put the key back into "+config.EnvMasterKeyFile+"; a server does not start without it")
		return
	}
	keys, err := sealed.Keys(ctx)
	if err != nil {
		d.fail("ring of keys", err.Error(), "look at the database's log")
		return
	}
	for _, k := range keys[1:] {
		if k.Total() > 0 {
			d.warn("ring of keys", fmt.Sprintf("%d are sealed under key %s, which is not the active one", k.Total(), k.Name), "makola keys rotate, when every server has the same ring")
			return
		}
	}
	d.ok("ring of keys", "all is sealed under the active key, %s", keys[0].Name)
}

// recoveryState says whether the database may have gone back in time.
func (d *doctor) recoveryState(ctx context.Context, o *opened) {
	s, err := o.recovery().State(ctx)
	switch {
	case err != nil:
		d.fail("recovery", err.Error(), "look at the database's log")
	case s.Closed():
		d.fail("recovery", fmt.Sprintf("closed since %s: customers are kept out", s.BegunAt.UTC().Format(time.RFC3339)), "makola recovery status, then makola recovery open")
	case s.Lasts():
		d.warn("recovery", fmt.Sprintf("open since %s", s.BegunAt.UTC().Format(time.RFC3339)), "makola recovery status says what it waits for, then makola recovery end")
	default:
		d.ok("recovery", "none lasts")
	}
}

// oldestUnknown looks for payments whose outcome only an operator can find.
func (d *doctor) oldestUnknown(ctx context.Context, o *opened) {
	if d.secret.Empty() {
		d.warn("unknown outcomes", "not known, because there is no master key that fits", "see the line of the key")
		return
	}
	p := o.payments(d.secret)
	defer p.Close()
	all, err := p.Unknown(ctx)
	if err != nil {
		d.fail("unknown outcomes", err.Error(), "look at the database's log")
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
	const fix = "makola payouts stuck, then docs/runbooks/payout-stuck.md"
	if age > unknownFail {
		d.fail("unknown outcomes", fact, fix)
	} else {
		d.warn("unknown outcomes", fact, fix)
	}
}

// lastBackup says how much a loss of the disk would cost.
func (d *doctor) lastBackup(ctx context.Context, o *opened) {
	const fix = "makola backup create, once a day by a timer, and makola backup drill; after a backup by another tool makola backup record"
	bad := d.warn
	if d.Production() {
		bad = d.fail
	}
	last, found, err := backup.Last(ctx, o.db)
	switch {
	case err != nil:
		d.fail("backup", err.Error(), "look at the database's log")
	case !found:
		bad("backup", "the database remembers none", fix)
	case d.clock.Since(last.MadeAt) > backupFail:
		bad("backup", fmt.Sprintf("the last one is %s old: %s", d.clock.Since(last.MadeAt).Round(time.Minute), last.File), fix)
	default:
		d.ok("backup", "%s old: %s", d.clock.Since(last.MadeAt).Round(time.Minute), last.File)
	}
}

// disk looks at the room for SQLite, or for the journal of acts beside PostgreSQL.
func (d *doctor) disk() {
	const mb = 1 << 20
	free, known := db.Free(d.Data)
	if !known {
		d.warn("disk", fmt.Sprintf("the free space of %s cannot be asked for", d.Data), "name a folder that exists in MAKOLA_DATA")
		return
	}
	reserve := uint64(max(d.DiskReserve, 0)) * mb
	fact := fmt.Sprintf("%d MB free in %s, %d MB are kept for money", free/mb, d.Data, reserve/mb)
	if d.Database != "" {
		fact = fmt.Sprintf("%d MB free in %s; PostgreSQL's own disk is another check", free/mb, d.Data)
	}
	switch {
	case free < reserve:
		d.fail("disk", fact, "make room: below the reserve contacts, campaigns and sender IDs are refused")
	case free < 2*reserve:
		d.warn("disk", fact, "make room soon")
	default:
		d.ok("disk", "%s", fact)
	}
}

// descriptors holds the limit of open files against the connections that are allowed.
func (d *doctor) descriptors() {
	room := d.files / 4 * 3
	fact := fmt.Sprintf("%d files may be open in this shell, which is room for %d clients of %d", d.files, room, d.MaxClients)
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

// certificate looks at the server's own, where it ends TLS itself.
func (d *doctor) certificate() {
	if d.TLSCert == "" {
		return
	}
	const fix = "renew it: a file that changes on disk is taken up within a second"
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

// providers opens a connection to every provider, with its TLS, and closes it again: no request is sent.
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

// egressProxy connects to the egress proxy, where one is set, and closes the connection again: it asks for no tunnel.
func (d *doctor) egressProxy(ctx context.Context) *outbound.Proxy {
	proxy, err := d.Egress.Proxy(slog.New(slog.DiscardHandler))
	if err != nil || proxy == nil { // a URL that is wrong is a finding about the settings
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	const check = "egress proxy"
	conn, err := proxy.Reach(ctx)
	if err != nil {
		d.fail(check, fmt.Sprintf("%s cannot be reached: %s", proxy.Address(), proxy.Explain(err)), "look at MAKOLA_PROXY, the firewall and the proxy; until then nothing is sent to providers and webhook receivers")
		return proxy
	}
	_ = conn.Close()
	d.ok(check, "%s takes connections; dialled directly are loopback and %s", proxy.Address(), cmp.Or(strings.Join(d.Egress.Except, ", "), "nothing else"))
	return proxy
}

// reach connects to one provider, through the egress proxy where its requests go.
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
	fix := "look at the name's address, the firewall and the provider's list of our addresses"
	if proxy != nil {
		by = ", through the egress proxy"
		fix = "look at the proxy's log and its list of allowed hosts, and at the provider's list of the proxy's addresses"
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
	return finding{check, stateOK, fmt.Sprintf("%s takes connections, %s%s", p.Address, how, by), ""}
}

// readiness reports what the server that runs here reports of itself: whether it takes requests, and which of them it refuses.
func (d *doctor) readiness(ctx context.Context) {
	const check = "readiness"
	ctx, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	ask, err := prober(d.Listen, d.TLSCert, "/readyz")
	if err != nil {
		d.fail(check, err.Error(), "correct MAKOLA_LISTEN")
		return
	}
	status, body, err := ask(ctx)
	switch {
	case err != nil:
		d.warn(check, fmt.Sprintf("no server answers at %s: %v", d.Listen, err), "run makola doctor where the server runs, with its settings")
	case status != http.StatusOK:
		d.fail(check, fmt.Sprintf("the server takes no requests: %s", cmp.Or(body.Message, fmt.Sprint("/readyz answers ", status))), "look at the server's log and at the other lines here")
	case len(body.Refused) > 0:
		d.fail(check, "the server refuses: "+strings.Join(body.Refused, "; "), "look at the lines of the database, the disk and the recovery")
	default:
		d.ok(check, "the server is %s", cmp.Or(body.Message, "ready"))
	}
}

// running makes the checks that only the server knows which runs here, by its probe and its metrics.
func (d *doctor) running(ctx context.Context) {
	d.readiness(ctx)
	if !d.Metrics() {
		d.warn("server", "metrics are off, so trusted proxies, binds and the last check of the books are not known", "let MAKOLA_METRICS_LISTEN be an address on loopback")
		return
	}
	all, err := d.scrape(ctx)
	if err != nil {
		d.warn("server", fmt.Sprintf("no server answers at %s, so trusted proxies, binds and the last check of the books are not known: %v", d.MetricsListen, err),
			"run makola doctor where the server runs, with its settings")
		return
	}
	build := all.named("makola_build_info")
	version := Version()
	if theirs := build[0].labels["version"]; theirs != version {
		d.warn("server", fmt.Sprintf("the server that runs is %s, this program is %s", theirs, version), "restart the server with this program, or look with that one")
	} else {
		d.ok("server", "%s runs", version)
	}
	d.proxies(all)
	d.binds(all)
	d.books(all)
}

// proxies holds the setting against the requests that came: an address of X-Forwarded-For that is not believed is that of
// a proxy which the setting lacks, and lists of addresses then judge the proxy instead of the customer.
func (d *doctor) proxies(all readings) {
	ignored, believed := all.sum("makola_http_forwarded_total", "peer", "unknown"), all.sum("makola_http_forwarded_total", "peer", "trusted")
	direct := all.sum("makola_http_forwarded_total", "peer", "silent")
	names := make([]string, len(d.TrustedProxies))
	for i, p := range d.TrustedProxies {
		names[i] = p.String()
	}
	list := cmp.Or(strings.Join(names, ", "), "none")
	fix := "name the proxy in MAKOLA_TRUSTED_PROXIES, if it is yours: until then lists of addresses judge the proxy and not the customer"
	switch {
	case ignored > 0 && believed == 0:
		d.fail("trusted proxies", fmt.Sprintf("%.0f requests since the start came with an X-Forwarded-For that was not believed, none with one that was; trusted are %s", ignored, list), fix)
	case ignored > 0:
		d.warn("trusted proxies", fmt.Sprintf("%.0f requests since the start came with an X-Forwarded-For that was not believed, %.0f with one that was; trusted are %s", ignored, believed, list), fix)
	case direct > 0 && believed == 0:
		d.warn("trusted proxies", fmt.Sprintf("%.0f requests of trusted proxies came without X-Forwarded-For, none with it; trusted are %s", direct, list),
			"have the proxy append the client's address to X-Forwarded-For")
	default:
		d.ok("trusted proxies", "%.0f requests since the start came through them; trusted are %s", believed, list)
	}
}

// binds looks at the connections with message centres.
func (d *doctor) binds(all readings) {
	connected := all.named("makola_sms_connected")
	if len(connected) == 0 {
		d.ok("binds", "no message centre is configured")
		return
	}
	down := all.sum("makola_sms_binds_down", "", "")
	const fix = "look for the bind in the server's log: a password, an address that the operator does not know, or its outage"
	switch {
	case down > 0:
		d.fail("binds", fmt.Sprintf("%.0f are down", down), fix)
	case all.sum("makola_sms_connected", "", "") == 0:
		d.warn("binds", "this node has none; one node has them at a time", "look at the other nodes; if none has any: "+fix)
	default:
		d.ok("binds", "all are up")
	}
}

// books looks at the last check of each of the books.
func (d *doctor) books(all readings) {
	for _, s := range all.named("makola_ledger_last_check_timestamp_seconds") {
		book := s.labels["book"]
		check := "last check of " + book
		if faults := all.sum("makola_ledger_faults", "book", book); faults > 0 {
			d.fail(check, fmt.Sprintf("it found %.0f faults", faults), "makola ledger check, makola audit verify, then docs/runbooks/ledger-fault.md")
			continue
		}
		if s.value == 0 {
			d.warn(check, "this node has made none since it started", "wait ten minutes, or look at the other nodes")
			continue
		}
		age := d.clock.Since(time.Unix(int64(s.value), 0)).Round(time.Second)
		if age > checkFail {
			d.fail(check, fmt.Sprintf("made %s ago", age), "look at makola_periodic_seconds and at the server's log; makola ledger check makes one now")
			continue
		}
		d.ok(check, "made %s ago, without a fault", age)
	}
}
