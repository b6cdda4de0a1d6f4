package handsets

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// simulator calls the simulator through its own interface (/sim/v1), in this process or in another.
type simulator struct{ control http.Handler }

// kept is the answer of a handler, in memory.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(status int) { k.status = status }

// Write implements http.ResponseWriter.
func (k *kept) Write(text []byte) (int, error) { return k.body.Write(text) }

// call sends one request and reads the data member of the answer.
func (s simulator) call(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1"+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	w := &kept{header: http.Header{}, status: http.StatusOK}
	s.control.ServeHTTP(w, r)
	answer := struct {
		Message string
		Errors  map[string][]string
		Data    any
	}{Data: into}
	if err := json.Unmarshal(w.body.Bytes(), &answer); err != nil {
		return problem.Wrap(err, problem.Unavailable, "simulator_unavailable", "The simulator does not answer")
	}
	switch {
	case w.status < 300:
		return nil
	case len(answer.Errors) > 0:
		for field, texts := range answer.Errors {
			return problem.Field(field, texts[0])
		}
	case w.status == http.StatusNotFound:
		return problem.New(problem.NotFound, "not_simulated", answer.Message)
	case w.status == http.StatusConflict:
		return problem.New(problem.InProgress, "not_possible", answer.Message)
	}
	return problem.New(problem.Unavailable, "simulator_refused", "The simulator refused: "+answer.Message)
}

// simPrompt is a request for approval on a handset.
type simPrompt struct {
	ID, Provider, Text, Status, Kind, Reference, At string
	Amount                                          json.Number
}

// simMessage is a text that arrived on a handset.
type simMessage struct {
	From, Text string
	ReceivedAt string `json:"received_at"`
}

// simMovement is a line of a provider's statement.
type simMovement struct {
	Provider, Reference, Kind, Status, Party, At string
	Amount                                       json.Number
}

// simFault is a fault that waits for its occasions.
type simFault struct {
	Provider, Operation, Fault string
	Count                      int
	Seconds                    float64
}

func (s simulator) prompts(ctx context.Context, number string) (list []simPrompt, err error) {
	return list, s.call(ctx, http.MethodGet, "/sim/v1/handsets/"+url.PathEscape(number)+"/prompts", nil, &list)
}

func (s simulator) messages(ctx context.Context, number string) (list []simMessage, err error) {
	return list, s.call(ctx, http.MethodGet, "/sim/v1/handsets/"+url.PathEscape(number)+"/messages", nil, &list)
}

func (s simulator) answer(ctx context.Context, number, prompt, action string) error {
	return s.call(ctx, http.MethodPost, "/sim/v1/handsets/"+url.PathEscape(number)+"/prompts/"+url.PathEscape(prompt), map[string]string{"action": action}, nil)
}

func (s simulator) statement(ctx context.Context) (list []simMovement, err error) {
	return list, s.call(ctx, http.MethodGet, "/sim/v1/statement", nil, &list)
}

func (s simulator) faults(ctx context.Context) (list []simFault, err error) {
	return list, s.call(ctx, http.MethodGet, "/sim/v1/faults", nil, &list)
}

func (s simulator) addFault(ctx context.Context, provider, fault string, count int) error {
	return s.call(ctx, http.MethodPost, "/sim/v1/faults", map[string]any{"provider": provider, "fault": fault, "count": count}, nil)
}

func (s simulator) clearFaults(ctx context.Context) error {
	return s.call(ctx, http.MethodDelete, "/sim/v1/faults", nil, nil)
}

func (s simulator) advance(ctx context.Context, seconds int) error {
	return s.call(ctx, http.MethodPost, "/sim/v1/clock", map[string]int{"advance_s": seconds}, nil)
}

// amountOf reads an amount of the simulator.
func amountOf(n json.Number) money.Pesewas {
	amount, err := money.ParseNumber(n.String())
	if err != nil {
		return 0
	}
	return amount
}
