package config

import (
	"log/slog"
	"strconv"

	"github.com/makola/makola/internal/outbound"
)

// Egress is the proxy of HTTP requests to providers and to the receivers of webhooks.
type Egress struct {
	URL    Credential `name:"proxy" env:"MAKOLA_PROXY" hidden:"" help:"Egress proxy for requests to providers and webhook receivers: http://[user:password@]host:port, or https. Not used for SMPP and PostgreSQL."`
	Except []string   `name:"proxy-except" env:"MAKOLA_PROXY_EXCEPT" placeholder:"HOST" help:"Host with its subdomains, .suffix, IP address or CIDR to connect to without the egress proxy. May be repeated. Loopback never uses it."`
}

// Proxy returns the proxy, or nil if none is configured. log receives the reasons for failed tunnels.
func (e Egress) Proxy(log *slog.Logger) (*outbound.Proxy, error) {
	return outbound.NewProxy(e.URL.Reveal(), e.Except, log)
}

// wrong returns a text for each invalid setting, with the valid values. It never contains a password.
func (e Egress) wrong() (list []string) {
	if _, err := outbound.NewProxy(e.URL.Reveal(), nil, nil); err != nil {
		list = append(list, "a URL such as http://proxy.example:3128 or https://user:password@proxy.example:3129 in MAKOLA_PROXY, with a port and without a path")
	}
	for _, entry := range e.Except {
		if !outbound.CheckException(entry) {
			list = append(list, "hosts, suffixes or networks such as bank.example,.internal.example,10.0.0.0/8 in MAKOLA_PROXY_EXCEPT, not "+strconv.Quote(entry))
		}
	}
	return list
}
