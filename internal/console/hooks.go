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

// hooks is the receiver of webhooks of a development server, in memory: the last ones of each account.
type hooks struct {
	mu        sync.Mutex
	byAccount map[string][]hook // ids of test accounts
	accounts  []string          // the oldest first
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
	hooksKept    = 20
	hookAccounts = 50
	hookBytes    = 64 << 10
	hookSigners  = 100 // test accounts whose secrets are tried on a webhook under a free name
)

// put keeps a webhook, and drops the oldest of its account and the oldest account.
func (h *hooks) put(account string, arrived hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byAccount == nil {
		h.byAccount = map[string][]hook{}
	}
	if _, known := h.byAccount[account]; !known {
		if len(h.accounts) >= hookAccounts {
			delete(h.byAccount, h.accounts[0])
			h.accounts = h.accounts[1:]
		}
		h.accounts = append(h.accounts, account)
	}
	list := append(h.byAccount[account], arrived)
	h.byAccount[account] = list[max(0, len(list)-hooksKept):]
}

// latest gives the webhooks of an account, the last one first.
func (h *hooks) latest(account string) []hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.Clone(h.byAccount[account])
	slices.Reverse(list)
	return list
}

// receiveHook takes a webhook as a customer's server would: it checks the signature and answers 2xx. A name that is the id of a
// test account shows the webhook to that account, whoever signed it; under any other name it is shown to the account that signed it.
func receiveHook(v *visit) (answer, error) {
	body, err := io.ReadAll(v.r.Body)
	if err != nil {
		return answer{}, err
	}
	h := hook{At: v.console.Clock.Now(), ID: v.r.Header.Get("webhook-id"), Body: indented(body)}
	for _, header := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "content-type"} {
		h.Headers = append(h.Headers, header+": "+v.r.Header.Get(header))
	}
	of, named, err := v.receiver(v.r.PathValue("name"), body)
	says := "received\n"
	switch {
	case err != nil:
		return answer{}, err
	case of.ID == "":
		says = "received, and shown nowhere: no test account has this id or has signed this\n"
	case named && !v.signed(of, body):
		h.Signature = "the signature is not one of " + of.Name
		v.console.hooks.put(of.ID, h)
	default:
		h.Signature, h.Valid = "signed by "+of.Name, true
		v.console.hooks.put(of.ID, h)
	}
	return answer{raw: func(w http.ResponseWriter, status int) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, says) // the sender looks at the status
	}}, nil
}

// receiver is the test account that a webhook is shown to, and whether its name says so; the zero account is none.
func (v *visit) receiver(name string, body []byte) (of tenant.Tenant, named bool, err error) {
	if t, err := v.console.Tenants.Get(v.ctx, name); err == nil && t.Mode == tenant.Test {
		return t, true, nil
	}
	all, err := v.console.Tenants.List(v.ctx, "", hookSigners)
	if err != nil {
		return tenant.Tenant{}, false, err
	}
	for _, t := range all {
		if t.Mode == tenant.Test && v.signed(t, body) {
			return t, false, nil
		}
	}
	return tenant.Tenant{}, false, nil
}

// signed reports whether a test account's secret signed the webhook; one whose secret cannot be read did not.
func (v *visit) signed(t tenant.Tenant, body []byte) bool {
	secret, err := v.console.Webhooks.Secret(v.ctx, t.ID)
	if err != nil {
		return false
	}
	for _, s := range []string{secret.Current, secret.Former} {
		if s == "" {
			continue
		}
		if w, err := standardwebhooks.NewWebhook(s); err == nil && w.Verify(body, v.r.Header) == nil {
			return true
		}
	}
	return false
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
