package api

import (
	"maps"
	"slices"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/requestlog"
)

// refusedRequests returns the account's own refused or failed requests with a request id. A client may have used the
// same id for several requests.
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
	w.List("data")
	for _, r := range list {
		w.refused(r)
	}
	w.End()
	w.End()
	return nil
}

// refused writes a refused request.
func (w *writer) refused(r requestlog.Request) {
	w.Object("")
	w.Text("request_id", r.RequestID)
	w.Text("method", r.Method)
	w.Text("endpoint", r.Endpoint)
	w.Integer("status", int64(r.Status))
	w.Text("code", r.Code)
	w.Text("reason", r.Message)
	w.Object("errors")
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		w.Texts(name, r.Fields[name])
	}
	w.End()
	w.Text("key_id", r.Key)
	w.Text("address", r.Origin)
	w.Time("created_at", r.At)
	w.End()
}
