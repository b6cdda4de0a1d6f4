package api

import (
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

func callbacks(secret config.Secret, routes *route.Table, texts []provider.TextRail) []callback {
	var all []callback
	for _, r := range texts {
		if r.Reports != nil {
			all = append(all, callback{path: strings.TrimPrefix(r.CallbackPath(secret), "/callbacks/"), texts: &r})
		}
	}
	for _, r := range routes.Rails() {
		if r.Callbacks != nil {
			all = append(all, callback{path: strings.TrimPrefix(provider.CallbackPath(secret, r), "/callbacks/"), rail: r})
		}
	}
	return all
}

// callback handles a provider's callback as a hint. It ignores the result that the callback claims, and polls the
// payments that the callback names. It writes nothing for an unknown payment. Any client that knows the path may send
// any body, so an unreadable body is refused without further effect.
func (c *call) callback(path string) error {
	known := -1
	for i := range c.api.callbacks {
		if subtle.ConstantTimeCompare([]byte(c.api.callbacks[i].path), []byte(path)) == 1 {
			known = i
		}
	}
	if known < 0 {
		return noEndpoint()
	}
	if texts := c.api.callbacks[known].texts; texts != nil {
		return c.report(*texts)
	}
	if m := c.r.Method; m != http.MethodPost && m != http.MethodPut {
		return c.wrongMethod("POST, PUT")
	}
	if c.r.ContentLength > moneyBody {
		return tooLarge(moneyBody)
	}
	if err := c.read(moneyBody); err != nil {
		return err
	}
	rail := c.api.callbacks[known].rail
	hints, err := rail.Callbacks.ParseCallback(provider.CallbackRequest{Method: c.r.Method, Host: c.r.Host, Path: c.r.URL.Path, Header: c.r.Header, Body: c.body})
	c.api.Routes.CallbackArrived(rail.Name, rail.Mode, err == nil)
	if err != nil {
		return problem.Wrap(err, problem.Malformed, "callback_unreadable", "The callback could not be read")
	}
	if err := c.api.Payments.Hint(c.ctx, rail, hints); err != nil {
		return err
	}
	c.success("OK").End()
	return nil
}

// report stores a provider's delivery report on a text. The report is in the query string.
func (c *call) report(rail provider.TextRail) error {
	if c.r.Method != http.MethodGet {
		return c.wrongMethod("GET")
	}
	if len(c.r.URL.RawQuery) > maxReportQuery {
		return problem.New(problem.Malformed, "callback_unreadable", "The callback could not be read")
	}
	r, err := rail.Reports.ReadReport(c.r.URL.Query())
	c.api.Routes.CallbackArrived(rail.Name, rail.Mode, err == nil)
	if err != nil {
		return problem.Wrap(err, problem.Malformed, "callback_unreadable", "The callback could not be read")
	}
	if err := c.api.Reported(c.ctx, rail, r); err != nil {
		return err
	}
	c.success("OK").End()
	return nil
}

// maxReportQuery is the maximum length of a report's query string in bytes.
const maxReportQuery = 1024
