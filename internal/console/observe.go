package console

import (
	"net/http"
	"strings"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/page"
)

// routeOther is the label of all paths without a page, because clients can invent any path.
const routeOther = "console"

// observed remembers how a request was answered, for the metrics and the access log.
type observed struct {
	http.ResponseWriter
	route  string // pattern of the page's path, without ids
	status int
	bytes  int // of the body
}

func (o *observed) WriteHeader(status int) {
	if o.status == 0 {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

func (o *observed) Write(text []byte) (int, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	n, err := o.ResponseWriter.Write(text)
	o.bytes += n
	return n, err
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// ServeHTTP answers one request and counts it.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := c.Clock.Now()
	o := &observed{ResponseWriter: w, route: routeOther}
	defer func() {
		if c.Observe != nil {
			c.Observe(api.Seen{Route: o.route, Method: api.SeenMethod(r.Method), RequestID: o.Header().Get("X-Request-Id"), Status: max(o.status, http.StatusOK), Bytes: o.bytes, Took: c.Clock.Now().Sub(begun)})
		}
	}()
	if strings.HasPrefix(r.URL.Path, page.Assets) {
		o.route = page.Assets
	}
	c.serve(o, r)
}
