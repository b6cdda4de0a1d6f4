package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/msisdn"
)

// HubtelSMS has the credentials of Hubtel's SMS product. They differ from those for payments.
type HubtelSMS struct {
	ClientID     string     `name:"client-id" env:"CLIENT_ID" help:"Client id of Hubtel's SMS product. Empty disables it."`
	ClientSecret Credential `name:"client-secret" env:"CLIENT_SECRET" hidden:"" help:"Client secret of Hubtel's SMS product."`
	URL          string     `name:"url" env:"URL" default:"https://sms.hubtel.com" help:"Base URL of Hubtel's SMS interface."`
	Window       int        `name:"window" env:"WINDOW" default:"16" help:"Maximum number of unanswered requests to Hubtel SMS."`
	Senders      []string   `name:"sender" env:"SENDERS" placeholder:"NAME" help:"Sender ID that is registered with Hubtel. May be repeated. Default: all sender IDs."`
}

// Enabled reports whether the operator configured Hubtel's SMS product at all.
func (h HubtelSMS) Enabled() bool { return h.ClientID != "" }

// Arkesel has the credentials of an account at Arkesel.
type Arkesel struct {
	APIKey  Credential `name:"api-key" env:"API_KEY" hidden:"" help:"API key of Arkesel. Empty disables Arkesel."`
	URL     string     `name:"url" env:"URL" default:"https://sms.arkesel.com" help:"Base URL of Arkesel's interface."`
	Window  int        `name:"window" env:"WINDOW" default:"16" help:"Maximum number of unanswered requests to Arkesel."`
	Senders []string   `name:"sender" env:"SENDERS" placeholder:"NAME" help:"Sender ID that is registered with Arkesel. May be repeated. Default: all sender IDs."`
}

// Enabled reports whether the operator configured Arkesel at all.
func (a Arkesel) Enabled() bool { return a.APIKey != "" }

// OptOutWords are words in addition to the usual ones. A text from a handset that consists of such a word adds the
// number to the opt-outs, or removes it.
type OptOutWords struct {
	Stop  []string `name:"stop-word" env:"STOP_WORDS" placeholder:"WORD" help:"Further word that ends campaigns to a handset, in addition to STOP and the usual words. May be repeated."`
	Start []string `name:"start-word" env:"START_WORDS" placeholder:"WORD" help:"Further word that allows campaigns to a handset again, in addition to START and the usual words. May be repeated."`
}

// TextProviders are the names of the providers of texts in routes.
var TextProviders = []string{"smpp", "hubtelsms", "arkesel"}

// SMSRoute is the ordered list of providers of texts for a network and a sender ID. An empty network or sender ID
// matches all.
type SMSRoute struct {
	Network, Sender string
	Providers       []string
}

// UnmarshalText parses NETWORK:SENDER:PROVIDER+PROVIDER, such as MTN:*:arkesel+smpp.
func (r *SMSRoute) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), ":")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return fmt.Errorf("%q is not NETWORK:SENDER:PROVIDERS, such as MTN:*:arkesel+smpp", text)
	}
	out := SMSRoute{Sender: strings.TrimSpace(parts[1]), Providers: strings.Split(parts[2], "+")}
	if parts[0] != "*" {
		network, known := msisdn.ParseNetwork(parts[0])
		if !known {
			return fmt.Errorf("%q has a network other than MTN, TELECEL, AIRTELTIGO and *", text)
		}
		out.Network = string(network)
	}
	if out.Sender == "*" {
		out.Sender = ""
	}
	for i, name := range out.Providers {
		if !slices.Contains(TextProviders, name) || slices.Contains(out.Providers[:i], name) {
			return fmt.Errorf("%q must name each of %s at most once", text, strings.Join(TextProviders, ", "))
		}
	}
	*r = out
	return nil
}

// String returns the route in the form of the setting.
func (r SMSRoute) String() string {
	star := func(s string) string {
		if s == "" {
			return "*"
		}
		return s
	}
	return star(r.Network) + ":" + star(r.Sender) + ":" + strings.Join(r.Providers, "+")
}

// SendsTexts reports whether the operator configured any provider of texts.
func (s Server) SendsTexts() bool {
	return s.SMPP.Enabled() || s.HubtelSMS.Enabled() || s.Arkesel.Enabled()
}

// mostTextWindow is the maximum window of a provider of texts over HTTP.
const mostTextWindow = 256

// CheckTexts returns the first error in the settings of providers of texts over HTTP and of routes of texts.
func (s Server) CheckTexts() error {
	configured := map[string]bool{"smpp": s.SMPP.Enabled(), "hubtelsms": s.HubtelSMS.Enabled(), "arkesel": s.Arkesel.Enabled()}
	for name, window := range map[string]int{"hubtelsms": s.HubtelSMS.Window, "arkesel": s.Arkesel.Window} {
		if configured[name] && (window < 1 || window > mostTextWindow) {
			return fmt.Errorf("the window of %s must be 1 to %d", name, mostTextWindow)
		}
	}
	if s.HubtelSMS.Enabled() && s.HubtelSMS.ClientSecret == "" {
		return errors.New("Hubtel SMS has no client secret: set MAKOLA_HUBTEL_SMS_CLIENT_SECRET")
	}
	seen := map[[2]string]bool{}
	for _, r := range s.SMSRoutes {
		key := [2]string{r.Network, r.Sender}
		if seen[key] {
			return fmt.Errorf("two SMS routes are for the same network and sender: %s", r)
		}
		seen[key] = true
		if i := slices.IndexFunc(r.Providers, func(name string) bool { return !configured[name] }); i >= 0 {
			return fmt.Errorf("the SMS route %s names %s, which is not configured", r, r.Providers[i])
		}
	}
	return nil
}
