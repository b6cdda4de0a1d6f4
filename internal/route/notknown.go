package route

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// After an unconfirmed refusal, money is returned when the provider answers that it does not know the payment. So
// Makola must recognize this answer. It probes every status interface in advance with a reference that does not
// exist, and checks that it recognizes the answer.

// NotKnown is a provider's response to a probe with a reference that does not exist.
type NotKnown struct {
	Mode      string
	Provider  string
	Operation Operation
	State     string // Understood, NotUnderstood or NoAnswer
	// Answer is the HTTP status and the provider's code in the form of the setting: "404:3000". It is empty without a
	// response.
	Answer string
	At     time.Time
}

// The states of a NotKnown, as stored.
const (
	Understood    = "understood"
	NotUnderstood = "not_understood"
	NoAnswer      = "no_answer"
)

// notKnownTime is the maximum time of one probe.
const notKnownTime = 10 * time.Second

const sqlNotKnownSaid = `INSERT INTO provider_not_known (mode, provider, operation, state, answer, asked_at)
	VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (mode, provider, operation) DO UPDATE SET state = excluded.state, answer = excluded.answer, asked_at = excluded.asked_at`

// AskNotKnown probes all rails of this node concurrently with a reference that does not exist. It uses each operation
// that has a status query. The responses are logged and stored. For a response that is not recognized it logs a
// warning with the setting to change.
func (t *Table) AskNotKnown(ctx context.Context) error {
	_, err := t.AskNotKnownOf(ctx, t.rails...)
	return err
}

// AskNotKnownOf is AskNotKnown for some rails. It returns their responses.
func (t *Table) AskNotKnownOf(ctx context.Context, rails ...provider.Rail) (said []NotKnown, err error) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, r := range rails {
		for _, op := range Operations() {
			ask, setting := statusOf(r, op)
			if ask == nil {
				continue
			}
			asking.Go(func() {
				k := t.askNotKnown(ctx, r, op, ask, setting)
				mu.Lock()
				defer mu.Unlock()
				said = append(said, k)
			})
		}
	}
	asking.Wait()
	if err := ctx.Err(); err != nil || len(said) == 0 {
		return nil, err // stopped: a missing response proves nothing
	}
	understood := 0
	for _, k := range said {
		if k.State == Understood {
			understood++
		}
	}
	t.log.InfoContext(ctx, "probed providers with unknown reference", "asked", len(said), "understood", understood)
	slices.SortFunc(said, func(a, b NotKnown) int {
		return cmp.Compare(slices.Index(Operations(), a.Operation), slices.Index(Operations(), b.Operation))
	})
	return said, t.db.Write(ctx, func(tx *db.Tx) error {
		for _, k := range said {
			if _, err := tx.Exec(sqlNotKnownSaid, k.Mode, k.Provider, string(k.Operation), k.State, k.Answer, db.Micros(k.At)); err != nil {
				return err
			}
		}
		return nil
	})
}

type statusQuestion func(context.Context, provider.StatusRequest) provider.Outcome

// statusOf returns a rail's status query for an operation, or nil. It also returns the name of the setting for the
// rail's "not known" response.
func statusOf(r provider.Rail, op Operation) (ask statusQuestion, setting string) {
	if !Can(r, op) {
		return nil, ""
	}
	switch op {
	case Collect:
		return r.Collector.CollectStatus, r.NotKnownSettings["collect"]
	case DisburseWallet, DisburseBank:
		return r.Disburser.DisburseStatus, r.NotKnownSettings["disburse"]
	case Refund:
		return r.Refunder.RefundStatus, r.NotKnownSettings["refund"]
	case TopUp:
		return r.TopUpper.TopUpStatus, r.NotKnownSettings["topup"]
	case Bundle:
		return r.Bundles.BundleStatus, r.NotKnownSettings["bundle"]
	default:
		return nil, ""
	}
}

func (t *Table) askNotKnown(ctx context.Context, r provider.Rail, op Operation, ask statusQuestion, setting string) NotKnown {
	ctx, cancel := context.WithTimeout(ctx, notKnownTime)
	defer cancel()
	o := ask(ctx, provider.StatusRequest{ProviderReference: uuid.NewString(), Amount: money.Cedi})
	k := NotKnown{Mode: r.Mode, Provider: r.Name, Operation: op, State: NotUnderstood, Answer: o.Code, At: t.clock.Now()}
	about := []any{"provider", r.Name, "mode", r.Mode, "operation", string(op), "answer", k.Answer}
	switch {
	case o.NotFound:
		k.State = Understood
	case unanswered(o.Code):
		k.State = NoAnswer
		t.log.WarnContext(ctx, "failed to probe provider with unknown reference", append(about, "error", o.Message)...)
	default:
		set := "nothing, because this is not the provider's own answer"
		if setting != "" && strings.Contains(k.Answer, ":") {
			set = setting + "=" + k.Answer + ", if the provider confirms that the answer has only this meaning"
		}
		t.log.WarnContext(ctx, "provider response to unknown reference not recognized, its refused payments will wait for an operator",
			append(about, "said", o.Message, "set", set)...)
	}
	return k
}

// unanswered reports whether a response proves nothing about payments: no response, a refused caller, or a
// server error.
func unanswered(code string) bool {
	status, _, _ := strings.Cut(code, ":")
	return status == "" || status == "401" || status == "403" || status == "429" || len(status) == 3 && status[0] == '5'
}

const sqlNotKnown = `SELECT mode, provider, operation, state, answer, asked_at FROM provider_not_known`

// notKnown reads the providers' responses to the last probes.
func (t *Table) notKnown(ctx context.Context) (map[breakerKey]NotKnown, error) {
	var said map[breakerKey]NotKnown
	err := t.db.Read(ctx, func(tx *db.Tx) error {
		said = map[breakerKey]NotKnown{}
		return tx.Query(sqlNotKnown, nil, func(row *db.Row) error {
			var k NotKnown
			var op string
			err := row.Scan(&k.Mode, &k.Provider, &op, &k.State, &k.Answer, &k.At)
			k.Operation = Operation(op)
			said[breakerKey{k.Mode, k.Provider, k.Operation}] = k
			return err
		})
	})
	return said, err
}
