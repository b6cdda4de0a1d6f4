package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/problem"
)

// healthCommand checks whether the server of this machine is ready. A container image without a shell has no other
// way to check.
type healthCommand struct {
	Listen   string        `name:"listen" env:"MAKOLA_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address of the JSON interface, as set on the server."`
	TLSCert  string        `name:"tls-cert" env:"MAKOLA_TLS_CERT" placeholder:"PATH" help:"Use HTTPS, for a server that ends TLS itself. The certificate is not verified."`
	Live     bool          `name:"live" help:"Check only that the server runs. A server that drains or waits for its database passes."`
	ReadyFor time.Duration `name:"ready-for" placeholder:"DURATION" help:"Wait until the server has been ready for this long without interruption, such as 3s."`
	Within   time.Duration `name:"within" placeholder:"DURATION" help:"Maximum time of the command. Default: 2s, with --ready-for two minutes."`
}

// readyPause is the pause between two probes of --ready-for.
const readyPause = 250 * time.Millisecond

// Run fails unless the server answers 200. With --ready-for every probe during that time must be answered
// with 200.
func (c *healthCommand) Run(e *frame.Env) error {
	if c.ReadyFor < 0 || c.Within < 0 || c.Live && c.ReadyFor > 0 {
		return frame.Usage("--ready-for and --within must be durations such as 3s, and --ready-for excludes --live")
	}
	within := cmp.Or(c.Within, 2*time.Second)
	if c.Within == 0 && c.ReadyFor > 0 {
		within = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(e.Ctx, within)
	defer cancel()
	look, err := c.look()
	if err != nil {
		return err
	}
	if err = look(ctx); c.ReadyFor > 0 {
		err = steady(ctx, c.ReadyFor, look)
	}
	if err == nil {
		_, err = fmt.Fprintln(e.Stdout, "well")
	}
	return err
}

// steady returns when every probe during a period has succeeded. If ctx ends first, it returns the error of the last
// failed probe.
func steady(ctx context.Context, length time.Duration, look func(context.Context) error) error {
	pause := time.NewTicker(readyPause)
	defer pause.Stop()
	since, last := time.Now(), error(nil)
	for {
		if err := look(ctx); err != nil && ctx.Err() == nil {
			since, last = time.Now(), err
		} else if err == nil && time.Since(since) >= length {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return cmp.Or(last, error(problem.New(problem.Unavailable, "not_healthy", fmt.Sprintf("The server was not ready for %v within the time limit", length))))
		}
	}
}

// look returns a function that probes the server once.
func (c *healthCommand) look() (func(context.Context) error, error) {
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	ask, err := prober(c.Listen, c.TLSCert, path)
	if err != nil {
		return nil, frame.Usage(err.Error())
	}
	return func(ctx context.Context) error {
		status, _, err := ask(ctx)
		if err != nil {
			return problem.Wrap(err, problem.Unavailable, "not_healthy", fmt.Sprintf("The server does not answer: %v", err))
		}
		if status != http.StatusOK {
			return problem.New(problem.Unavailable, "not_healthy", fmt.Sprintf("%s answered %d", path, status))
		}
		return nil
	}, nil
}

// A condition is the response body of a probe.
type condition struct {
	Message string   `json:"message"`
	Refused []string `json:"refused"`
}

// mostCondition is the maximum size of a probe's response body in bytes.
const mostCondition = 64 << 10

// prober returns a function that requests a probe of the server at listen on this machine. It accepts a body that is
// not JSON, because only the status matters.
func prober(listen, tlsCert, path string) (func(context.Context) (status int, body condition, err error), error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %q: %w", listen, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if tlsCert != "" {
		scheme = "https"
	}
	// The request uses no proxy of the environment. The certificate is not verified, because it names the public
	// address and not loopback.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}}
	return func(ctx context.Context) (status int, body condition, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+path, nil)
		if err != nil {
			return 0, body, err
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0, body, err
		}
		defer func() { _ = answer.Body.Close() }()
		_ = json.NewDecoder(io.LimitReader(answer.Body, mostCondition)).Decode(&body)
		return answer.StatusCode, body, nil
	}, nil
}
