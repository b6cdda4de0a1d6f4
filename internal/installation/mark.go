package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// MarkState is the role of a database in a move. Stored; never renamed.
type MarkState string

// The states. A database that is no part of a move has none.
const (
	Claiming  MarkState = "claiming"  // the database that the installation will leave; nothing is copied yet
	Moving    MarkState = "moving"    // the database that the installation leaves; the mark stays for ever after the move
	Copying   MarkState = "copying"   // the target of the move, until the copy is complete
	Abandoned MarkState = "abandoned" // the target of an abandoned move
)

// Mark replaces the master key's fingerprint while an installation moves. No server of any release starts on a marked
// database, because the mark is the fingerprint of no key. It keeps the fingerprint for the end of the move.
type Mark struct {
	State       MarkState // empty: no mark
	Token       string    // id of the move; the same in both databases
	Fingerprint string    // fingerprint of the master key; empty: no server was ever started on the database
}

func (m Mark) stored() string {
	if m.State == "" {
		return m.Fingerprint
	}
	return string(m.State) + ":" + m.Token + ":" + m.Fingerprint
}

func markOf(stored string) Mark {
	parts := strings.Split(stored, ":")
	if len(parts) != 3 {
		return Mark{Fingerprint: stored}
	}
	return Mark{State: MarkState(parts[0]), Token: parts[1], Fingerprint: parts[2]}
}

// ReadMark reads the mark of a database.
func ReadMark(tx *db.Tx) (Mark, error) {
	var stored string
	_, err := tx.One(selectFingerprint, nil, &stored)
	return markOf(stored), err
}

const updateMark = `UPDATE installation SET fingerprint = $1 WHERE id = 1 AND fingerprint = $2`

// ReplaceMark replaces one mark with another in tx. If the first is missing, the transaction fails with db.ErrGuard.
func ReplaceMark(tx *db.Tx, from, to Mark) { tx.Defer(updateMark, 1, to.stored(), from.stored()) }

// RequireMark guards a transaction. The transaction fails with db.ErrGuard if the mark is missing, and nobody can
// replace the mark until it ends.
func RequireMark(tx *db.Tx, m Mark) { ReplaceMark(tx, m, m) }

// Row is the row of the installation without its mark.
type Row struct {
	CreatedAt  int64 // microseconds
	Production bool
}

const (
	selectInstallation = `SELECT created_at, production FROM installation WHERE id = 1`
	insertMarked       = `INSERT INTO installation (id, fingerprint, created_at, production) VALUES (1, $1, $2, $3)`
)

// ReadRow reads the row.
func ReadRow(tx *db.Tx) (i Row, err error) {
	_, err = tx.One(selectInstallation, nil, &i.CreatedAt, &i.Production)
	return i, err
}

// InsertMarked makes the row of a database that has none.
func InsertMarked(tx *db.Tx, m Mark, i Row) {
	tx.Defer(insertMarked, 1, m.stored(), i.CreatedAt, i.Production)
}

// CheckMark refuses a database that is part of a move, or was left by one. pending are the migrations that it lacks.
func (s *Store) CheckMark(ctx context.Context, pending []db.Migration) error {
	if slices.ContainsFunc(pending, MakesMark) {
		return nil
	}
	stored, err := s.storedFingerprint(ctx)
	if err != nil {
		return err
	}
	return refuseMarked(stored)
}

// MakesMark reports whether a migration creates the table of the mark. A database before this migration has
// no mark.
func MakesMark(m db.Migration) bool {
	const first = 2
	return m.Number == first
}

func refuseMarked(stored string) error {
	m := markOf(stored)
	switch m.State {
	case "":
		return nil
	case Claiming, Moving:
		return problem.New(problem.Forbidden, "installation_moved", fmt.Sprintf("This installation moved, or is moving, to another database (move %s): start servers there. "+
			"makola migrate copy --to URL continues an interrupted move, and reports whether it is complete", m.Token))
	case Copying:
		return problem.New(problem.Forbidden, "installation_copying", fmt.Sprintf("An installation is being copied into this database (move %s), and the copy is incomplete: continue with makola migrate copy", m.Token))
	default:
		return problem.New(problem.Forbidden, "installation_abandoned", fmt.Sprintf("This database has an incomplete copy of an installation, and the move was abandoned (move %s): remove the database", m.Token))
	}
}
