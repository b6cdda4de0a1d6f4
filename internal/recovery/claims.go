package recovery

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

// ClaimState is the state of a claim. Values are stored and never change.
type ClaimState string

// The states of a claim.
const (
	ClaimWaiting ClaimState = "waiting" // waits for the answers of providers
	ClaimAdopted ClaimState = "adopted" // a provider has the payment, and it is in the books
	ClaimRefused ClaimState = "refused" // no provider has the payment, or it cannot be booked as claimed
)

// A Claim is a payment that an operator found on a provider's statement and that the database lacks. If a provider
// knows the payment, it is adopted. It is never sent.
type Claim struct {
	Tenant    string
	Kind      string // collection, payout or topup
	Reference string // the client's reference
	Amount    int64  // pesewas
	Channel   string // MTN, TELECEL, AIRTELTIGO or BANK
	Party     string // MSISDN as 233XXXXXXXXX, or the bank account
	Bank      string // our bank id if Channel is BANK
	State     ClaimState
	Why       string
	Actor     string
	At        time.Time
}

const (
	// A refused claim may be made again.
	sqlClaim = `INSERT INTO recovery_claims (tenant, kind, reference, amount, channel, party, bank, state, why, actor, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'waiting', '', $8, $9)
ON CONFLICT (tenant, kind, reference) DO UPDATE SET amount = excluded.amount, channel = excluded.channel, party = excluded.party,
bank = excluded.bank, state = 'waiting', why = '', actor = excluded.actor, at = excluded.at WHERE recovery_claims.state = 'refused'`

	claimColumns = `tenant, kind, reference, amount, channel, party, bank, state, why, actor, at`

	sqlClaims = `SELECT ` + claimColumns + ` FROM recovery_claims ORDER BY at, tenant, kind, reference LIMIT $1`

	sqlWaiting = `SELECT ` + claimColumns + ` FROM recovery_claims WHERE state = 'waiting' ORDER BY at, tenant, kind, reference LIMIT $1`

	sqlJudged = `UPDATE recovery_claims SET state = $1, why = $2 WHERE tenant = $3 AND kind = $4 AND reference = $5 AND state = 'waiting'`
)

// claimsAtOnce is the maximum number of claims in a list and in one pass.
const claimsAtOnce = 10_000

// Make stores claims. A server then looks for their payments.
func (r *Recovery) Make(ctx context.Context, claims []Claim, also ...func(*db.Tx) error) error {
	return r.write(ctx, also, func(tx *db.Tx) error {
		if err := r.mustLast(tx); err != nil {
			return err
		}
		for _, c := range claims {
			if _, err := tx.Exec(sqlClaim, c.Tenant, c.Kind, c.Reference, c.Amount, c.Channel, c.Party, c.Bank, c.Actor, db.Micros(r.clock.Now())); err != nil {
				return err
			}
		}
		return nil
	})
}

// Claims lists all claims, oldest first.
func (r *Recovery) Claims(ctx context.Context) ([]Claim, error) { return r.claims(ctx, sqlClaims) }

// Waiting lists the claims that wait for the answers of providers.
func (r *Recovery) Waiting(ctx context.Context) ([]Claim, error) { return r.claims(ctx, sqlWaiting) }

func (r *Recovery) claims(ctx context.Context, sql string) ([]Claim, error) {
	return db.ReadAll(ctx, r.db, sql, []any{claimsAtOnce}, func(c *Claim, row *db.Row) error {
		return row.Scan(&c.Tenant, &c.Kind, &c.Reference, &c.Amount, &c.Channel, &c.Party, &c.Bank, &c.State, &c.Why, &c.Actor, &c.At)
	})
}

// Judged stores the final state of a claim. For an adopted claim it also removes the conflict about its payment.
func (r *Recovery) Judged(ctx context.Context, c Claim, state ClaimState, why string) error {
	return r.db.Write(ctx, func(tx *db.Tx) error {
		if state == ClaimAdopted {
			if err := r.Settled(tx, c.Tenant, c.Kind, c.Reference); err != nil {
				return err
			}
		}
		_, err := tx.Exec(sqlJudged, state, why, c.Tenant, c.Kind, c.Reference)
		return err
	})
}
