package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// maxControlBody is the maximum size of a control request in bytes.
const maxControlBody = 64 << 10

// control returns the handler of the /sim/v1 interface, with which a developer, a test or the handset page controls
// the simulator. It needs no key, because it exists only in development.
func (s *Sim) control() http.Handler {
	m := http.NewServeMux()
	route := func(pattern string, answer func(*http.Request) (any, error)) {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxControlBody)
			data, err := answer(r)
			s.reply(w, data, err)
		})
	}
	route("GET /sim/v1/handsets/{msisdn}/messages", s.getMessages)
	route("GET /sim/v1/handsets/{msisdn}/prompts", s.getPrompts)
	route("POST /sim/v1/handsets/{msisdn}/prompts/{id}", s.postPrompt)
	route("GET /sim/v1/transactions", s.getTransactions)
	route("POST /sim/v1/transactions/{reference}", s.postTransaction)
	route("GET /sim/v1/faults", func(*http.Request) (any, error) { return faultList(s.Faults()), nil })
	route("POST /sim/v1/faults", s.postFault)
	route("DELETE /sim/v1/faults", func(*http.Request) (any, error) { s.ClearFaults(); return []any{}, nil })
	route("POST /sim/v1/clock", s.postClock)
	route("GET /sim/v1/clock", func(*http.Request) (any, error) { return clockView{stamp(s.clock.Now())}, nil })
	route("GET /sim/v1/float", s.getFloat)
	route("POST /sim/v1/float", s.postFloat)
	route("GET /sim/v1/statement", s.getStatement)
	m.HandleFunc("GET /sim/v1/statements/{provider}/{account}", s.statementFile)
	for _, p := range s.providers {
		for pattern, answer := range p.Control {
			route(pattern, answer)
		}
	}
	route("/sim/v1/", func(*http.Request) (any, error) {
		return nil, problem.New(problem.NotFound, "not_found", "The simulator has no such path or method")
	})
	return m
}

func (s *Sim) reply(w http.ResponseWriter, data any, err error) {
	body := map[string]any{"message": "ok", "data": data}
	status := http.StatusOK
	if err != nil {
		p := problem.From(err)
		body = map[string]any{"message": p.Message, "code": p.Code, "data": nil}
		if len(p.Fields) > 0 {
			body["errors"] = p.Fields
		}
		switch p.Kind {
		case problem.Malformed:
			status = http.StatusBadRequest
		case problem.NotFound:
			status = http.StatusNotFound
		case problem.Invalid:
			status = http.StatusUnprocessableEntity
		case problem.InProgress:
			status = http.StatusConflict
		default:
			status = http.StatusInternalServerError
			s.log.Error("simulator control request failed", slog.Any("error", err))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// Decode decodes the body of a control request. An empty body counts as an empty object.
func Decode(r *http.Request, into any) error {
	err := json.NewDecoder(r.Body).Decode(into)
	if err != nil && !errors.Is(err, io.EOF) {
		return problem.Wrap(err, problem.Malformed, "broken_json", "The body is not valid JSON")
	}
	return nil
}

// Encode returns a value of a simulated answer as JSON. The value must have plain members.
func Encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// CheckURL refuses a setting of a control request that is neither empty nor a URL. name is the setting's member.
func CheckURL(name string, setting *string) error {
	if setting == nil || *setting == "" {
		return nil
	}
	if u, err := url.Parse(*setting); err != nil || u.Host == "" {
		return problem.Field(name, "must be a URL")
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

type messageView struct {
	From       string `json:"from"`
	Text       string `json:"text"`
	ReceivedAt string `json:"received_at"`
}

func (s *Sim) getMessages(r *http.Request) (any, error) {
	list := []messageView{}
	for _, m := range s.Messages(r.PathValue("msisdn")) {
		list = append(list, messageView{m.From, m.Text, stamp(m.ReceivedAt)})
	}
	return list, nil
}

type promptView struct {
	ID       string  `json:"id"`
	Provider string  `json:"provider"`
	Amount   float64 `json:"amount"`
	Text     string  `json:"text"`
	Status   string  `json:"status"`
	// Kind and Reference name the subject of the callback on pages.
	Kind      Kind   `json:"kind"`
	Reference string `json:"reference"`
	At        string `json:"at"`
}

func viewPrompt(p Prompt) promptView {
	return promptView{p.ID, p.Provider, p.Entry.Amount.Float(), p.Text, p.Status, p.Entry.Kind, p.Entry.Reference, stamp(p.Entry.At)}
}

func (s *Sim) getPrompts(r *http.Request) (any, error) {
	list := []promptView{}
	for _, p := range s.Prompts(r.PathValue("msisdn")) {
		list = append(list, viewPrompt(p))
	}
	return list, nil
}

func (s *Sim) postPrompt(r *http.Request) (any, error) {
	var body struct{ Action string }
	if err := Decode(r, &body); err != nil {
		return nil, err
	}
	p, err := s.Answer(r.PathValue("msisdn"), r.PathValue("id"), body.Action)
	if err != nil {
		return nil, err
	}
	return viewPrompt(p), nil
}

type transactionView struct {
	Provider  string  `json:"provider"`
	Reference string  `json:"reference"`
	Kind      Kind    `json:"kind"`
	Amount    float64 `json:"amount"`
	Status    Status  `json:"status"`
	At        string  `json:"at"`
	Party     string  `json:"party"`
	Reason    Reason  `json:"reason,omitempty"`
	Reversed  bool    `json:"reversed,omitempty"`
}

func viewTransaction(e Entry) transactionView {
	return transactionView{e.Provider, e.Reference, e.Kind, e.Amount.Float(), e.Status, stamp(e.At), e.Party, e.Reason, e.Reversed}
}

func (s *Sim) getTransactions(r *http.Request) (any, error) {
	reference := r.URL.Query().Get("reference")
	if reference == "" {
		return nil, problem.Field("reference", "is required")
	}
	list := []transactionView{}
	for _, e := range s.Entries(reference) {
		list = append(list, viewTransaction(e))
	}
	return list, nil
}

// postTransaction ends a pending transaction, or reverses a success.
func (s *Sim) postTransaction(r *http.Request) (any, error) {
	var body struct{ Action string }
	if err := Decode(r, &body); err != nil {
		return nil, err
	}
	entries := s.Entries(r.PathValue("reference"))
	if len(entries) == 0 {
		return nil, problem.New(problem.NotFound, "no_transaction", "No provider has this reference")
	}
	list := []transactionView{}
	for _, e := range entries {
		did := false
		switch body.Action {
		case "succeed":
			did = s.Resolve(e.Provider, e.Reference, Success, "")
		case "fail":
			did = s.Resolve(e.Provider, e.Reference, Failed, Internal)
		case "reverse":
			did = s.ReverseEntry(e.Provider, e.Reference)
		default:
			return nil, problem.Field("action", "must be succeed, fail or reverse")
		}
		if !did {
			return nil, problem.New(problem.InProgress, "not_possible", "The transaction is "+string(e.Status))
		}
		after, _ := s.Status(e.Provider, e.Reference)
		list = append(list, viewTransaction(after))
	}
	return list, nil
}

type faultView struct {
	Provider  string    `json:"provider"`
	Operation string    `json:"operation"`
	Fault     FaultKind `json:"fault"`
	Count     int       `json:"count,omitempty"`
	Seconds   float64   `json:"seconds,omitempty"`
	DelayS    float64   `json:"delay_s,omitempty"`
	Every     int       `json:"every,omitempty"`
	Answer    string    `json:"answer,omitempty"`
}

func faultList(faults []Fault) []faultView {
	list := []faultView{}
	for _, f := range faults {
		list = append(list, faultView{f.Provider, f.Operation, f.Kind, f.Count, f.For.Seconds(), f.Delay.Seconds(), f.Every, f.Answer})
	}
	return list
}

// faultNames has aliases of the faults.
var faultNames = map[string]FaultKind{
	"lost": AnswerLost, "lost_answer": AnswerLost, "answer_lost_after_commit": AnswerLost, "drop": AnswerLost, "timeout": AnswerLost,
	"5xx_before_commit": ErrorBefore, "5xx_before": ErrorBefore, "500": ErrorBefore,
	"5xx_after_commit": ErrorAfter, "5xx_after": ErrorAfter,
	"malformed_body": Malformed, "garbled": Malformed,
	"throttling": Throttle, "429": Throttle, "rate_limit": Throttle, "503": Outage, "401": Unauthorized, "403": Forbidden,
	"duplicate_callback": CallbackDuplicate, "early_callback": CallbackEarly, "late_callback": CallbackLate,
	"missing_callback": CallbackMissing, "forged_callback": CallbackForged, "stale_callback": CallbackStale,
	"wrongly_signed_callback": CallbackForged, "wrong_signature": CallbackForged,
	"duplicate_receipt": CallbackDuplicate, "early_receipt": CallbackEarly, "late_receipt": CallbackLate,
	"missing_receipt": CallbackMissing, "unknown_receipt": CallbackForged, "stale_receipt": CallbackStale,
	"no_answer": Silent, "rmsgqful": QueueFull, "rthrottled": Throttle,
	"reversal": Reverse, "not_found": StatusNotFound, "wrong_amount": StatusWrongAmount,
	"refuse_after_commit": RefuseAfter, "hang": StatusHang, "lag": StatusLag, "forget": StatusNotFound, "other_payment": StatusOther,
}

func (s *Sim) postFault(r *http.Request) (any, error) {
	var body struct {
		Provider, Operation, Fault, Answer string
		Count, Every                       int
		Seconds                            float64
		DelayS                             float64 `json:"delay_s"`
	}
	if err := Decode(r, &body); err != nil {
		return nil, err
	}
	name := strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(body.Fault)))
	kind, ok := faultNames[name]
	if !ok {
		kind = FaultKind(name)
	}
	provider := strings.ToLower(strings.TrimSpace(body.Provider))
	for _, p := range s.providers {
		if p.Adapter != "" && provider == p.Adapter {
			provider = p.Name
		}
	}
	if provider == "*" {
		provider = ""
	}
	f := Fault{Provider: provider, Operation: body.Operation, Kind: kind, Count: body.Count, Every: body.Every, For: seconds(body.Seconds), Delay: seconds(body.DelayS), Answer: body.Answer}
	if err := s.Inject(f); err != nil {
		return nil, err
	}
	return faultList(s.Faults()), nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

type clockView struct {
	Now string `json:"now"`
}

// maxAdvance is the maximum step of the clock.
const maxAdvance = 400 * 24 * time.Hour

func (s *Sim) postClock(r *http.Request) (any, error) {
	var body struct {
		AdvanceS float64 `json:"advance_s"`
	}
	if err := Decode(r, &body); err != nil {
		return nil, err
	}
	if body.AdvanceS < 0 || body.AdvanceS > maxAdvance.Seconds() {
		return nil, problem.Field("advance_s", "must be between 0 and 400 days")
	}
	s.clock.Advance(seconds(body.AdvanceS))
	return clockView{stamp(s.clock.Now())}, nil
}

type floatView struct {
	Provider string  `json:"provider"`
	Amount   float64 `json:"amount"`
}

func (s *Sim) getFloat(*http.Request) (any, error) {
	list := []floatView{}
	for _, name := range s.Providers() {
		list = append(list, floatView{name, s.Float(name).Float()})
	}
	return list, nil
}

// postFloat sets our balance at a provider.
func (s *Sim) postFloat(r *http.Request) (any, error) {
	var body struct {
		Provider string
		Amount   json.Number
	}
	if err := Decode(r, &body); err != nil {
		return nil, err
	}
	amount, err := money.ParseNumber(body.Amount.String())
	if err != nil {
		return nil, problem.Field("amount", "must be an amount in cedis")
	}
	if err := s.SetFloat(body.Provider, amount); err != nil {
		return nil, err
	}
	return floatView{body.Provider, s.Float(body.Provider).Float()}, nil
}

type statementView struct {
	Provider   string  `json:"provider"`
	Reference  string  `json:"reference"`
	Kind       Kind    `json:"kind"`
	Amount     float64 `json:"amount"`
	Fee        float64 `json:"fee"`
	Commission float64 `json:"commission"`
	Status     Status  `json:"status"`
	Party      string  `json:"party"`
	At         string  `json:"at"`
	SettledAt  string  `json:"settled_at"`
}

func (s *Sim) getStatement(r *http.Request) (any, error) {
	provider := r.URL.Query().Get("provider")
	list := []statementView{}
	for _, row := range s.Statement(provider) {
		list = append(list, statementView{row.Provider, row.Reference, row.Kind, row.Amount.Float(), row.Fee.Float(),
			row.Commission.Float(), row.Status, row.Party, stamp(row.At), stamp(row.Settled)})
	}
	return list, nil
}

// statementFile answers a download of a statement. from and to are days or times. Without them the statement has all movements
// until now.
func (s *Sim) statementFile(w http.ResponseWriter, r *http.Request) {
	provider, account := r.PathValue("provider"), r.PathValue("account")
	for _, p := range s.providers {
		if p.Adapter != "" && provider == p.Adapter {
			provider = p.Name
		}
	}
	from, err := statementTime(r, "from", time.Time{}, 0)
	until, untilErr := statementTime(r, "to", s.clock.Now().Add(time.Nanosecond), 24*time.Hour)
	if err = cmp.Or(err, untilErr); err != nil {
		s.reply(w, nil, err)
		return
	}
	file, err := s.StatementFile(provider, account, from, until)
	if err != nil {
		s.reply(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s.csv"`, provider, account))
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(file) // a client that disconnected needs no answer
}

// statementTime reads a day or a moment from the query of a download. For a day it returns the beginning of
// the day plus behind.
func statementTime(r *http.Request, name string, none time.Time, behind time.Duration) (time.Time, error) {
	text := strings.TrimSpace(r.URL.Query().Get(name))
	if text == "" {
		return none, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.Add(behind), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		err = problem.Field(name, "must be a day such as 2026-11-20, or a moment such as 2026-11-20T08:00:00Z")
	}
	return at, err
}
