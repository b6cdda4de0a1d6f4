package delivery

import (
	"context"
	"errors"
	"log/slog"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/tenant"
)

// Order is a checked campaign with all data that Accept stores.
type Order struct {
	Tenant   tenant.Tenant
	Campaign Campaign
	Numbers  []msisdn.MSISDN // the recipients, each once
	Texts    []string        // texts of the recipients, all with the campaign's encoding, segments and credits; nil: the campaign's text
	Invalid  []string        // recipients that are not numbers; at most the number that is stored
	Code     *otp.Code       // the code of a one-time password, else nil
}

// admission prepares the acceptance of an order. It divides the recipients into chunks.
func (o Order) admission() *admission {
	a := &admission{tenant: o.Tenant, campaign: o.Campaign, invalid: o.Invalid, code: o.Code}
	small := len(o.Numbers) <= SmallSize && o.Texts == nil
	for no, rest := int64(0), o.Numbers; len(rest) > 0; no++ {
		n := min(len(rest), chunkSize)
		a.chunks = append(a.chunks, chunk{Tenant: o.Campaign.Tenant, Campaign: o.Campaign.ID, No: no, State: chunkReady, Recipients: rest[:n],
			CreatedAt: o.Campaign.CreatedAt, Small: small})
		if o.Texts != nil {
			first := len(o.Numbers) - len(rest)
			a.chunks[no].Texts = o.Texts[first : first+n]
		}
		rest = rest[n:]
	}
	if small {
		a.campaign.numbers = o.Numbers
	} else {
		a.campaign.Left = int64(len(a.chunks))
	}
	return a
}

// admission is a campaign while it is accepted. All ids are set before the first attempt. If the response to COMMIT
// is lost, a second attempt then recognizes the rows of the first.
type admission struct {
	tenant   tenant.Tenant
	campaign Campaign
	chunks   []chunk
	invalid  []string
	staged   bool      // the chunks are stored before the charge
	claimed  bool      // the messages are claimed in the transaction of the charge
	tried    bool      // a transaction may have stored the campaign
	code     *otp.Code // the code of a one-time password, else nil
}

// admitted is the result of an admission.
type admitted struct {
	campaign Campaign
	replayed bool
	known    bool // an earlier attempt stored the campaign
}

// admissionCommit charges and stores campaigns in group commits.
type admissionCommit struct {
	db        *db.DB
	ledger    *ledger.Ledger
	jobs      *jobs.Queue
	watch     *recovery.Watch
	clock     *clock.Clock
	log       *slog.Logger
	codes     *otp.Codes
	runner    *runner
	committer *groupcommit.Committer[*admission, admitted]
}

func newAdmissionCommit(d Deps, jobs *runner) *admissionCommit {
	l := &admissionCommit{db: d.DB, ledger: d.Ledger, jobs: d.Jobs, watch: d.Watch, clock: d.Clock, log: d.Log, codes: d.Codes, runner: jobs}
	l.committer = groupcommit.New(groupcommit.Options{Systemic: systemic, Unsure: db.ErrAmbiguous}, l.admit)
	return l
}

// acceptStaged accepts a large campaign. It checks the credits before it stores chunks, so that a tenant without
// credits cannot fill their table. The group commit checks again.
func (l *admissionCommit) acceptStaged(ctx context.Context, a *admission) (Campaign, bool, error) {
	balance, err := l.ledger.Balance(ctx, a.tenant.SMSCredits())
	if err != nil {
		return Campaign{}, false, err
	}
	if balance < a.campaign.Cost() {
		return Campaign{}, false, Shortage{balance, a.campaign.Cost()}.Err()
	}
	if err := l.stage(ctx, a); err != nil {
		l.unstage(ctx, a)
		return Campaign{}, false, err
	}
	c, replayed, err := l.accept(ctx, a)
	if replayed || err != nil && !problem.Is(err, problem.Unavailable) {
		l.unstage(ctx, a)
	}
	return c, replayed, err
}

// stage stores the chunks of a large campaign in small transactions before the charge. If the charge does not follow,
// a sweep deletes the chunks after an hour.
func (l *admissionCommit) stage(ctx context.Context, a *admission) error {
	for i := range a.chunks {
		a.chunks[i].State = chunkStaged
		there := func(tx *db.Tx) (bool, error) {
			var one int64
			return tx.One(chunkThere, []any{a.campaign.Tenant, a.campaign.ID, a.chunks[i].No}, &one)
		}
		if err := l.db.WriteRecognising(db.Bulk(ctx, a.campaign.Tenant), there, func(tx *db.Tx) error {
			db.Insert(tx, "chunks", chunkColumns, a.chunks[i:i+1])
			return nil
		}); err != nil {
			return err
		}
	}
	a.staged = true
	return nil
}

// unstage deletes the chunks of a campaign that was refused or not staged completely. If that fails, the sweep
// deletes them.
func (l *admissionCommit) unstage(ctx context.Context, a *admission) {
	err := l.db.Write(db.Bulk(context.WithoutCancel(ctx), a.campaign.Tenant), func(tx *db.Tx) error {
		tx.Defer(dropStaged, -1, a.campaign.Tenant, a.campaign.ID)
		return nil
	})
	if err != nil {
		l.log.WarnContext(ctx, "left chunks of uncharged campaign to the sweep", "campaign", a.campaign.ID, "error", err)
	}
}

const (
	// Each campaign is looked up on its own. A join whose plan dates from a time with few campaigns or keys reads a
	// whole index.
	byIdempotency = `WITH found AS MATERIALIZED (SELECT asked.of_tenant, (SELECT x.id FROM campaigns x
			WHERE x.tenant = asked.of_tenant AND x.idempotency_key = asked.of_key AND x.idempotency_key <> '') AS id FROM rows($1) AS asked)
		SELECT ` + CampaignFields + ` FROM found JOIN campaigns c ON c.tenant IN (found.of_tenant) AND c.id = found.id`
	byID = `WITH found AS MATERIALIZED (SELECT (SELECT c.id FROM campaigns c
			WHERE c.tenant = asked.of_tenant AND c.id = asked.of_id) AS id FROM rows($1) AS asked)
		SELECT id FROM found WHERE id IS NOT NULL`
)

var idempotencyColumns = []db.Column[*admission]{
	{Name: "of_tenant", Text: func(a *admission) string { return a.campaign.Tenant }},
	{Name: "of_key", Text: func(a *admission) string { return a.campaign.IdempotencyKey }},
}

var idColumns = []db.Column[*admission]{
	{Name: "of_tenant", Text: func(a *admission) string { return a.campaign.Tenant }},
	{Name: "of_id", Text: func(a *admission) string { return a.campaign.ID }},
}

// idempotencyKey is the key by which an earlier campaign of a tenant is found.
type idempotencyKey struct{ tenant, key string }

// earlierRequests has the earlier campaigns that a transaction has read.
type earlierRequests struct {
	byKey map[idempotencyKey]Campaign
	tried map[string]bool // campaigns of this batch that an earlier attempt stored, by id
	codes *otp.Batch      // the one-time passwords of this batch, with the limits of their numbers
	// released has the campaigns whose key is old enough to be used again and is used by this batch.
	released []campaignKey
}

// queries returns the queries for earlier requests of a batch.
func (p *earlierRequests) queries(batch []*admission, all *otp.Codes) []db.Query {
	*p = earlierRequests{byKey: map[idempotencyKey]Campaign{}, tried: map[string]bool{}}
	var keyed, tried []*admission
	var codes []*otp.Code
	for _, a := range batch {
		if a.code != nil {
			codes = append(codes, a.code)
		}
		if a.campaign.IdempotencyKey != "" {
			keyed = append(keyed, a)
		}
		if a.tried {
			tried = append(tried, a)
		}
	}
	var queries []db.Query
	if len(keyed) > 0 {
		queries = append(queries, db.Query{SQL: byIdempotency, Args: []any{db.RowsOf(idempotencyColumns, keyed)}, Each: func(r *db.Row) error {
			var c Campaign
			err := c.Scan(r)
			p.byKey[idempotencyKey{c.Tenant, c.IdempotencyKey}] = c
			return err
		}})
	}
	if len(tried) > 0 {
		queries = append(queries, db.Query{SQL: byID, Args: []any{db.RowsOf(idColumns, tried)}, Each: func(r *db.Row) error {
			var id string
			err := r.Scan(&id)
			p.tried[id] = true
			return err
		}})
	}
	p.codes = all.Batch(codes)
	return append(queries, p.codes.Queries()...)
}

// earlier returns the campaign that was created with the caller's idempotency key.
func (l *admissionCommit) earlier(ctx context.Context, caller idempotency.Caller) (c Campaign, replayed bool, err error) {
	if caller.IdempotencyKey == "" {
		return Campaign{}, false, nil
	}
	asked := Campaign{Tenant: caller.Tenant, IdempotencyKey: caller.IdempotencyKey, IdempotencyHash: caller.BodyHash}
	var before earlierRequests
	err = l.db.Read(ctx, func(tx *db.Tx) error { return tx.Gather(before.queries([]*admission{{campaign: asked}}, l.codes)...) })
	known, found := before.byKey[idempotencyKey{asked.Tenant, asked.IdempotencyKey}]
	if err != nil || !found || l.clock.Age(known.CreatedAt) >= idempotency.Window {
		return Campaign{}, false, err
	}
	v := replay(asked, known)
	return v.Value.campaign, v.Value.replayed, v.Err
}

// admit charges and stores a batch of campaigns in one transaction. Each campaign has its own result.
func (l *admissionCommit) admit(ctx context.Context, batch []*admission) ([]groupcommit.Verdict[admitted], error) {
	var verdicts []groupcommit.Verdict[admitted]
	landed := func(tx *db.Tx) (bool, error) {
		for i, a := range batch {
			if v := verdicts[i]; v.Err == nil && !v.Value.replayed && !v.Value.known {
				var one int64
				return tx.One(campaignThere, []any{a.campaign.Tenant, a.campaign.ID}, &one)
			}
		}
		return true, nil // the batch wrote nothing
	}
	err := l.db.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
		var err error
		verdicts, err = l.admitIn(ctx, tx, batch)
		return err
	})
	return verdicts, err
}

func (l *admissionCommit) admitIn(ctx context.Context, tx *db.Tx, batch []*admission) ([]groupcommit.Verdict[admitted], error) {
	var page ledger.Page
	var before earlierRequests
	queries := append([]db.Query{l.ledger.OpenQuery(tx, creditKeys(batch), &page)}, before.queries(batch, l.codes)...)
	for _, a := range batch {
		a.tried = true
	}
	if err := tx.Gather(queries...); err != nil {
		return nil, err
	}
	verdicts := make([]groupcommit.Verdict[admitted], len(batch))
	var accepted []*admission
	for i, a := range batch {
		verdicts[i] = l.verdict(a, &page, &before)
		if v := verdicts[i]; v.Err == nil && !v.Value.replayed && !v.Value.known {
			accepted = append(accepted, a)
			before.byKey[idempotencyKey{a.campaign.Tenant, a.campaign.IdempotencyKey}] = a.campaign
		}
	}
	page.Post()
	if len(before.released) > 0 {
		tx.Defer(dropKeys, -1, db.RowsOf(keyOfCampaign, before.released))
	}
	if err := l.store(tx, accepted); err != nil {
		return nil, err
	}
	var codes []*otp.Code
	for _, a := range accepted {
		if a.code != nil {
			codes = append(codes, a.code)
		}
	}
	before.codes.DeferAll(ctx, tx, codes)
	return verdicts, nil
}

// verdict decides about one admission from the rows that the transaction has read.
func (l *admissionCommit) verdict(a *admission, page *ledger.Page, before *earlierRequests) groupcommit.Verdict[admitted] {
	c := a.campaign
	if before.tried[c.ID] {
		return groupcommit.Verdict[admitted]{Value: admitted{campaign: c, known: true}}
	}
	if known, ok := before.byKey[idempotencyKey{c.Tenant, c.IdempotencyKey}]; ok && c.IdempotencyKey != "" {
		if l.clock.Age(known.CreatedAt) < idempotency.Window {
			return replay(c, known)
		}
		before.released = append(before.released, campaignKey{known.Tenant, known.ID}) // the key is old, and the sweep has not deleted it yet
	}
	if a.code != nil {
		if err := before.codes.Admit(a.code); err != nil {
			return groupcommit.Verdict[admitted]{Err: err}
		}
	}
	key := a.tenant.SMSCredits()
	if err := page.Add(c.charge(key.Asset)); errors.Is(err, ledger.ErrInsufficient) {
		return groupcommit.Verdict[admitted]{Err: Shortage{page.Balance(key), c.Cost()}.Err()}
	} else if err != nil {
		return groupcommit.Verdict[admitted]{Err: err}
	}
	if a.code != nil {
		before.codes.Charged(a.code)
	}
	return groupcommit.Verdict[admitted]{Value: admitted{campaign: c}}
}

// replay returns the result of a request whose idempotency key was used before.
func replay(c, known Campaign) groupcommit.Verdict[admitted] {
	if known.IdempotencyHash != c.IdempotencyHash {
		return groupcommit.Verdict[admitted]{Err: idempotency.Mismatch()}
	}
	return groupcommit.Verdict[admitted]{Value: admitted{campaign: known, replayed: true}}
}

// store defers the rows of accepted campaigns, a job for each chunk, and one job for all claimed campaigns of a mode.
func (l *admissionCommit) store(tx *db.Tx, accepted []*admission) error {
	var campaigns []Campaign
	var chunks []chunk
	var messages []message
	var waiting []jobs.Job
	marked := map[tenant.Mode][]*work{}
	for _, a := range accepted {
		campaigns = append(campaigns, a.campaign)
		if a.staged {
			tx.Defer(readyChunks, int64(len(a.chunks)), a.campaign.Tenant, a.campaign.ID)
		}
		for i, text := range a.invalid {
			messages = append(messages, message{Tenant: a.campaign.Tenant, Campaign: a.campaign.ID, No: -1 - int64(i), Recipient: text,
				Status: StatusInvalid, Error: "not a mobile number"})
		}
		for _, k := range a.chunks {
			if !a.staged && !k.Small {
				chunks = append(chunks, k)
			}
			if a.claimed {
				marked[a.campaign.Mode] = append(marked[a.campaign.Mode], l.runner.newWork(a.campaign, k, a.code))
				continue
			}
			job, err := l.runner.chunkJob(a.campaign, k, a.code, a.staged)
			if err != nil {
				return err
			}
			waiting = append(waiting, job)
		}
	}
	for mode, works := range marked {
		job, err := smallBatchJob(mode, works)
		if err != nil {
			return err
		}
		waiting = append(waiting, job)
	}
	db.Insert(tx, "campaigns", campaignColumns, campaigns)
	if n := len(campaigns); n > 0 {
		l.watch.Commits(tx, 0, recovery.Campaign, campaigns[n-1].Tenant, campaigns[n-1].ID)
	}
	db.Insert(tx, "chunks", chunkColumns, chunks)
	db.Insert(tx, "messages", messageColumns, messages)
	l.jobs.Add(tx, waiting...)
	return nil
}

func creditKeys(batch []*admission) []ledger.Key {
	keys := make([]ledger.Key, len(batch))
	for i, a := range batch {
		keys[i] = a.tenant.SMSCredits()
	}
	return keys // the ledger sorts the keys and removes duplicates
}

// accept charges and stores a campaign in the group commit.
func (l *admissionCommit) accept(ctx context.Context, a *admission) (Campaign, bool, error) {
	rows := 2 + len(a.invalid)
	if !a.staged {
		rows += len(a.chunks)
	}
	if a.claimed = l.runner.mayClaim(a.campaign, a.chunks); a.claimed {
		a.campaign.turn, a.campaign.claimedAt = newTurn(), a.campaign.CreatedAt
	}
	r, err := l.committer.Do(ctx, a.campaign.Tenant, rows, a)
	if a.claimed && (err != nil || r.replayed || r.known) {
		l.runner.claims.end(a.campaign.ID) // the campaign has no job on this node
	}
	return r.campaign, r.replayed, err
}
