// Package config defines the operator's settings as plain structs: the server's options with the names of their flags
// and environment variables, the credentials of each provider, and the installation's secret. It does not read the
// settings itself. The command line fills the structs, and package app builds the program from them.
//
// Files: config.go (the server and its storage), production.go (requirements of production), providers.go
// (credentials of payment providers), limits.go (their amounts), texts.go (texts over HTTP), hours.go (the hours of promotional texts), smpp.go (of
// message centres), smtp.go (of the mail server), notice.go (other ways of notices), secret.go, ring.go (the secret,
// and master keys in a ring), secret_file.go (files with secrets), retention.go (retention times), peers.go
// (addresses of providers), egress.go (the proxy of outgoing requests).
package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// DefaultData is the default data folder.
const DefaultData = "./makola-data"

// Storage is the location of the database. All commands have these options.
type Storage struct {
	Data     string `name:"data" env:"MAKOLA_DATA" default:"./makola-data" placeholder:"FOLDER" help:"Folder of the SQLite database, the simulator's data and the development key."`
	Database string `name:"database" env:"MAKOLA_DATABASE" placeholder:"URL" help:"PostgreSQL URL. Without it the database is SQLite in the data folder."`
}

// Validate returns an error for an empty folder, which would mean the current folder.
func (s Storage) Validate() error {
	if s.Data == "" {
		return errors.New("--data must not be empty")
	}
	return nil
}

// databaseFile is the SQLite database's name in the data folder.
const databaseFile = "makola.db"

// SQLite returns the path of the SQLite database, which is used if no URL is given.
func (s Storage) SQLite() string { return filepath.Join(s.Data, databaseFile) }

// Server has all options of makola serve.
type Server struct {
	Storage `embed:""`

	Environment   string     `name:"env" env:"MAKOLA_ENV" enum:"development,production" default:"development" help:"development or production."`
	Listen        string     `name:"listen" env:"MAKOLA_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address of the JSON interface; port 0 means any free port."`
	MetricsListen string     `name:"metrics-listen" env:"MAKOLA_METRICS_LISTEN" default:"127.0.0.1:9090" placeholder:"ADDRESS" help:"Address of the metrics; off disables them."`
	MetricsToken  Credential `name:"metrics-token" env:"MAKOLA_METRICS_TOKEN" hidden:"" help:"Bearer token that readers of the metrics must send, at least 16 characters."`
	Ephemeral     bool       `name:"ephemeral" env:"MAKOLA_EPHEMERAL" help:"Keep everything in a temporary folder that is removed when the server stops."`
	Sim           string     `name:"sim" env:"MAKOLA_SIM" placeholder:"URL" help:"Use the simulator at this URL instead of starting one."`
	ReadyFile     string     `name:"ready-file" env:"MAKOLA_READY_FILE" placeholder:"PATH" help:"Write a JSON file here once the server listens."`
	Node          string     `name:"node" env:"MAKOLA_NODE" placeholder:"NAME" help:"Unique name of this node. Empty uses the host name, and on PostgreSQL also the process id."`
	DiskReserve   int64      `name:"disk-reserve" env:"MAKOLA_DISK_RESERVE" default:"512" placeholder:"MB" help:"Free disk space in MB that SQLite reserves for money. Below it contacts, campaigns and sender IDs are refused."`
	Connections   int        `name:"connections" env:"MAKOLA_CONNECTIONS" default:"16" help:"Maximum number of connections to PostgreSQL."`

	Synchronous bool `name:"synchronous-standby" env:"MAKOLA_SYNCHRONOUS_STANDBY" help:"Set if PostgreSQL waits for a standby before it answers a commit. A promotion then starts a recovery only if a row is missing."`

	PublicURL      string         `name:"public-url" env:"MAKOLA_PUBLIC_URL" placeholder:"URL" help:"Public URL of this server, used in links and provider callbacks."`
	MaxClients     int            `name:"max-clients" env:"MAKOLA_MAX_CLIENTS" default:"4096" help:"Maximum number of client connections. Never above three quarters of the process's file limit; 0 uses that limit."`
	TLSCert        string         `name:"tls-cert" env:"MAKOLA_TLS_CERT" placeholder:"PATH" help:"PEM file with the certificate chain."`
	TLSKey         string         `name:"tls-key" env:"MAKOLA_TLS_KEY" placeholder:"PATH" help:"PEM file with the private key."`
	TrustedProxies []netip.Prefix `name:"trusted-proxy" env:"MAKOLA_TRUSTED_PROXIES" placeholder:"CIDR" help:"Proxy whose X-Forwarded-For is trusted. May be repeated."`
	Origins        []string       `name:"cors-origin" env:"MAKOLA_CORS_ORIGINS" placeholder:"ORIGIN" help:"Browser origin that may call the interface. May be repeated; without it CORS is off."`
	GeneralLimit   *int64         `name:"general-limit" env:"MAKOLA_GENERAL_LIMIT" help:"Requests a minute of one account over all endpoints; 0 is no limit. Without it: 60000 in production, no limit in development."`
	USSDCode       string         `name:"ussd-code" env:"MAKOLA_USSD_CODE" help:"Value of ussd_code in the response of otp/send."`
	BootstrapEmail string         `name:"bootstrap-email" env:"MAKOLA_BOOTSTRAP_EMAIL" placeholder:"ADDRESS" help:"E-mail address of the installation's first owner, created if there are no people yet. Needs --bootstrap-password-file."`
	BootstrapFile  string         `name:"bootstrap-password-file" env:"MAKOLA_BOOTSTRAP_PASSWORD_FILE" placeholder:"PATH" help:"File with the first owner's password in its first line."`
	AccessLog      string         `name:"access-log" env:"MAKOLA_ACCESS_LOG" placeholder:"PATH" help:"Append one JSON line per request to this file; - is standard output. Lines contain no bodies and no phone numbers."`
	DrainNotice    *time.Duration `name:"drain-notice" env:"MAKOLA_DRAIN_NOTICE" help:"How long /readyz reports draining before the server refuses requests. Must exceed the interval of the load balancer's check. Without it: 10s in production, none in development."`
	DrainFor       time.Duration  `name:"drain-for" env:"MAKOLA_DRAIN_FOR" default:"30s" help:"How long requests and jobs may take to finish when the server stops."`

	Egress         Egress          `embed:""`
	Quotas         Quotas          `embed:"" prefix:"quota-" envprefix:"MAKOLA_QUOTA_"`
	Keep           Retention       `embed:"" prefix:"keep-" envprefix:"MAKOLA_KEEP_"`
	OTPTap         OTPTap          `embed:"" prefix:"otp-tap-" envprefix:"MAKOLA_OTP_TAP_"`
	MTN            MTN             `embed:"" prefix:"mtn-" envprefix:"MAKOLA_MTN_"`
	Hubtel         Hubtel          `embed:"" prefix:"hubtel-" envprefix:"MAKOLA_HUBTEL_"`
	ProviderLimits []ProviderLimit `name:"provider-limit" env:"MAKOLA_PROVIDER_LIMITS" placeholder:"PROVIDER:OPERATION:CHANNEL:MIN-MAX" help:"Smallest and largest amount of a provider, such as paystack:disburse_wallet:MTN:1.00-5000.00; * is any. Other amounts go to the next provider of the route. May be repeated."`
	Paystack       Paystack        `embed:"" prefix:"paystack-" envprefix:"MAKOLA_PAYSTACK_"`
	PawaPay        PawaPay         `embed:"" prefix:"pawapay-" envprefix:"MAKOLA_PAWAPAY_"`
	Moolre         Moolre          `embed:"" prefix:"moolre-" envprefix:"MAKOLA_MOOLRE_"`
	HubtelSMS      HubtelSMS       `embed:"" prefix:"hubtel-sms-" envprefix:"MAKOLA_HUBTEL_SMS_"`
	Arkesel        Arkesel         `embed:"" prefix:"arkesel-" envprefix:"MAKOLA_ARKESEL_"`
	OptOut         OptOutWords     `embed:"" prefix:"sms-" envprefix:"MAKOLA_SMS_"`
	SMSHours       Hours           `name:"sms-promotional-hours" env:"MAKOLA_SMS_PROMOTIONAL_HOURS" default:"mon-sat 08:00-19:00" placeholder:"DAYS HOURS" help:"Hours in which texts of promotional sender IDs are sent, in Accra's time; always means every hour."`
	SMSRoutes      []SMSRoute      `name:"sms-route" env:"MAKOLA_SMS_ROUTES" placeholder:"NETWORK:SENDER:PROVIDERS" help:"Providers of texts in order, for a network and a sender ID, such as MTN:*:arkesel+smpp; * is any. Without a route: smpp, hubtelsms, arkesel. May be repeated."`
	SMPP           SMPP            `embed:"" prefix:"smpp-" envprefix:"MAKOLA_SMPP_"`
	SMTP           SMTP            `embed:"" prefix:"smtp-" envprefix:"MAKOLA_SMTP_"`
	Notices        Notices         `embed:"" prefix:"notice-" envprefix:"MAKOLA_NOTICE_"`

	// Secret comes from MAKOLA_MASTER_KEY or from a file in the data folder. It has no flag, because other users of
	// the machine could read a flag.
	Secret Secret `kong:"-"`
}

// The environment variables of secrets, which have no flag.
const (
	EnvMasterKey     = "MAKOLA_MASTER_KEY"
	EnvMasterKeyFile = "MAKOLA_MASTER_KEY_FILE"
	// The reference key must be set when the first key of the installation is no longer in the ring.
	EnvReferenceKey     = "MAKOLA_REFERENCE_KEY"
	EnvReferenceKeyFile = "MAKOLA_REFERENCE_KEY_FILE"
	// EnvToken has the personal token of the person who runs a command. The server does not use it.
	EnvToken = "MAKOLA_TOKEN"
)

// Quotas limit what one customer may store, so that one customer cannot fill the disk. 0 means no limit.
type Quotas struct {
	Contacts  int64 `name:"contacts" env:"CONTACTS" default:"1000000" help:"Maximum number of contacts of one account, over all its groups; 0 is no quota."`
	Groups    int64 `name:"groups" env:"GROUPS" default:"10000" help:"Maximum number of contact groups of one account; 0 is no quota."`
	Senders   int64 `name:"sender-ids" env:"SENDER_IDS" default:"1000" help:"Maximum number of sender IDs of one account, rejected ones included; 0 is no quota."`
	Campaigns int64 `name:"campaigns" env:"CAMPAIGNS" default:"1000" help:"Maximum number of an account's open campaigns with more than 10 recipients; 0 is no quota."`
}

// OTPTap configures the closing of number ranges. A range has the numbers with the same first six digits. It is
// closed to a customer's one-time passwords if too few of them are verified.
type OTPTap struct {
	Sends      int64         `name:"sends" env:"SENDS" default:"50" help:"Number of an account's latest one-time passwords to a range of phone numbers. If too few of them are verified, the range closes; 0 never closes a range."`
	Within     time.Duration `name:"within" env:"WITHIN" default:"1h" help:"Period in which that number of passwords must be sent for the range to close."`
	Wait       time.Duration `name:"wait" env:"WAIT" default:"3m" help:"Time to verify the last of these passwords before the range may close."`
	Unverified int64         `name:"unverified" env:"UNVERIFIED" default:"90" help:"Percentage of unverified passwords from which the range is closed for the account."`
	Closed     time.Duration `name:"closed" env:"CLOSED" default:"1h" help:"How long the range stays closed, unless an operator reopens it."`
}

// Defaults of production.
const (
	productionPerMinute = 60_000
	productionNotice    = 10 * time.Second // enough for a health check every 2 s to fail three times
)

// PerMinute returns the general limit of a tenant's requests a minute. 0 means no limit.
func (s Server) PerMinute() int64 {
	switch {
	case s.GeneralLimit != nil:
		return *s.GeneralLimit
	case s.Production():
		return productionPerMinute
	}
	return 0
}

// Notice returns how long a stopping server still accepts requests.
func (s Server) Notice() time.Duration {
	switch {
	case s.DrainNotice != nil:
		return *s.DrainNotice
	case s.Production():
		return productionNotice
	}
	return 0
}

// Metrics reports whether the metrics are served.
func (s Server) Metrics() bool { return s.MetricsListen != "off" && s.MetricsListen != "" }

// Wrong lists the settings that are invalid in every mode. Each text names the valid values.
func (s Server) Wrong() []string {
	var wrong []string
	need := func(ok bool, format string, value any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, value))
		}
	}
	need(s.PublicURL == "" || isBase(s.PublicURL), "a URL such as https://pay.example in MAKOLA_PUBLIC_URL, not %q", s.PublicURL)
	need(s.Sim == "" || isBase(s.Sim), "a URL such as http://127.0.0.1:8090 in MAKOLA_SIM, not %q", s.Sim)
	for _, origin := range s.Origins {
		u, err := url.Parse(origin)
		need(err == nil && isBase(origin) && strings.Trim(u.Path, "/") == "", "origins such as https://shop.example in MAKOLA_CORS_ORIGINS, not %q", origin)
	}
	address := func(name, text string) {
		_, port, err := net.SplitHostPort(text)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		need(text == "" || err == nil, "an address such as 127.0.0.1:8080 in "+name+", not %q", text)
	}
	address("MAKOLA_LISTEN", s.Listen)
	if s.Metrics() {
		address("MAKOLA_METRICS_LISTEN", s.MetricsListen)
	}
	for _, quota := range []int64{s.Quotas.Contacts, s.Quotas.Groups, s.Quotas.Senders, s.Quotas.Campaigns} {
		need(quota >= 0, "quotas of at least 0 in MAKOLA_QUOTA_..., not %d", quota)
	}
	tap := s.OTPTap
	need(tap.Sends >= 0, "a number of at least 0 in MAKOLA_OTP_TAP_SENDS, not %d", tap.Sends)
	need(tap.Sends == 0 || tap.Unverified > 0 && tap.Unverified <= 100, "a percentage of 1 to 100 in MAKOLA_OTP_TAP_UNVERIFIED, not %d", tap.Unverified)
	for _, d := range []time.Duration{tap.Within, tap.Wait, tap.Closed} {
		need(tap.Sends == 0 || d > 0, "durations such as 10m in MAKOLA_OTP_TAP_WITHIN, _WAIT and _CLOSED, not %s", d)
	}
	need(s.Notice() >= 0, "a duration of at least 0s in MAKOLA_DRAIN_NOTICE, not %s", s.Notice())
	need(s.DrainFor >= 0, "a duration of at least 0s in MAKOLA_DRAIN_FOR, not %s", s.DrainFor)
	need(s.BootstrapEmail == "" || s.BootstrapFile != "", "a file with the first owner's password in MAKOLA_BOOTSTRAP_PASSWORD_FILE, because MAKOLA_BOOTSTRAP_EMAIL is %q", s.BootstrapEmail)
	need(s.DiskReserve >= 0, "at least 0 MB in MAKOLA_DISK_RESERVE, not %d", s.DiskReserve)
	need(s.MaxClients >= 0, "a number of at least 0 in MAKOLA_MAX_CLIENTS, not %d", s.MaxClients)
	wrong = append(wrong, s.Egress.wrong()...)
	wrong = append(wrong, s.SMTP.wrong()...)
	wrong = append(wrong, s.Notices.wrong()...)
	need(s.PerMinute() >= 0, "a limit of at least 0 in MAKOLA_GENERAL_LIMIT, not %d", s.PerMinute())
	return wrong
}

// isBase reports whether appending a path to text gives a URL.
func isBase(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		!strings.ContainsAny(text, "?#")
}

// Loopback reports whether a listen address is reachable only from this machine.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
