package sample

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/clock"
)

// maker makes one sample.
type maker struct {
	clock    *clock.Clock
	app      *app.App
	operator *operator
	receiver *receiver
	seed     uint64
	shops    []*shop
	networks map[string]string // airtime ids by network name
	services map[string]string // data ids by network name
	banks    []string          // ids
	faults   map[string]bool
	busy     time.Time // until then time passes second by second
	made     Made
}

// Made describes the result.
type Made struct {
	Folder    string
	From, To  time.Time // of the history
	Payments  int       // requested payments
	Failing   int       // payments that end by the customer or the provider
	Stuck     int       // payouts whose outcome is unknown
	Campaigns int
	OTPs      int // one-time passwords
	Webhooks  int // that were received
	InReview  int // sender IDs
}

// The steps of time: seconds while requests are being settled, then longer steps, so that retries have plausible times.
const (
	busyFor  = 20 * time.Second
	busyStep = time.Second
	stride   = 30 * time.Minute
)

// until moves the clock to a time. All work that is due at a moment ends before the clock moves on.
func (m *maker) until(ctx context.Context, at time.Time) error {
	for {
		now := m.clock.Now()
		left := at.Sub(now)
		if left <= 0 {
			return nil
		}
		step := min(left, stride)
		if now.Before(m.busy) {
			step = min(step, busyStep)
		}
		m.clock.Advance(step)
		if err := m.app.Quiet(ctx); err != nil {
			return err
		}
	}
}

// rest waits for the last requests, and from now on moves the clock second by second.
func (m *maker) rest(ctx context.Context) error {
	m.busy = m.clock.Now().Add(busyFor)
	return m.app.Quiet(ctx)
}

// call makes one request and reads its answer, which must be a success.
func call(ctx context.Context, method, url, key string, body, into any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, sent)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("x-api-key", key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s was answered with %d: %s", method, r.URL.Path, answer.StatusCode, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// ask makes a request of a shop.
func (m *maker) ask(ctx context.Context, s *shop, method, path string, body, into any) error {
	return call(ctx, method, m.app.Ready().APIURL+path, s.key, body, into)
}

// sim makes a request of the simulator.
func (m *maker) sim(ctx context.Context, method, path string, body, into any) error {
	return call(ctx, method, m.app.Ready().SimURL+path, "", body, into)
}

// fault arms a fault of the simulator for the next request of an operation.
func (m *maker) fault(ctx context.Context, operation, kind string) error {
	return m.sim(ctx, http.MethodPost, "/faults", map[string]any{"operation": operation, "fault": kind, "count": 1}, nil)
}

// named is an item of a list in an answer of the interface.
type named struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Network string `json:"network"`
}

type namedList struct {
	Data []named `json:"data"`
}

// catalogue reads the networks and data services that can be bought, and the banks.
func (m *maker) catalogue(ctx context.Context, s *shop) error {
	var networks, services, banks namedList
	for path, list := range map[string]*namedList{"/airtime-api/networks": &networks, "/databundle-api-v2/services": &services, "/payment-api/banks": &banks} {
		if err := m.ask(ctx, s, http.MethodGet, path, nil, list); err != nil {
			return err
		}
	}
	m.networks, m.services = map[string]string{}, map[string]string{}
	for _, n := range networks.Data {
		m.networks[networkWord(n.Name)] = n.ID
	}
	for _, n := range services.Data {
		if word := networkWord(n.Network); m.services[word] == "" {
			m.services[word] = n.ID
		}
	}
	for _, b := range banks.Data {
		m.banks = append(m.banks, b.ID)
	}
	slices.Sort(m.banks)
	for _, network := range networkWords {
		if m.networks[network] == "" || m.services[network] == "" || len(m.banks) == 0 {
			return fmt.Errorf("the catalogue lacks %s: %v, %v, %d banks", network, m.networks, m.services, len(m.banks))
		}
	}
	return nil
}

// networkWord returns the name of a network in requests.
func networkWord(name string) string {
	name = strings.ToUpper(name)
	switch {
	case strings.HasPrefix(name, "MTN"):
		return "MTN"
	case strings.HasPrefix(name, "TELECEL"), strings.HasPrefix(name, "VDF"), strings.HasPrefix(name, "VODA"):
		return "VDF"
	}
	return "ATL"
}
