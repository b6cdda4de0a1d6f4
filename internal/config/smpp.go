package config

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/makola/makola/internal/msisdn"
)

// SMPP has the accounts at mobile operators' message centres for live SMS. Flags configure one account, and a file
// any number.
type SMPP struct {
	SMPPBind `embed:""`
	File     string        `name:"file" env:"FILE" placeholder:"PATH" help:"JSON file with a list of binds, for several operators. Members are these settings with underscores, such as system_id."`
	Validity time.Duration `name:"validity" env:"VALIDITY" default:"0s" help:"How long operators try to deliver a campaign message, 1m to 48h; with 0s the operator decides. One-time passwords are tried until they expire."`
	Resend   bool          `name:"resend" env:"RESEND" help:"Resend campaign messages whose outcome a crash left unknown; some may arrive twice. One-time passwords are never resent."`
}

// SMPPBind is one account at a message centre.
type SMPPBind struct {
	Name          string     `name:"name" env:"NAME" default:"operator" json:"name" help:"Name of the bind in logs."`
	Address       string     `name:"address" env:"ADDRESS" placeholder:"HOST:PORT" json:"address" help:"Address of a mobile operator's message centre. Empty disables SMPP."`
	TLS           bool       `name:"tls" env:"TLS" json:"tls" help:"Connect with TLS."`
	TLSCA         string     `name:"tls-ca" env:"TLS_CA" placeholder:"PATH" json:"tls_ca" help:"PEM file with certificates that verify the message centre, instead of the system's."`
	TLSServerName string     `name:"tls-server-name" env:"TLS_SERVER_NAME" placeholder:"NAME" json:"tls_server_name" help:"Name in the message centre's certificate, if it differs from the host of the address."`
	SystemID      string     `name:"system-id" env:"SYSTEM_ID" json:"system_id" help:"System id of the account, at most 15 characters."`
	Password      Credential `name:"password" env:"PASSWORD" hidden:"" json:"password" help:"Password of the account, at most 8 characters."`
	SystemType    string     `name:"system-type" env:"SYSTEM_TYPE" json:"system_type" help:"System type, if the operator requires one; at most 12 characters."`
	Mode          string     `name:"mode" env:"MODE" enum:"transceiver,transmitter" default:"transceiver" json:"mode" help:"Bind as a transceiver, or as a transmitter and a receiver."`
	Connections   int        `name:"connections" env:"CONNECTIONS" default:"1" json:"connections" help:"Number of connections."`
	Networks      []string   `name:"network" env:"NETWORKS" placeholder:"NETWORK" json:"networks" help:"Network that this bind serves: MTN, TELECEL or AIRTELTIGO. Repeat the flag for several. Default: all."`
	Window        int        `name:"window" env:"WINDOW" default:"10" json:"window" help:"Maximum number of unanswered segments on one connection."`
	Rate          float64    `name:"rate" env:"RATE" default:"0" json:"rate" help:"Maximum segments a second on one connection; 0 is no limit."`
	SubmitIDs     string     `name:"submit-ids" env:"SUBMIT_IDS" enum:"text,hex,decimal" default:"text" json:"submit_ids" help:"Format of message ids in submit responses: text, hex or decimal."`
	ReceiptIDs    string     `name:"receipt-ids" env:"RECEIPT_IDS" enum:"text,hex,decimal" default:"text" json:"receipt_ids" help:"Format of message ids in delivery receipts: text, hex or decimal."`
	Concatenation string     `name:"concatenation" env:"CONCATENATION" enum:"udh,sar" default:"udh" json:"concatenation" help:"How parts of a long message are joined: udh or sar."`
	ServiceType   string     `name:"service-type" env:"SERVICE_TYPE" json:"service_type" help:"Service type, if the operator requires one; at most 5 characters."`
}

// The minimum and maximum of SMPP.Validity. An unknown message without a receipt is refunded after two days.
const (
	leastValidity = time.Minute
	mostValidity  = 48 * time.Hour
)

// Enabled reports whether the operator configured a message centre at all.
func (s SMPP) Enabled() bool { return s.Address != "" || s.File != "" }

// Binds returns all binds, including those of the file. If one is invalid, it returns an error.
func (s SMPP) Binds() ([]SMPPBind, error) {
	var all []SMPPBind
	if s.Address != "" {
		all = append(all, s.SMPPBind)
	}
	if s.File != "" {
		text, err := ReadSecretFile(s.File)
		if err != nil {
			return nil, fmt.Errorf("read the file of SMPP binds: %w", err)
		}
		var listed []SMPPBind
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&listed); err != nil {
			return nil, fmt.Errorf("parse the SMPP binds in %s: %w", s.File, err)
		}
		all = append(all, listed...)
	}
	if s.Validity != 0 && (s.Validity < leastValidity || s.Validity > mostValidity) {
		return nil, fmt.Errorf("the validity of a campaign's messages (MAKOLA_SMPP_VALIDITY) must be 0s, or %s to %s", leastValidity, mostValidity)
	}
	names := map[string]bool{}
	for i := range all {
		if err := all[i].complete(); err != nil {
			return nil, fmt.Errorf("the SMPP bind %q %w", all[i].Name, err)
		}
		if names[all[i].Name] {
			return nil, fmt.Errorf("two SMPP binds are called %q", all[i].Name)
		}
		names[all[i].Name] = true
	}
	return all, nil
}

// complete sets the defaults of a bind from a file and checks the other fields.
func (b *SMPPBind) complete() error {
	fill := func(to *string, value string) {
		if *to == "" {
			*to = value
		}
	}
	fill(&b.Name, b.Address)
	fill(&b.Mode, "transceiver")
	fill(&b.SubmitIDs, "text")
	fill(&b.ReceiptIDs, "text")
	fill(&b.Concatenation, "udh")
	forms := []string{"text", "hex", "decimal"}
	if _, _, err := net.SplitHostPort(b.Address); err != nil {
		return fmt.Errorf("needs an address, host:port: %w", err)
	}
	switch {
	case b.SystemID == "" || len(b.SystemID) > 15:
		return errors.New("needs a system id of 1 to 15 characters")
	case len(b.Password) > 8: // the message centre would refuse a password that was cut
		return errors.New("has a password of more than 8 characters, the most that SMPP carries")
	case len(b.SystemType) > 12:
		return errors.New("has a system type of more than 12 characters")
	case len(b.ServiceType) > 5:
		return errors.New("has a service type of more than 5 characters")
	case b.Mode != "transceiver" && b.Mode != "transmitter":
		return errors.New("has a mode other than transceiver and transmitter")
	case !slices.Contains(forms, b.SubmitIDs) || !slices.Contains(forms, b.ReceiptIDs):
		return errors.New("has a form of ids other than text, hex and decimal")
	case b.Concatenation != "udh" && b.Concatenation != "sar":
		return errors.New("has a concatenation other than udh and sar")
	case b.Window < 0 || b.Connections < 0 || b.Rate < 0:
		return errors.New("has a negative number")
	}
	if _, err := b.TLSConfig(); err != nil {
		return err
	}
	if i := slices.IndexFunc(b.Networks, unknownNetwork); i >= 0 {
		return fmt.Errorf("serves a network other than MTN, TELECEL and AIRTELTIGO: %s", b.Networks[i])
	}
	return nil
}

// TLSConfig returns the TLS configuration for the message centre, or nil for no TLS.
func (b SMPPBind) TLSConfig() (*tls.Config, error) {
	if !b.TLS {
		if b.TLSCA != "" || b.TLSServerName != "" {
			return nil, errors.New("has a CA or a server name for TLS, but does not use TLS")
		}
		return nil, nil
	}
	host, _, err := net.SplitHostPort(b.Address)
	if err != nil {
		return nil, fmt.Errorf("needs an address, host:port: %w", err)
	}
	c := &tls.Config{ServerName: cmp.Or(b.TLSServerName, host), MinVersion: tls.VersionTLS12}
	if b.TLSCA == "" {
		return c, nil
	}
	text, err := os.ReadFile(b.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("has a CA that cannot be read: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("has a CA, %s, without a certificate in PEM", b.TLSCA)
	}
	return c, nil
}

func unknownNetwork(name string) bool {
	_, known := msisdn.ParseNetwork(name)
	return !known
}
