package identity

import (
	"context"
	"net/netip"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// NeedFactor returns an error if a visitor has a factor and did not give it within the last five minutes. It reads
// the session from the database. So it also returns an error if the session has ended or the person was reset.
func (i *Identity) NeedFactor(ctx context.Context, v Visitor) error {
	if v.ByToken() {
		return errSession()
	}
	return i.db.Read(ctx, func(tx *db.Tx) error { return i.InForce(tx, v) })
}

const (
	plantFactor   = `INSERT INTO factors (person) VALUES ($1) ON CONFLICT (person) DO NOTHING`
	setPending    = `UPDATE factors SET pending = $2, pending_at = $3, pending_session = $4 WHERE person = $1`
	selectPending = `SELECT pending, pending_at FROM factors WHERE person = $1 AND pending <> '' AND pending_session = $2`
)

// Enrolment is a factor that waits for its first code. Its key is shown only for StepUpLasts, because somebody else
// may use the browser later.
type Enrolment struct {
	Key string // in the form that a person types into an app; empty: no longer shown
	URI string // content of the QR code
	// NeedsPassword is set if the password is required with the first code, because the enrolment began too long ago.
	NeedsPassword bool
}

// NeedsPassword reports whether the visitor must give the password to enrol a first factor. It is required if the
// sign-in is more than five minutes old, because somebody else may use the browser by then.
func (i *Identity) NeedsPassword(v Visitor) bool {
	return v.HasPassword && !v.HasFactor && !i.within(v.Session.CreatedAt, v.Session.CreatedAt.Add(StepUpLasts))
}

// BeginFactor creates a factor, which the visitor confirms with its first code. An existing factor is valid until then. The
// visitor must have entered a code of it within the last five minutes. current is the password, which is required if
// NeedsPassword returns true.
func (i *Identity) BeginFactor(ctx context.Context, v Visitor, current string, from netip.Addr) error {
	if err := i.NeedFactor(ctx, v); err != nil {
		return err
	}
	t := try{}
	if i.NeedsPassword(v) {
		var err error
		if t, err = i.checkCurrent(ctx, v, current, from); err != nil {
			return err
		}
	}
	sealed, err := i.sealKey(v.Person.ID, newFactorKey())
	if err != nil {
		return err
	}
	return i.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(plantFactor, -1, v.Person.ID)
		tx.Defer(setPending, 1, v.Person.ID, sealed, i.clock.Now(), v.hash)
		if t.account != "" {
			t.right(tx)
		}
		return nil
	})
}

// checkCurrent checks the visitor's password. If the password was right, the caller returns the counted try in its
// transaction.
func (i *Identity) checkCurrent(ctx context.Context, v Visitor, current string, from netip.Addr) (try, error) {
	hashes, leave, err := i.hasher.enter(true) // a signed-in visitor is known
	if err != nil {
		return try{}, err
	}
	defer leave()
	_, t, err := i.current(ctx, hashes, v, current, from)
	return t, err
}

// PendingFactor returns the factor that waits for its first code in the visitor's session. found is false if there is
// none.
func (i *Identity) PendingFactor(ctx context.Context, v Visitor) (e Enrolment, found bool, err error) {
	p, err := i.pending(ctx, v)
	if err != nil || p.sealed == "" {
		return Enrolment{}, false, err
	}
	if p.old {
		return Enrolment{NeedsPassword: p.needsPassword}, true, nil
	}
	key, err := i.unseal(v.Person.ID, p.sealed)
	return Enrolment{Key: base32Text.EncodeToString(key), URI: factorURI(key, v.Person.Email)}, err == nil, err
}

// pending is a factor that waits for its first code.
type pending struct {
	sealed             string // empty: there is no pending factor
	old, needsPassword bool
}

func (i *Identity) pending(ctx context.Context, v Visitor) (p pending, err error) {
	err = i.db.Read(ctx, func(tx *db.Tx) error {
		var at time.Time
		p = pending{}
		found, err := tx.One(selectPending, []any{v.Person.ID, v.hash}, &p.sealed, &at)
		if err != nil || !found || !i.within(at, at.Add(pendingLasts)) {
			p = pending{}
			return err
		}
		p.old = !i.within(at, at.Add(StepUpLasts))
		p.needsPassword = p.old && v.HasPassword && !v.HasFactor
		return nil
	})
	return p, err
}

func errCode() error { return problem.Field("code", "is not the current code of the app") }

const (
	confirmFactor = `UPDATE factors SET sealed = pending, pending = '', confirmed_at = $3, last_step = $4, first_at = CASE WHEN sealed = '' THEN $6 ELSE first_at END
		WHERE person = $1 AND pending = $2 AND pending_session = $5`
	markFactor = `UPDATE sessions SET factor_at = $2 WHERE hash = $1 AND ended_at = 0`
	dropCodes  = `DELETE FROM recovery_codes WHERE person = $1`
	insertCode = `INSERT INTO recovery_codes (hash, person, created_at) VALUES ($1, $2, $3)`
)

// ConfirmFactor confirms the pending factor with its first code and ends the visitor's other sessions. It returns
// recovery codes, which are shown only once. Only the session that began the enrolment can confirm it. current is the
// password, if the Enrolment requires it.
func (i *Identity) ConfirmFactor(ctx context.Context, v Visitor, code, current string, from netip.Addr) (recovery []string, err error) {
	if err := i.NeedFactor(ctx, v); err != nil {
		return nil, err
	}
	p, err := i.pending(ctx, v)
	if err != nil {
		return nil, err
	}
	if p.sealed == "" {
		return nil, problem.New(problem.Gone, "enrolment_over", "Start again: the set-up began too long ago, or in another browser")
	}
	t := try{}
	if p.needsPassword {
		if t, err = i.checkCurrent(ctx, v, current, from); err != nil {
			return nil, err
		}
	}
	key, err := i.unseal(v.Person.ID, p.sealed)
	if err != nil {
		return nil, err
	}
	step := stepOf(key, usertext.Code(code), i.clock.Now())
	if step == 0 {
		return nil, errCode()
	}
	recovery = newRecoveryCodes()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		if t.account != "" {
			t.right(tx)
		}
		return i.confirm(tx, v, p.sealed, step, recovery, from)
	})
	return recovery, err
}

// confirm stores the factor of a visitor whose first code was correct.
func (i *Identity) confirm(tx *db.Tx, v Visitor, sealed string, step int64, recovery []string, from netip.Addr) error {
	now, firstAt, before := i.clock.Now(), time.Time{}, "none"
	if v.HasFactor {
		before = "another"
	}
	if !v.Session.First && !i.development { // in development, tokens need no factor
		firstAt = now
	}
	if n, err := tx.Exec(confirmFactor, v.Person.ID, sealed, now, step, v.hash, firstAt); err != nil || n != 1 {
		return orMeanwhile(err)
	}
	if n, err := tx.Exec(markFactor, v.hash, now); err != nil || n != 1 {
		return orMeanwhile(err)
	}
	tx.Defer(endOthers, -1, v.Person.ID, v.hash, now)
	tx.Defer(endTokens, -1, v.Person.ID, now)
	i.storeCodes(tx, v.Person.ID, recovery)
	tx.AfterCommit(func() { i.sessions.Forget(v.hash) })
	return i.note(tx, v.Person, from, audit.Entry{Action: "person.factor", Details: changesOf("second factor", before, "an app")})
}

// orMeanwhile returns the error for data that another request has changed in the meantime.
func orMeanwhile(err error) error {
	if err == nil {
		err = problem.New(problem.InProgress, "changed_meanwhile", "Your account was changed by another request. Nothing was done.")
	}
	return err
}

func newRecoveryCodes() []string {
	codes := make([]string, RecoveryCodes)
	for n := range codes {
		codes[n] = newRecoveryCode()
	}
	return codes
}

// storeCodes replaces a person's recovery codes.
func (i *Identity) storeCodes(tx *db.Tx, person string, codes []string) {
	tx.Defer(dropCodes, -1, person)
	for _, c := range codes {
		tx.Defer(insertCode, 1, hashToken(usertext.Code(c)), person, i.clock.Now())
	}
}

// RenewRecoveryCodes replaces the visitor's recovery codes. The visitor must have given the factor within the last
// five minutes.
func (i *Identity) RenewRecoveryCodes(ctx context.Context, v Visitor, from netip.Addr) (codes []string, err error) {
	if err := i.NeedFactor(ctx, v); err != nil {
		return nil, err
	}
	if !v.HasFactor {
		return nil, problem.New(problem.InProgress, "no_factor", "There are no recovery codes without a second factor")
	}
	codes = newRecoveryCodes()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		i.storeCodes(tx, v.Person.ID, codes)
		return i.note(tx, v.Person, from, audit.Entry{Action: "person.recovery_codes", Details: changesOf("recovery codes", "the old ones", "ten new ones")})
	})
	return codes, err
}

// StepUp checks the visitor's second factor again. A correct code counts for StepUpLasts. A wrong code uses up a
// sign-in try.
func (i *Identity) StepUp(ctx context.Context, v Visitor, code string, from netip.Addr) error {
	if len(code) > 100 {
		return errCode()
	}
	t, err := i.take(ctx, v.Person.Email, from)
	if err != nil {
		return err
	}
	p, err := i.proof(ctx, v.Person.Email, code)
	if err != nil {
		return err
	}
	if p.sealed == "" {
		return problem.New(problem.InProgress, "no_factor", "Set up a second factor first")
	}
	step, fits, err := i.compare(p)
	if err != nil {
		return err
	}
	if !fits {
		return errCode()
	}
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		if err := i.useCode(tx, p, step, from); err != nil {
			return err
		}
		n, err := tx.Exec(markFactor, v.hash, i.clock.Now())
		if err == nil && n != 1 {
			err = errSession()
		}
		if err != nil {
			return err
		}
		t.right(tx)
		tx.AfterCommit(func() { i.sessions.Forget(v.hash) })
		return nil
	})
	if err != nil && problem.From(err).Code == codeAttempt {
		return problem.Field("code", "was used before: wait for the next code")
	}
	return err
}

// current checks the visitor's password, if the visitor has one. A wrong password uses up a sign-in try.
func (i *Identity) current(ctx context.Context, hashes hasher, v Visitor, password string, from netip.Addr) (p proof, t try, err error) {
	wrong := problem.Field("current", "is not your password")
	if len(password) > 4*MaxPassword {
		return p, t, wrong
	}
	if t, err = i.take(ctx, v.Person.Email, from); err != nil {
		return p, t, err
	}
	if p, err = i.proof(ctx, v.Person.Email, ""); err != nil || p.password == "" {
		return p, t, err
	}
	same, _, err := hashes.matches(ctx, p.password, password)
	if err == nil && !same {
		err = wrong
	}
	return p, t, err
}

const setPassword = `UPDATE people SET password = $3 WHERE id = $1 AND password = $2 AND disabled_at = 0
	AND EXISTS (SELECT 1 FROM sessions s WHERE s.hash = $4 AND s.ended_at = 0)`

// SetPassword changes the visitor's password and ends the visitor's other sessions. current is the old password, if
// the visitor has one.
func (i *Identity) SetPassword(ctx context.Context, v Visitor, current, password string, from netip.Addr) error {
	if err := i.NeedFactor(ctx, v); err != nil {
		return err
	}
	words, err := i.wordsAround(ctx, v.Person)
	if err != nil {
		return err
	}
	if err := checkPassword(password, words); err != nil {
		return err
	}
	hashes, leave, err := i.hasher.enter(true) // a signed-in visitor is known
	if err != nil {
		return err
	}
	defer leave()
	p, t, err := i.current(ctx, hashes, v, current, from)
	if err != nil {
		return err
	}
	sealed, err := hashes.seal(ctx, password)
	if err != nil {
		return err
	}
	return i.db.Write(ctx, func(tx *db.Tx) error {
		if n, err := tx.Exec(setPassword, v.Person.ID, p.password, sealed, v.hash); err != nil || n != 1 {
			return orMeanwhile(err)
		}
		t.right(tx)
		tx.Defer(endOthers, -1, v.Person.ID, v.hash, i.clock.Now())
		tx.Defer(endTokens, -1, v.Person.ID, i.clock.Now())
		before := "another"
		if p.password == "" {
			before = "none"
		}
		return i.note(tx, v.Person, from, audit.Entry{Action: "person.password", Details: changesOf("password", before, "a new one")})
	})
}
