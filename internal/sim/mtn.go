package sim

import "net/http"

func newMTN(s *Sim) wire {
	return wire{serve: http.NotFoundHandler(), callback: func(e Entry) Callback { return Callback{} }}
}
