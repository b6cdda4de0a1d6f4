package handsets

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
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
	Signature string // the result of the check of its signature
	Valid     bool
	Body      string
	Headers   []string // the headers that a receiver reads
}

const (
	hooksKept    = 20
	hookAccounts = 50
	hookBytes    = 64 << 10
	hookSigners  = 100 // number of test accounts whose secrets are tried on a webhook with an unknown name
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

// receiveHook receives a webhook as a merchant's server would: it checks the signature and answers 2xx. If the name
// is the id of a test account, the webhook is shown to that account. Otherwise it is shown to the account that signed
// it.
func (ps *Pages) receiveHook(v *console.Visit) (console.Answer, error) {
	body, err := io.ReadAll(v.R.Body)
	if err != nil {
		return console.Answer{}, err
	}
	h := hook{At: v.Now(), ID: v.R.Header.Get("webhook-id"), Body: page.Indented(body)}
	for _, header := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "content-type"} {
		h.Headers = append(h.Headers, header+": "+v.R.Header.Get(header))
	}
	of, named, err := ps.receiver(v, v.R.PathValue("name"), body)
	says := "received\n"
	switch {
	case err != nil:
		return console.Answer{}, err
	case of.ID == "":
		says = "received but not shown: no test account has this id, or signed this webhook\n"
	case named && !ps.signed(v, of, body):
		h.Signature = "the signature is not one of " + of.Name
		ps.hooks.put(of.ID, h)
	default:
		h.Signature, h.Valid = "signed by "+of.Name, true
		ps.hooks.put(of.ID, h)
	}
	return console.Answer{Raw: func(w http.ResponseWriter, status int) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, says) // the sender reads only the status
	}}, nil
}

// receiver returns the test account that sees a webhook, or the zero account, and whether the webhook's name is the
// account's id.
func (ps *Pages) receiver(v *console.Visit, name string, body []byte) (of tenant.Tenant, named bool, err error) {
	if t, err := ps.Tenants.Get(v.Ctx, name); err == nil && t.Mode == tenant.Test {
		return t, true, nil
	}
	all, err := ps.Tenants.List(v.Ctx, "", hookSigners)
	if err != nil {
		return tenant.Tenant{}, false, err
	}
	for _, t := range all {
		if t.Mode == tenant.Test && ps.signed(v, t, body) {
			return t, false, nil
		}
	}
	return tenant.Tenant{}, false, nil
}

// signed reports whether a test account's secret signed the webhook. It returns false if the secret cannot be read.
func (ps *Pages) signed(v *console.Visit, t tenant.Tenant, body []byte) bool {
	secret, err := ps.Webhooks.Secret(v.Ctx, t.ID)
	if err != nil {
		return false
	}
	for _, s := range []string{secret.Current, secret.Former} {
		if s == "" {
			continue
		}
		if w, err := standardwebhooks.NewWebhook(s); err == nil && w.Verify(body, v.R.Header) == nil {
			return true
		}
	}
	return false
}
