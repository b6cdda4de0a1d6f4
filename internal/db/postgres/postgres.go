// Package postgres keeps the connections to a PostgreSQL server.
//
// Files:
//
//	client.go               PostgreSQL's own programs, and scratch databases that prove backups
//	postgres.go             connections and their sessions
//	pooler.go               requirements on a pooler between us and the server
//	dialect.go              statements in PostgreSQL's spelling
//	arrays.go               sets of rows in the binary protocol
//	errors.go               classes of the driver's errors
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/makola/makola/internal/db/engine"
	"github.com/makola/makola/internal/problem"
)

// settings apply to every connection unless the URL overrides them. Our statements find rows by key in sets of up to
// some thousand. A plan that was made for a nearly empty table must not scan the whole table years later. The
// settings therefore make scans and joins of whole tables the last resort.
//
// ReadWhole sums over everything, so it enables scans and joins again. It disables nested loops, because old
// statistics could lead to a plan that compares each row of one table with each row of another.
var settings = map[string]string{
	"application_name":              "makola",
	"timezone":                      "UTC",
	"default_transaction_isolation": "read committed",
	"jit":                           "off",
	"enable_seqscan":                "off",
	"enable_hashjoin":               "off",
	"enable_mergejoin":              "off",
	"lock_timeout":                  "15s",
	// A transaction whose node vanished between two statements holds the locks of its wallets for this long. A longer
	// time would refuse all payments of these accounts on the other nodes.
	"idle_in_transaction_session_timeout": "15s",
	// If the server cannot reach us any more, it ends our session within a minute, which releases our locks.
	"tcp_keepalives_idle":     "30",
	"tcp_keepalives_interval": "10",
	"tcp_keepalives_count":    "3",
	"tcp_user_timeout":        "60000",
}

const (
	beginWrite = "begin isolation level read committed read write"
	beginRead  = "begin isolation level read committed read only"
	beginWhole = "begin isolation level repeatable read read only"
	wholePlans = "select set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true), set_config('enable_mergejoin', 'on', true), set_config('enable_nestloop', 'off', true)"
	// PostgreSQL uses one plan for every size of a set. If few rows are in the state that a guard requires, a plan
	// for this number of rows would read the whole table once for each row of the set.
	writePlans = "set local plan_cache_mode = force_generic_plan"
	// If the server acknowledges commits before they are durable, we turn that off. We keep a setting that waits
	// for more than the server's own disk.
	durableCommit = "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'"
)

// serverLimits makes PostgreSQL end a tenant's bulk statement before we stop waiting for it. Otherwise the statement
// would continue although nobody reads its result.
const serverLimits = "select set_config('statement_timeout', '10000', true), set_config('lock_timeout', '2000', true)"

// These limits keep an unreachable server from delaying callers for long.
const (
	connectTime  = 2 * time.Second // for one address; connect_timeout in the URL takes precedence
	pingAfter    = time.Second     // a connection that was idle for longer is pinged before its use
	pingTime     = time.Second     // maximum time of such a ping
	endTime      = time.Second     // for the check of the backend of a lost connection
	rollbackTime = time.Second     // after it, the connection is closed instead
	closeTime    = 3 * time.Second // for closing the whole pool
)

// DB is a pool of connections to one database of a server.
type DB struct {
	texts engine.Texts
	pool  *pgxpool.Pool
	reset atomic.Int64 // when all idle connections were last closed, Unix nanoseconds
	made  atomic.Uint64
}

// An identity describes a connection: its times, and the server's process at its other end.
type identity struct {
	born    int64  // when we opened the connection, Unix nanoseconds
	used    int64  // when its last transaction ended, Unix nanoseconds
	pid     int64  // id of the server's process; 0 behind a pooler, which changes it
	started string // start of that process, because process ids are reused
}

// identityKey is the key under which a connection stores its identity.
const identityKey = "makola.identity"

func identityOf(c *pgx.Conn) *identity {
	id, _ := c.PgConn().CustomData()[identityKey].(*identity)
	if id == nil {
		return &identity{}
	}
	return id
}

// introduce runs on every new connection. It makes commits durable and stores the identity of the connection.
func introduce(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime) // the pool's own context has no deadline
	defer cancel()
	useArrays(c.TypeMap())
	now := time.Now().UnixNano()
	id := &identity{born: now, used: now}
	results, err := c.PgConn().Exec(ctx, durableCommit+"; "+sqlIdentity).ReadAll()
	if err != nil {
		return err
	}
	if rows := results[len(results)-1].Rows; len(rows) == 1 && string(rows[0][0]) == strconv.Itoa(int(c.PgConn().PID())) {
		id.pid, id.started = int64(c.PgConn().PID()), string(rows[0][1])
	}
	c.PgConn().CustomData()[identityKey] = id
	return nil
}

const (
	sqlIdentity = `select pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`
	// sqlEndBroken finds the server's process of a lost connection, if that is not idle. It ends a process that waits
	// for us in an open transaction, and any process if $3 is 1. Otherwise the process would keep its locks until the
	// network reports that we are gone.
	sqlEndBroken = `SELECT CASE WHEN wait_event = 'ClientRead' OR $3 = 1 THEN pg_terminate_backend(pid) ELSE false END
FROM pg_stat_activity WHERE pid = $1 AND backend_start = CAST(CAST($2 AS text) AS timestamptz) AND state <> 'idle'`
)

// endBroken checks the server's process of a connection that broke inside a transaction, and reports whether the
// process still runs. After COMMIT was sent, the process may be committing and must not be disturbed. Before COMMIT,
// endBroken ends the process.
func (d *DB) endBroken(ctx context.Context, id *identity, commitSent bool) (busy bool, err error) {
	if id.pid == 0 {
		return false, nil
	}
	c, err := d.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer c.Release()
	var ended bool
	err = c.QueryRow(ctx, sqlEndBroken, id.pid, id.started, engine.Bool(!commitSent)).Scan(&ended)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// lost handles a connection that broke by itself. After a restart or a failover, all older connections are probably
// broken too. lost closes the idle ones, because each of them would make a transaction fail. It does nothing for a
// connection that is older than the last such reset.
func (d *DB) lost(c *pgx.Conn) {
	last := d.reset.Load()
	if identityOf(c).born > last && d.reset.CompareAndSwap(last, time.Now().UnixNano()) {
		d.pool.Reset()
	}
}

// Open opens a pool of at most maxConns connections to the database of a URL. It returns an error if the server
// cannot have our settings.
func Open(ctx context.Context, url string, maxConns int) (*DB, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil || !ofPostgres(url) {
		// The driver's error is not used, because it may contain the URL with its password.
		return nil, unfitURL("it must have the form postgres://user:password@host:port/name")
	}
	switch config.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return nil, unfitURL(fmt.Sprintf("default_query_exec_mode is %s: sets of rows need cache_statement, cache_describe or describe_exec",
			config.ConnConfig.DefaultQueryExecMode))
	}
	if config.ConnConfig.StatementCacheCapacity == 0 && config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // with statement_cache_capacity=0 no statement is prepared
	}
	config.MaxConns = int32(min(maxConns, 10000)) // the bound keeps the conversion in range
	for name, value := range settings {
		if _, set := config.ConnConfig.RuntimeParams[name]; !set {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTime
	}
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // Session pings instead
	d, behind, err := connect(ctx, config)
	if err != nil || !behind || strings.Contains(url, "default_query_exec_mode") {
		return d, err
	}
	// A statement that is prepared on one connection of a pooler does not exist on its other connections.
	d.pool.Close()
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	d, _, err = connect(ctx, config)
	return d, err
}

// connect opens the pool and reports whether it goes through a pooler.
func connect(ctx context.Context, config *pgxpool.Config) (d *DB, behind bool, err error) {
	d = &DB{}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		d.made.Add(1)
		return introduce(ctx, c)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, false, classify(err)
	}
	d.pool = pool
	if behind, err = d.check(ctx); err != nil {
		pool.Close()
		return nil, false, err
	}
	return d, behind, nil
}

// Classify implements engine.Opener.
func (d *DB) Classify(err error) error { return classify(err) }

// Connected implements engine.Opener.
func (d *DB) Connected() uint64 { return d.made.Load() }

// check returns an error if the server cannot be reached, or if its settings would make results wrong.
func (d *DB) check(ctx context.Context) (behind bool, err error) {
	c, err := d.pool.Acquire(ctx)
	if err != nil {
		if refused := startupRefused(err); refused != nil {
			return false, refused
		}
		if absent := databaseAbsent(err, d.pool.Config().ConnConfig); absent != nil {
			return false, absent
		}
		return false, classify(fmt.Errorf("db: connect to PostgreSQL: %w", err))
	}
	defer c.Release()
	if encoding := c.Conn().PgConn().ParameterStatus("server_encoding"); encoding != "UTF8" {
		return false, fmt.Errorf("db: the database's encoding is %s, it must be UTF8", encoding)
	}
	if behind = pooled(c.Conn()); behind {
		err = classify(checkPooler(ctx, c.Conn()))
	}
	return behind, err
}

// databaseAbsent returns an error with the fix if the server has no database of the URL's name, and nil for any other
// error.
func databaseAbsent(err error, to *pgx.ConnConfig) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "3D000" {
		return nil
	}
	return problem.Wrap(fmt.Errorf("%w: %w", engine.ErrUnavailable, err), problem.Unavailable, "no_database",
		fmt.Sprintf("The database %q does not exist on %s:%d: create it, or correct the URL (--database, MAKOLA_DATABASE)", to.Database, to.Host, to.Port))
}

// Close waits until all connections are returned, for at most closeTime.
func (d *DB) Close() error {
	closed := make(chan struct{})
	go func() {
		d.pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeTime):
	}
	return nil
}

// Session returns a live connection. When it finds a dead connection, it closes all other idle ones.
func (d *DB) Session(ctx context.Context, m engine.Mode, p engine.Purpose) (engine.Session, error) {
	for {
		c, err := d.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		if time.Now().UnixNano()-identityOf(c.Conn()).used < int64(pingAfter) || d.alive(ctx, c.Conn()) {
			bounded := p.Priority == engine.PriorityBulk && p.Tenant != "" && m != engine.ModeWhole
			return &session{db: d, conn: c, mode: m, begun: m == engine.ModeRead && !bounded, bounded: bounded, exchange: p.Limits().Exchange}, nil
		}
		conn := c.Hijack()
		if err := ctx.Err(); errors.Is(err, context.Canceled) {
			return nil, err // the caller gave up, so the ping proves nothing about the server
		}
		d.lost(conn)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// alive pings a connection and closes it if the ping fails.
func (d *DB) alive(ctx context.Context, c *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	if c.Ping(ctx) == nil {
		return true
	}
	_ = c.Close(ctx)
	return false
}

type session struct {
	db       *DB
	conn     *pgxpool.Conn
	mode     engine.Mode
	begun    bool // BEGIN was sent or is not needed
	bounded  bool // the server has time limits for its statements
	exchange time.Duration

	commitSent bool
	givenUp    bool // the caller stopped waiting for a response, which closes the connection
}

// batch returns the statements to send, with a BEGIN if the transaction has not begun. before is the number of
// results that precede the result of the first statement.
func (s *session) batch(statements []*engine.Statement) (b *pgx.Batch, before int) {
	b = &pgx.Batch{}
	if !s.begun {
		switch s.mode {
		case engine.ModeWhole:
			b.Queue(beginWhole)
			b.Queue(wholePlans)
			before = 2
		case engine.ModeSnapshot:
			b.Queue(beginWhole)
			before = 1
		case engine.ModeRead:
			b.Queue(beginRead)
			before = 1
		default:
			b.Queue(beginWrite)
			b.Queue(writePlans)
			before = 2
		}
		if s.bounded {
			b.Queue(serverLimits)
			before++
		}
		s.begun = true
	}
	for _, st := range statements {
		b.Queue(st.SQL, st.Args...)
	}
	return b, before
}

// send reserves space for the statements in the driver's buffer and sends them.
func (s *session) send(ctx context.Context, b *pgx.Batch, statements []*engine.Statement) pgx.BatchResults {
	s.conn.Conn().PgConn().Frontend().Send(room(roomOf(statements)))
	return s.conn.SendBatch(ctx, b)
}

// Run implements engine.Session.
func (s *session) Run(ctx context.Context, statements []*engine.Statement) error {
	caller := ctx
	if s.mode != engine.ModeWhole {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.exchange)
		defer cancel()
	}
	b, before := s.batch(statements)
	results := s.send(ctx, b, statements)
	err := readResults(results, before, statements)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	s.givenUp = errors.Is(caller.Err(), context.Canceled)
	return err
}

// readResults passes the results to the statements, in order.
func readResults(results pgx.BatchResults, before int, statements []*engine.Statement) error {
	for range before {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	for _, st := range statements {
		if st.Each == nil {
			tag, err := results.Exec()
			if err != nil {
				return describe(err, st.SQL)
			}
			st.Rows = tag.RowsAffected()
			continue
		}
		rows, err := results.Query()
		if err != nil {
			return describe(err, st.SQL)
		}
		row := engine.NewRow(rows, func(i int) bool {
			return rows.FieldDescriptions()[i].DataTypeOID == pgtype.BoolOID
		})
		for rows.Next() {
			if err := st.Each(row); err != nil {
				rows.Close()
				return &engine.OwnError{Err: err}
			}
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return describe(err, st.SQL)
		}
	}
	return nil
}

// describe adds the statement's text to an error that only a change of the program can fix.
func describe(err error, sql string) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && strings.HasPrefix(pg.Code, "42") {
		return fmt.Errorf("%w in %q", err, sql)
	}
	return err
}

// Commit implements engine.Session.
func (s *session) Commit(ctx context.Context, statements []*engine.Statement) error {
	if !s.begun && len(statements) == 0 {
		return nil
	}
	b, before := s.batch(statements)
	b.Queue("commit")
	s.commitSent = true
	results := s.send(ctx, b, statements)
	err := readResults(results, before, statements)
	var tag pgconn.CommandTag
	atCommit := err == nil
	if atCommit {
		tag, err = results.Exec()
	}
	if err == nil && tag.String() == "COMMIT" {
		// The transaction is committed, even if the connection fails now.
		_ = results.Close()
		return nil
	}
	closeErr := results.Close()
	if err == nil {
		err = closeErr
	}
	if err == nil {
		return fmt.Errorf("db: COMMIT was answered with %s", tag)
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (!atCommit || pg.Severity == "ERROR") {
		return err // the server reported that the transaction is not committed
	}
	var early pgx.ErrPreprocessingBatch
	if errors.As(err, &early) {
		s.commitSent = false
		return err // the statements were still being prepared
	}
	if pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", engine.ErrLost, err) // nothing was sent
	}
	id := identityOf(s.conn.Conn())
	busy := func(ctx context.Context) (bool, error) { return s.db.endBroken(ctx, id, true) }
	return &engine.UnknownCommit{Busy: busy, Cause: err}
}

// End implements engine.Session.
func (s *session) End(broken bool) error {
	c := s.conn.Conn()
	identityOf(c).used = time.Now().UnixNano()
	if c.IsClosed() {
		s.conn.Hijack() // the pool would count the connection until the server closes it
		if !s.givenUp {
			s.db.lost(c)
		}
		if s.mode.Writes() && s.begun {
			ctx, cancel := context.WithTimeout(context.Background(), endTime)
			defer cancel()
			_, _ = s.db.endBroken(ctx, identityOf(c), s.commitSent) // the result is ignored, because the server may be unreachable
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTime)
	defer cancel()
	if !broken && c.PgConn().TxStatus() != 'I' {
		_, err := c.Exec(ctx, "rollback", pgx.QueryExecModeSimpleProtocol)
		broken = err != nil
	}
	if broken {
		_ = c.Close(ctx)
		s.conn.Hijack()
		return nil
	}
	s.conn.Release()
	return nil
}

// Script implements engine.Session.
func (s *session) Script(ctx context.Context, text string) error {
	if err := s.Run(ctx, nil); err != nil {
		return err
	}
	_, err := s.conn.Conn().PgConn().Exec(ctx, ddl(text)).ReadAll()
	return err
}
