package sample

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 1 << 20

// receiver receives the shops' webhooks while a sample is made. Now and then it answers like a server during a
// restart. An address that a shop no longer uses answers 404 for ever.
type receiver struct {
	server *http.Server
	url    string
	seed   uint64

	mu    sync.Mutex
	tried map[string]bool
	taken int
}

// leftBehind is the prefix of the paths that are no longer served.
const leftBehind = "/old/"

func openReceiver(seed uint64) (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + l.Addr().String(), seed: seed, tried: map[string]bool{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(l) }() // ends when it is closed
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() } // running requests are not awaited

// fails reports whether the first attempt of a reference fails, which happens to one of forty.
func (r *receiver) fails(reference string) bool {
	h := fnv.New64a()
	_, _ = io.WriteString(h, reference)
	return (h.Sum64()^r.seed)%40 == 0
}

// ServeHTTP takes one webhook.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var event struct {
		Reference string `json:"transaction_id"`
	}
	body, err := io.ReadAll(io.LimitReader(request.Body, maxAnswer))
	if err == nil {
		err = json.Unmarshal(body, &event)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	again := r.tried[event.Reference]
	r.tried[event.Reference] = true
	switch {
	case strings.HasPrefix(request.URL.Path, leftBehind):
		http.Error(w, "there is nothing here any more", http.StatusNotFound)
	case err != nil:
		http.Error(w, "this is no webhook", http.StatusBadRequest)
	case !again && r.fails(event.Reference):
		http.Error(w, "the shop is being restarted", http.StatusServiceUnavailable)
	default:
		r.taken++
		w.WriteHeader(http.StatusNoContent)
	}
}

// count returns the number of received webhooks.
func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}
