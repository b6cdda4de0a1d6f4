package notice

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"os"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/makola/makola/internal/config"
)

const (
	// mailWithin is the time of one attempt, and stepWithin the time in which the server must answer while a connection is made.
	mailWithin = time.Minute
	stepWithin = 20 * time.Second
)

// errFinal is wrapped by a refusal that another attempt would also get.
var errFinal = errors.New("refused for good")

// errNoNumber is returned for an SMS to a person without a number.
var errNoNumber = fmt.Errorf("%w: the person has no phone number", errFinal)

// mailer sends mails through one server. Each attempt uses a new connection.
type mailer struct{ config.SMTP }

// send delivers one message. It returns nil after the server has accepted it. All attempts of a message have the same Message-ID,
// because the server's answer to an earlier attempt may have been lost.
func (m mailer) send(ctx context.Context, msg message) error {
	letter, err := m.letter(msg)
	if err != nil {
		return err
	}
	return m.dial(ctx, func(c *gomail.Client, ctx context.Context) error {
		err := c.DialAndSendWithContext(ctx, letter)
		if letter.IsDelivered() { // an error after the acceptance, such as of QUIT, is ignored
			return nil
		}
		var refused *gomail.SendError
		if errors.As(err, &refused) && refused.ErrorCode() >= 500 && (refused.Reason == gomail.ErrSMTPRcptTo || refused.Reason == gomail.ErrSMTPDataClose) {
			return fmt.Errorf("%w: %w", errFinal, err)
		}
		return err
	})
}

// letter returns a message in the form in which it is sent.
func (m mailer) letter(msg message) (*gomail.Msg, error) {
	letter := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := letter.From(m.From); err != nil {
		return nil, err
	}
	if err := letter.To(msg.address); err != nil {
		return nil, fmt.Errorf("%w: %w", errFinal, err)
	}
	letter.Subject(msg.title)
	letter.SetMessageIDWithValue(m.messageID(msg.id))
	letter.SetDateWithValue(msg.madeAt)
	letter.SetGenHeader("Auto-Submitted", "auto-generated") // asks for no automatic replies
	letter.SetBodyString(gomail.TypeTextPlain, msg.body)
	return letter, nil
}

// messageID returns the Message-ID of a message, without its brackets.
func (m mailer) messageID(id string) string {
	from, err := mail.ParseAddress(m.From)
	if err != nil { // the settings were checked at the start, so this does not fail
		return id + "@localhost"
	}
	return id + from.Address[strings.LastIndexByte(from.Address, '@'):]
}

// probe connects to the server, signs in and disconnects. It sends no mail.
func (m mailer) probe(ctx context.Context) error {
	return m.dial(ctx, func(c *gomail.Client, ctx context.Context) error {
		if err := c.DialWithContext(ctx); err != nil {
			return err
		}
		_ = c.Close() // only the sign-in is checked
		return nil
	})
}

// Probe checks that the configured mail server accepts a connection with the configured encryption and
// password.
func Probe(ctx context.Context, s config.SMTP) error { return mailer{s}.probe(ctx) }

// dial runs fn with a client. It closes the connection when ctx ends and after the time of an attempt, so that fn always ends. The
// library itself does not close a connection after a failed greeting or sign-in.
func (m mailer) dial(ctx context.Context, fn func(*gomail.Client, context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(m.Timeout, mailWithin), errors.New("the mail server did not answer in time"))
	defer cancel()
	password, err := m.Password()
	if err != nil {
		return err
	}
	roots, err := m.Authorities()
	if err != nil {
		return err
	}
	secure := &tls.Config{ServerName: m.Host, RootCAs: roots, MinVersion: tls.VersionTLS12}
	connect := func(_ context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		if m.TLS != "tls" {
			return conn, nil
		}
		over := tls.Client(conn, secure)
		return over, over.HandshakeContext(ctx)
	}
	c, err := gomail.NewClient(m.Host, m.options(password, secure, connect)...)
	if err != nil {
		return err
	}
	err = fn(c, ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// options configure a client.
func (m mailer) options(password string, secure *tls.Config, connect gomail.DialContextFunc) []gomail.Option {
	name := "localhost"
	if host, err := os.Hostname(); err == nil {
		name = host
	}
	within := min(cmp.Or(m.Timeout, stepWithin), stepWithin)
	all := []gomail.Option{gomail.WithPort(m.Port), gomail.WithTimeout(within), gomail.WithHELO(name), gomail.WithTLSConfig(secure), gomail.WithDialContextFunc(connect)}
	switch m.TLS {
	case "tls":
		all = append(all, gomail.WithSSL())
	case "none":
		all = append(all, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		all = append(all, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if m.User == "" {
		return all
	}
	kinds := []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin}
	if m.TLS == "none" { // the server is on this machine
		kinds = []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc}
	}
	return append(all, gomail.WithUsername(m.User), gomail.WithPassword(password), gomail.WithOpportunisticSMTPAuth(kinds...))
}
