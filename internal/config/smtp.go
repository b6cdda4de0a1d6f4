package config

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/mail"
	"os"
	"strconv"
	"strings"
	"time"
)

// SMTP configures the mail server for notices. Without a host no notices are mailed.
type SMTP struct {
	Host         string `name:"host" env:"HOST" placeholder:"HOST" help:"Mail server for notices. Without it no mail is sent."`
	Port         int    `name:"port" env:"PORT" default:"587" help:"Port of the mail server."`
	User         string `name:"user" env:"USER" placeholder:"NAME" help:"User name at the mail server. Without it Makola does not sign in."`
	PasswordFile string `name:"password-file" env:"PASSWORD_FILE" placeholder:"PATH" help:"File with the password at the mail server in its first line."`
	From         string `name:"from" env:"FROM" placeholder:"ADDRESS" help:"Sender of mails, such as Makola <notices@pay.example>."`
	TLS          string `name:"tls" env:"TLS" enum:"starttls,tls,none" default:"starttls" help:"Encryption: starttls, tls from the first byte, or none (only for a mail server on this machine)."`
	CA           string `name:"ca" env:"CA" placeholder:"PATH" help:"PEM file with the authority that signed the mail server's certificate. Without it: the authorities of this machine."`

	Timeout time.Duration `kong:"-"` // maximum time of one attempt; zero: a minute
}

// Enabled reports whether mails are sent.
func (s SMTP) Enabled() bool { return s.Host != "" }

// Password reads the password from its file. It returns "" if no file is configured.
func (s SMTP) Password() (string, error) {
	if s.PasswordFile == "" {
		return "", nil
	}
	text, err := ReadSecretFile(s.PasswordFile)
	if err != nil {
		return "", err
	}
	password, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(password, "\r"), nil
}

// Authorities reads the file with the certificate authority. It returns nil if no file is configured, which means the
// authorities of the machine.
func (s SMTP) Authorities() (*x509.CertPool, error) {
	if s.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", s.CA)
	}
	return pool, nil
}

// wrong returns a text for each invalid setting, with the valid values.
func (s SMTP) wrong() (list []string) {
	if !s.Enabled() {
		return nil
	}
	from, err := mail.ParseAddress(s.From)
	if err != nil || strings.ContainsFunc(from.Address, func(r rune) bool { return r > '~' || r <= ' ' }) {
		list = append(list, "an address such as Makola <notices@pay.example> in MAKOLA_SMTP_FROM, not "+strconv.Quote(s.From))
	}
	if s.Port < 1 || s.Port > 65535 {
		list = append(list, fmt.Sprintf("a port from 1 to 65535 in MAKOLA_SMTP_PORT, not %d", s.Port))
	}
	if s.TLS == "none" && !Loopback(net.JoinHostPort(s.Host, "0")) {
		list = append(list, "starttls or tls in MAKOLA_SMTP_TLS: none is for a mail server on this machine, because mails and passwords can be read on the way")
	}
	if (s.User == "") != (s.PasswordFile == "") {
		list = append(list, "both MAKOLA_SMTP_USER and MAKOLA_SMTP_PASSWORD_FILE, or neither")
	}
	if _, err := s.Authorities(); err != nil {
		list = append(list, "a PEM file with a certificate in MAKOLA_SMTP_CA: "+err.Error())
	}
	return list
}
