package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/makola/makola/internal/problem"
)

// healthCommand asks the server of this machine whether it is well: an image without a shell has no other way.
type healthCommand struct {
	Listen  string        `name:"listen" env:"MAKOLA_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address of the JSON interface, as the server has it."`
	TLSCert string        `name:"tls-cert" env:"MAKOLA_TLS_CERT" placeholder:"PATH" help:"Set where the server ends TLS itself; the certificate is not checked."`
	Live    bool          `name:"live" help:"Only whether it lives, not whether it takes requests: a server that drains, or waits for its database, lives."`
	Within  time.Duration `name:"within" default:"2s" placeholder:"DURATION" help:"Time that it may take."`
}

// Run asks, and fails where the answer is not 200.
func (c *healthCommand) Run(e *env) error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return usage(fmt.Sprintf("--listen %q: %v", c.Listen, err))
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme, path := "http", "/readyz"
	if c.TLSCert != "" {
		scheme = "https"
	}
	if c.Live {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(e.ctx, c.Within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+path, nil)
	if err != nil {
		return err
	}
	// Without the proxy of the environment. The certificate names the public address, and this is loopback.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return problem.Wrap(err, problem.Unavailable, "not_healthy", fmt.Sprintf("No answer: %v", err))
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return problem.New(problem.Unavailable, "not_healthy", fmt.Sprintf("%s answers %d", path, answer.StatusCode))
	}
	_, err = fmt.Fprintln(e.stdout, "well")
	return err
}
