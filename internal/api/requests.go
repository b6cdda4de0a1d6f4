package api

import (
	"maps"
	"slices"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/requestlog"
)

// refusedRequests finds the account's own requests that were refused or failed, by their request id. A client may have given
// the same id to several.
func refusedRequests(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	unknown := problem.New(problem.NotFound, "request_not_found", "No refused or failed request of the account has this id")
	id, err := f.called("request_id", unknown)
	if err == nil {
		err = f.err()
	}
	if err != nil {
		return err
	}
	list, err := c.api.Requests.ByRequestID(c.ctx, c.caller.Tenant, id)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return unknown
	}
	w := c.success("Requests fetched successfully")
	w.list("data")
	for _, r := range list {
		w.refused(r)
	}
	w.end()
	w.end()
	return nil
}

// refused writes a request that was refused.
func (w *writer) refused(r requestlog.Request) {
	w.object("")
	w.text("request_id", r.RequestID)
	w.text("method", r.Method)
	w.text("endpoint", r.Endpoint)
	w.integer("status", int64(r.Status))
	w.text("code", r.Code)
	w.text("reason", r.Message)
	w.object("errors")
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		w.list(name)
		for _, text := range r.Fields[name] {
			w.text("", text)
		}
		w.end()
	}
	w.end()
	w.text("key_id", r.Key)
	w.text("address", r.Origin)
	w.time("created_at", r.At)
	w.end()
}
