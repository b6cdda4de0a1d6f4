package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/makola/makola/internal/provider/smpp"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/arkesel"
	"github.com/makola/makola/internal/sim/hubtel"
	"github.com/makola/makola/internal/sim/hubtelsms"
	"github.com/makola/makola/internal/sim/moolre"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/sim/pawapay"
	"github.com/makola/makola/internal/sim/paystack"
	"github.com/makola/makola/internal/sim/smsc"
)

// simControl is the path of the simulator's own interface.
const simControl = "/sim/v1"

// simulator is the simulator for test money. It runs in this process or is reached at a URL.
type simulator struct {
	url     string       // where the adapters find the providers
	smpp    string       // where the message centre listens; empty when it is another process
	control http.Handler // /sim/v1, as this server mounts it
	local   *simulated   // nil when it is another process
}

// simURL returns where the adapters find the simulator; empty: there is none.
func (a *App) simURL() string {
	if a.sim == nil {
		return ""
	}
	return a.sim.url
}

// simulated is a simulator of every provider that has an adapter.
type simulated struct {
	*sim.Sim
	Centre    *smsc.Centre
	Arkesel   *arkesel.Arkesel
	HubtelSMS *hubtelsms.Hubtel
}

// simulate opens a simulator. To add a provider, add its part here.
func simulate(o sim.Options, ofMTN mtn.Options, ofCentre smsc.Options) (*simulated, error) {
	centre := smsc.New(ofCentre)
	ark, hub := arkesel.New(), hubtelsms.New()
	s, err := sim.New(o, mtn.New(ofMTN), hubtel.New(hubtel.Options{}), paystack.New(paystack.Options{}), pawapay.New(pawapay.Options{}), moolre.New(moolre.Options{}), centre.Join, ark.Join, hub.Join)
	if err != nil {
		return nil, err
	}
	return &simulated{s, centre, ark, hub}, nil
}

// mtnURL returns the base URL of the simulator for clients of MTN's sandbox.
func (s *simulator) mtnURL() string { return s.url + "/mtn" }

// lookForSMSC is how often an unconnected node requests the message centre's account.
const lookForSMSC = 2 * time.Second

// simWindow is the maximum number of unanswered segments at the simulator, which has no latency.
const simWindow = 100

// binds requests the account of the simulator's message centre.
func (s *simulator) binds(ctx context.Context) ([]smpp.Bind, error) {
	account, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	if account.Address == "" {
		return nil, errNoSMSC
	}
	return []smpp.Bind{{Name: "simulator", Address: account.Address, SystemID: account.SystemID, Password: account.Password, Window: simWindow}}, nil
}

func (s *simulator) account(ctx context.Context) (smsc.Account, error) {
	if s.local != nil {
		account := s.local.Centre.Account()
		account.Address = s.smpp
		return account, nil
	}
	var body struct {
		Data smsc.Account `json:"data"`
	}
	ctx, cancel := context.WithTimeout(ctx, lookForSMSC)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+simControl+"/smsc", nil)
	if err != nil {
		return body.Data, fmt.Errorf("request the simulator's message centre: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return body.Data, fmt.Errorf("request the simulator's message centre: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return body.Data, fmt.Errorf("request the simulator's message centre: %s", answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return body.Data, fmt.Errorf("parse the answer about the simulator's message centre: %w", err)
	}
	return body.Data, nil
}

// sandbox holds the settings of a client of a simulated provider.
type sandbox struct {
	name  string
	lines []string
}

// sandboxes lists what clients need to use the simulator at base in place of the providers.
func sandboxes(base string, sms smsc.Account) []sandbox {
	return []sandbox{
		{"MTN", mtnSandbox(base)},
		{"Hubtel", hubtelSandbox(base)},
		{"Paystack", paystackSandbox(base)},
		{"pawaPay", textSandbox(pawapay.Config(base).URL, "for clients of pawaPay", "API token "+pawapay.Config(base).Token.Reveal())},
		{"Moolre", moolreSandbox(base)},
		{"Arkesel", textSandbox(arkesel.Config(base).URL, "for clients of Arkesel", "API key "+arkesel.Config(base).APIKey.Reveal())},
		{"Hubtel SMS", textSandbox(hubtelsms.Config(base).URL, "for clients of Hubtel SMS", "client ID "+hubtelsms.Config(base).ClientID+"  client secret "+hubtelsms.Config(base).ClientSecret.Reveal())},
		{"SMS", []string{fmt.Sprintf("%s        SMPP 3.4  system ID %s  password %s", sms.Address, sms.SystemID, sms.Password)}},
	}
}

// moolreSandbox lists the settings of a client of Moolre for the simulator at base.
func moolreSandbox(base string) []string {
	account := moolre.Config(base)
	return append(textSandbox(account.URL, "for clients of Moolre", "user "+account.User+"  account "+account.AccountNumber),
		"private key "+account.PrivateKey.Reveal(), "public key "+account.PublicKey.Reveal())
}

// hubtelSandbox lists the settings of a client of Hubtel for the simulator at base.
func hubtelSandbox(base string) []string {
	c := hubtel.Config(base)
	return []string{
		base + "/hubtel        for clients of Hubtel (its hosts are paths: /docs/testing)",
		fmt.Sprintf("client ID %s  client secret %s  POS Sales ID %s  Prepaid Deposit ID %s", c.ClientID, c.ClientSecret.Reveal(), c.POSSales, c.Prepaid),
	}
}

// paystackSandbox lists the settings of a client of Paystack for the simulator at base.
func paystackSandbox(base string) []string {
	c := paystack.Config(base)
	return []string{c.URL + "        for clients of Paystack  secret key " + c.SecretKey.Reveal()}
}

// textSandbox lists the settings of a client of a provider of texts.
func textSandbox(url, whom, keys string) []string {
	return []string{url + "        " + whom + "  " + keys}
}

// sendEvents sets the address for the events of a simulated provider, as a business does in the provider's
// dashboard.
func (s *simulator) sendEvents(ctx context.Context, name string, settings any) error {
	body, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookForSMSC)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+simControl+"/"+name, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// mtnSandbox lists the settings of a client of MTN's sandbox for the simulator at base.
func mtnSandbox(base string) []string {
	lines := []string{base + "/mtn        for clients of MTN's sandbox (X-Target-Environment: sandbox)"}
	for _, c := range mtn.Credentials() {
		lines = append(lines, fmt.Sprintf("%-12s  subscription key %s  API user %s  API key %s", c.Product, c.SubscriptionKey, c.User, c.APIKey))
	}
	return lines
}
