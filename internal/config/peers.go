package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
)

// Peer is an address to which the server connects because of a configured provider.
type Peer struct {
	Name    string      // name of the setting's owner, such as "hubtel STATUS_URL" or "smpp mtn"
	Address string      // host:port
	TLS     *tls.Config // nil: no TLS
	Proxied bool        // requests go through the egress proxy if one is configured
}

// simulator is the name of the simulator's peer.
const simulator = "simulator"

// Peers returns the addresses of all configured providers, each once. If a setting is invalid, the error names it.
func (s Server) Peers() ([]Peer, error) {
	var urls []host
	if s.MTN.Enabled() {
		urls = append(urls, host{"mtn URL", s.MTN.URL})
	}
	if s.Hubtel.Enabled() {
		for _, h := range s.Hubtel.hosts() {
			urls = append(urls, host{"hubtel " + h.name, h.url})
		}
	}
	if s.Paystack.Enabled() {
		urls = append(urls, host{"paystack URL", s.Paystack.URL})
	}
	if s.PawaPay.Enabled() {
		urls = append(urls, host{"pawapay URL", s.PawaPay.URL})
	}
	if s.Moolre.Enabled() {
		urls = append(urls, host{"moolre URL", s.Moolre.URL})
	}
	if s.HubtelSMS.Enabled() {
		urls = append(urls, host{"hubtelsms URL", s.HubtelSMS.URL})
	}
	if s.Arkesel.Enabled() {
		urls = append(urls, host{"arkesel URL", s.Arkesel.URL})
	}
	if s.Sim != "" {
		urls = append(urls, host{simulator, s.Sim})
	}
	var all []Peer
	known := map[string]bool{}
	for _, h := range urls {
		u, err := url.Parse(h.url)
		if err != nil || u.Hostname() == "" {
			return nil, fmt.Errorf("%s is no URL: %q", h.name, h.url)
		}
		p := Peer{Name: h.name, Proxied: h.name != simulator}
		port := "80"
		if u.Scheme == "https" {
			port, p.TLS = "443", &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
		}
		if u.Port() != "" {
			port = u.Port()
		}
		if p.Address = net.JoinHostPort(u.Hostname(), port); !known[p.Address] {
			known[p.Address] = true
			all = append(all, p)
		}
	}
	if !s.SMPP.Enabled() {
		return all, nil
	}
	binds, err := s.SMPP.Binds()
	if err != nil {
		return nil, fmt.Errorf("smpp: %w", err)
	}
	for _, b := range binds {
		config, err := b.TLSConfig()
		if err != nil {
			return nil, fmt.Errorf("smpp %s: %w", b.Name, err)
		}
		all = append(all, Peer{Name: "smpp " + b.Name, Address: b.Address, TLS: config})
	}
	return all, nil
}
