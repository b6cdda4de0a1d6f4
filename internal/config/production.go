package config

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// TokenLength is the minimum length of the token that protects the metrics.
const TokenLength = 16

// Production reports whether the server is a production server. Development settings are refused there.
func (s Server) Production() bool { return s.WhyProduction() != "" }

// WhyProduction returns the reason why the server is a production server, or "" in development. It is a production
// server in three cases: the settings say so, other machines can reach it, or it has credentials for live money.
func (s Server) WhyProduction() string {
	switch {
	case s.Environment == "production":
		return "MAKOLA_ENV is production"
	case !Loopback(s.Listen):
		return "it can be reached from outside at " + s.Listen
	case s.Metrics() && !Loopback(s.MetricsListen):
		return "its metrics can be reached from outside at " + s.MetricsListen
	case s.MTN.Enabled():
		return "it has credentials of MTN, which moves live money"
	case s.Hubtel.Enabled():
		return "it has credentials of Hubtel, which moves live money"
	case s.Paystack.Enabled() && !s.Paystack.Test():
		return "it has credentials of Paystack, which moves live money"
	case s.PawaPay.Enabled() && !s.PawaPay.Test():
		return "it has credentials of pawaPay, which moves live money"
	case s.Moolre.Enabled() && !s.Moolre.Test():
		return "it has credentials of Moolre, which moves live money"
	case s.SendsTexts():
		return "it has credentials of an SMS operator, which sends live messages"
	}
	return ""
}

// Missing lists everything that production requires and the configuration lacks, so that the operator sees all of it
// at once.
func (s Server) Missing() []string {
	var missing []string
	need := func(ok bool, what string) {
		if !ok {
			missing = append(missing, what)
		}
	}
	need(!s.Secret.Empty(), "a master key: set "+EnvMasterKey+" or "+EnvMasterKeyFile)
	need(strings.HasPrefix(s.PublicURL, "https://"), "a public URL that begins with https://: set MAKOLA_PUBLIC_URL")
	need(s.TLSCert != "" && s.TLSKey != "" || len(s.TrustedProxies) > 0,
		"TLS or a proxy that ends it: set MAKOLA_TLS_CERT and MAKOLA_TLS_KEY, or MAKOLA_TRUSTED_PROXIES")
	need((s.TLSCert == "") == (s.TLSKey == ""), "both MAKOLA_TLS_CERT and MAKOLA_TLS_KEY")
	for _, prefix := range s.TrustedProxies {
		need(!everybody(prefix), "trusted proxies by their own addresses in MAKOLA_TRUSTED_PROXIES: any host in "+prefix.String()+" could claim any address")
	}
	need(s.Secret.Empty() || !s.Secret.Weak(), "a master key of random bytes, for example from openssl rand -hex 32")
	need(!s.Metrics() || Loopback(s.MetricsListen) || len(s.MetricsToken) >= TokenLength,
		"a token for metrics that can be reached from outside: set MAKOLA_METRICS_TOKEN, at least "+strconv.Itoa(TokenLength)+" characters, or let MAKOLA_METRICS_LISTEN be on loopback")
	need(!s.Ephemeral, "a permanent data folder: --ephemeral is for development")
	need(s.MTN.Enabled() || s.Hubtel.Enabled() || s.Paystack.Enabled() || s.PawaPay.Enabled() || s.Moolre.Enabled() || s.SendsTexts() || s.Sim != "",
		"a provider: set MAKOLA_MTN_URL, MAKOLA_HUBTEL_CLIENT_ID, MAKOLA_PAYSTACK_SECRET_KEY, MAKOLA_PAWAPAY_TOKEN, MAKOLA_MOOLRE_USER, MAKOLA_SMPP_ADDRESS, MAKOLA_HUBTEL_SMS_CLIENT_ID or MAKOLA_ARKESEL_API_KEY with their credentials, or name a simulator with --sim for test money only")
	for _, f := range s.secretFiles() {
		if err := CheckSecretFile(f.path); err != nil {
			missing = append(missing, "a file in "+f.setting+" that only you can read: "+err.Error())
		}
	}
	if s.MTN.Enabled() {
		missing = append(missing, s.MTN.Missing()...)
		need(private(s.MTN.URL), unencrypted("MAKOLA_MTN_URL", s.MTN.URL))
	}
	if s.Hubtel.Enabled() {
		missing = append(missing, s.Hubtel.Missing()...)
		need(outside(s.PublicURL), "a public URL that Hubtel reaches, because it refuses every order without a callback URL: set MAKOLA_PUBLIC_URL")
		for _, host := range s.Hubtel.hosts() {
			need(private(host.url), unencrypted("MAKOLA_HUBTEL_"+host.name, host.url))
		}
	}
	if s.Paystack.Enabled() {
		missing = append(missing, s.Paystack.Missing()...)
		need(private(s.Paystack.URL), unencrypted("MAKOLA_PAYSTACK_URL", s.Paystack.URL))
	}
	if s.PawaPay.Enabled() {
		missing = append(missing, s.PawaPay.Missing()...)
		need(private(s.PawaPay.URL), unencrypted("MAKOLA_PAWAPAY_URL", s.PawaPay.URL))
	}
	if s.Moolre.Enabled() {
		missing = append(missing, s.Moolre.Missing()...)
		need(private(s.Moolre.URL), unencrypted("MAKOLA_MOOLRE_URL", s.Moolre.URL))
	}
	for _, texts := range []struct {
		enabled       bool
		setting, path string
	}{{s.HubtelSMS.Enabled(), "MAKOLA_HUBTEL_SMS_URL", s.HubtelSMS.URL}, {s.Arkesel.Enabled(), "MAKOLA_ARKESEL_URL", s.Arkesel.URL}} {
		if texts.enabled {
			need(private(texts.path), unencrypted(texts.setting, texts.path))
		}
	}
	if err := s.CheckTexts(); err != nil {
		missing = append(missing, "providers of texts that can be used: "+err.Error())
	}
	if _, err := s.SMPP.Binds(); err != nil {
		missing = append(missing, "SMPP binds that can be used: "+err.Error())
	}
	return missing
}

// secretFile is a file with a secret, and the variable that names it.
type secretFile struct{ setting, path string }

// secretFiles lists the files with secrets in the settings. It omits those of the master keys, which are read
// earlier.
func (s Server) secretFiles() []secretFile {
	all := []secretFile{{"MAKOLA_TLS_KEY", s.TLSKey}, {"MAKOLA_BOOTSTRAP_PASSWORD_FILE", s.BootstrapFile}, {"MAKOLA_SMPP_FILE", s.SMPP.File}, {"MAKOLA_SMTP_PASSWORD_FILE", s.SMTP.PasswordFile},
		{"MAKOLA_NOTICE_HOOK_FILE", s.Notices.HookFile}}
	return slices.DeleteFunc(all, func(f secretFile) bool { return f.path == "" })
}

// everybody reports whether a range contains a larger part of the Internet than any single organisation has. A
// trusted proxy can set the client's address, so such a range is refused.
func everybody(p netip.Prefix) bool {
	if p.Addr().Is4() {
		return p.Bits() < 8
	}
	return p.Bits() < 7 // fc00::/7 are private addresses
}

// outside reports whether a URL is reachable from other machines.
func outside(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Hostname() != "" && !Loopback(net.JoinHostPort(u.Hostname(), "0"))
}

// private reports whether data sent to a URL is encrypted in transit.
func private(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	return raw == "" || u.Scheme == "https" || Loopback(net.JoinHostPort(u.Hostname(), "0"))
}

func unencrypted(name, raw string) string {
	return "a URL that begins with https:// in " + name + ", not " + strconv.Quote(raw) + ": credentials are sent there"
}
