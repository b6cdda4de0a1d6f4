package console

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/makola/makola/internal/tenant"
)

// hooks is the receiver of webhooks of a development server, in memory: the last ones under each name.
type hooks struct {
	mu     sync.Mutex
	byName map[string][]hook
	names  []string // the oldest first
}

// hook is a webhook that arrived.
type hook struct {
	At        time.Time
	ID        string
	Signature string // what is to be said of it
	Valid     bool
	Body      string
	Headers   []string // those that a receiver looks at
}

const (
	hooksKept = 20
	hookNames = 50
	hookBytes = 64 << 10
)

// put keeps a webhook, and drops the oldest of its name and the oldest name.
func (h *hooks) put(name string, arrived hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName == nil {
		h.byName = map[string][]hook{}
	}
	if _, known := h.byName[name]; !known {
		if len(h.names) >= hookNames {
			delete(h.byName, h.names[0])
			h.names = h.names[1:]
		}
		h.names = append(h.names, name)
	}
	list := append(h.byName[name], arrived)
	h.byName[name] = list[max(0, len(list)-hooksKept):]
}

// latest gives the webhooks of a name, the last one first.
func (h *hooks) latest(name string) []hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.Clone(h.byName[name])
	slices.Reverse(list)
	return list
}

// receiveHook takes a webhook as a customer's server would: it checks the signature and answers 2xx. The name is the id of
// the tenant whose secret signs.
func receiveHook(v *visit) (answer, error) {
	name := v.r.PathValue("name")
	body, err := io.ReadAll(v.r.Body)
	if err != nil {
		return answer{}, err
	}
	h := hook{At: v.console.Clock.Now(), ID: v.r.Header.Get("webhook-id"), Body: indented(body)}
	for _, header := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "content-type"} {
		h.Headers = append(h.Headers, header+": "+v.r.Header.Get(header))
	}
	h.Signature, h.Valid = v.checkSignature(name, body)
	v.console.hooks.put(name, h)
	return answer{raw: func(w http.ResponseWriter, status int) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "received\n") // the sender looks at the status
	}}, nil
}

// checkSignature holds a webhook against the secrets of a test tenant.
func (v *visit) checkSignature(name string, body []byte) (says string, valid bool) {
	t, err := v.console.Tenants.Get(v.ctx, name)
	if err != nil || t.Mode != tenant.Test {
		return "not checked: this address does not end in the id of a test account", false
	}
	secret, err := v.console.Webhooks.Secret(v.ctx, t.ID)
	if err != nil {
		return "not checked: the secret could not be read", false
	}
	for _, s := range []string{secret.Current, secret.Former} {
		if s == "" {
			continue
		}
		if w, err := standardwebhooks.NewWebhook(s); err == nil && w.Verify(body, v.r.Header) == nil {
			return "signed by " + t.Name, true
		}
	}
	return "the signature is not one of " + t.Name, false
}

// indented lays a JSON body out; anything else stays as it is.
func indented(body []byte) string {
	var any json.RawMessage
	if json.Unmarshal(body, &any) != nil {
		return string(body)
	}
	text, err := json.MarshalIndent(any, "", "  ")
	if err != nil {
		return string(body)
	}
	return string(text)
}
