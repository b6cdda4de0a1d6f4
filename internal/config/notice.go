package config

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
)

// Notices configures ways of sending notices in addition to mail.
type Notices struct {
	HookFile   string `name:"hook-file" env:"HOOK_FILE" placeholder:"PATH" help:"File whose first line is the HTTPS URL of a hook for the installation's notices. For the signed form the second line is the secret: whsec_ and base64."`
	HookForm   string `name:"hook-form" env:"HOOK_FORM" enum:"signed,slack" default:"signed" help:"Form of the hook's requests: signed, as webhooks are, or slack, the text of Slack's incoming webhooks."`
	SMSAccount string `name:"sms-account" env:"SMS_ACCOUNT" placeholder:"ACCOUNT" help:"Id of the operator's own account that pays for notices by SMS. Without it no notice is sent by SMS."`
	SMSSender  string `name:"sms-sender" env:"SMS_SENDER" placeholder:"NAME" help:"Approved sender ID of that account, by its name."`
}

// The formats of a hook's requests.
const (
	HookSigned = "signed"
	HookSlack  = "slack"
)

// Hook is the address to which notices are posted, and the key that signs the requests.
type Hook struct {
	URL string
	Key []byte // nil: requests are not signed
}

// HookEnabled reports whether notices are posted to a hook.
func (n Notices) HookEnabled() bool { return n.HookFile != "" }

// SMSEnabled reports whether notices are sent by SMS.
func (n Notices) SMSEnabled() bool { return n.SMSAccount != "" }

const hookSecretBytes = 24 // minimum length in the Standard Webhooks specification

// Hook reads the file with the hook's address and key.
func (n Notices) Hook() (h Hook, err error) {
	text, err := ReadSecretFile(n.HookFile)
	if err != nil {
		return h, err
	}
	address, rest, _ := strings.Cut(string(text), "\n")
	h.URL = strings.TrimSpace(address)
	if u, err := url.Parse(h.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return h, fmt.Errorf("the first line of %s is no URL", n.HookFile) // the error has no text of the URL, which may be a secret
	}
	if n.HookForm == HookSlack {
		return h, nil
	}
	secret, _, _ := strings.Cut(rest, "\n")
	coded, is := strings.CutPrefix(strings.TrimSpace(secret), "whsec_")
	if h.Key, err = base64.StdEncoding.DecodeString(coded); err != nil || !is || len(h.Key) < hookSecretBytes {
		return h, fmt.Errorf("the second line of %s is no secret: it must be whsec_ and the base64 of at least %d bytes", n.HookFile, hookSecretBytes)
	}
	return h, nil
}

// wrong returns a text for each invalid setting, with the valid values.
func (n Notices) wrong() (list []string) {
	if n.HookEnabled() {
		if _, err := n.Hook(); err != nil {
			list = append(list, "a file in MAKOLA_NOTICE_HOOK_FILE with a URL and a secret: "+err.Error())
		}
	}
	if (n.SMSAccount == "") != (n.SMSSender == "") {
		list = append(list, "both MAKOLA_NOTICE_SMS_ACCOUNT and MAKOLA_NOTICE_SMS_SENDER, or neither")
	}
	return list
}
