package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/makola/makola/internal/db/engine"
)

func classify(err error) error {
	err, known := engine.Known(err)
	if known {
		return err
	}
	var pg *pgconn.PgError
	switch class := classOf(err); {
	case class == nil:
		return err
	case class == engine.ErrGuard && errors.As(err, &pg):
		return fmt.Errorf("%w: %s", class, pg.Message)
	default:
		return engine.Classed(class, err)
	}
}

func classOf(err error) error {
	var connect *pgconn.ConnectError
	var pg *pgconn.PgError
	refused := errors.As(err, &pg)
	if errors.As(err, &connect) && !(refused && tooMany(pg)) { // nothing has run, whatever the reason of the refusal
		return engine.ErrLost
	}
	if refused {
		return classOfRefusal(pg)
	}
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "closed pool") {
		return engine.ErrUnavailable
	}
	if errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "conn closed") || pgconn.SafeToRetry(err) {
		return engine.ErrLost
	}
	return nil
}

// tooMany reports whether the server lacks resources, such as connections.
func tooMany(pg *pgconn.PgError) bool { return strings.HasPrefix(pg.Code, "53") }

func classOfRefusal(pg *pgconn.PgError) error {
	switch {
	case pg.Code == "23505",
		pg.Code == "42P07", pg.Code == "42710": // another node created the same table or type at the same time
		return engine.ErrUnique
	case pg.Code == "22P02" && strings.Contains(pg.Message, guardMark):
		return engine.ErrGuard
	case pg.Code == "40001", pg.Code == "40P01",
		pg.Code == "0A000" && strings.Contains(pg.Message, "cached plan"): // a migration changed the table after the plan was made
		return engine.ErrConflict
	case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "57P"), // connection, shutdown
		pg.Code == "25006",                     // a standby: another server is the primary now
		pg.Code == "25P03", pg.Code == "25P04": // idle in a transaction for too long
		return engine.ErrLost
	case tooMany(pg), pg.Code == "55P03", pg.Code == "57014": // resources, lock timeout, statement timeout
		return engine.ErrUnavailable
	}
	return nil
}

// Unreachable reports whether an error of Open means that the server does not respond yet. Either nothing listens, or
// the server is starting up or shutting down. It returns false if the server rejects the URL's database, user or
// password, because waiting would not help.
func Unreachable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "57P") || tooMany(pg)
	}
	return errors.Is(err, engine.ErrUnavailable)
}

// Exhausted returns the resource that PostgreSQL lacks according to an error of Open or of a transaction, and
// PostgreSQL's message. The resource is empty for any other error.
func Exhausted(err error) (resource, message string) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || !tooMany(pg) {
		return "", ""
	}
	resource = "resources"
	switch pg.Code {
	case "53100":
		resource = "disk space"
	case "53200":
		resource = "memory"
	case "53300":
		resource = "connections"
	}
	return resource, strings.TrimSpace(pg.Message + " " + pg.Hint)
}

// Full reports whether PostgreSQL found its disk full.
func Full(err error) bool {
	resource, _ := Exhausted(err)
	return resource == "disk space"
}

// Withheld reports whether the server refused to run a function. The function may be missing on a server that only
// implements PostgreSQL's protocol, or forbidden by the host of the database.
func Withheld(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42883" || pg.Code == "42501" || pg.Code == "0A000")
}
