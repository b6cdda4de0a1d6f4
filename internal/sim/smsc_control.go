package sim

import (
	"net/http"
	"time"

	"github.com/makola/makola/internal/problem"
)

// smscView is the message centre as the control interface shows it.
type smscView struct {
	SMPPAccount
	SMSCOptions
	LatencyMS int64 `json:"latency_ms"`
	SMSCTotals
	Counting bool `json:"counting"`      // whether accepted segments are counted one by one
	Segments int  `json:"segments"`      // different ones that were accepted since
	Again    int  `json:"again"`         // acceptances of one that had been accepted before
	Lost     int  `json:"not_counted"`   // beyond what the count can hold
	Waiting  int  `json:"receipts_wait"` // for a connection that takes them
}

func (s *Sim) getSMSC(*http.Request) (any, error) { return s.viewSMSC(), nil }

func (s *Sim) viewSMSC() smscView {
	v := smscView{SMPPAccount: s.SMPP(), SMSCOptions: s.SMSCOptions(), SMSCTotals: s.SMSCTotals()}
	v.LatencyMS = v.SMSCOptions.Latency.Milliseconds()
	book := s.smsc.counted.Load()
	v.Counting = book != nil
	v.Segments, v.Again, v.Lost = book.totals()
	s.smsc.mu.Lock()
	defer s.smsc.mu.Unlock()
	v.Waiting = s.smsc.queue.len()
	return v
}

// postSMSC changes the habits that the body names, begins or ends the count of
// segments, and cuts the connections.
func (s *Sim) postSMSC(r *http.Request) (any, error) {
	o := s.SMSCOptions()
	body := struct {
		*SMSCOptions
		LatencyMS  int64 `json:"latency_ms"`
		Counting   *bool `json:"counting"`
		Disconnect bool  `json:"disconnect"`
	}{SMSCOptions: &o, LatencyMS: o.Latency.Milliseconds()}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	o.Latency = time.Duration(body.LatencyMS) * time.Millisecond
	for _, form := range []IDForm{o.SubmitIDs, o.ReceiptIDs} {
		if form != IDText && form != IDHex && form != IDDecimal {
			return nil, problem.Field("submit_ids", "and receipt_ids must be text, hex or decimal")
		}
	}
	if min(int64(o.Rate), int64(o.Queue), int64(o.Binds), int64(o.ReceiptWindow), body.LatencyMS) < 0 {
		return nil, problem.Field("rate", "and the other numbers must not be negative")
	}
	s.SetSMSC(o)
	if body.Counting != nil {
		s.CountSegments(*body.Counting)
	}
	if body.Disconnect {
		s.Disconnect()
	}
	return s.viewSMSC(), nil
}

type segmentView struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Part     int    `json:"part"`
	Parts    int    `json:"parts"`
	Text     string `json:"text"`
	Accepted int    `json:"accepted"`
}

// maxSegmentRows bounds one answer about segments.
const maxSegmentRows = 10_000

// getSegments lists counted segments: of one recipient (to=), else those that
// were accepted more than once.
func (s *Sim) getSegments(r *http.Request) (any, error) {
	var counts []SegmentCount
	if to := r.URL.Query().Get("to"); to != "" {
		counts = s.SegmentsTo(to)
	} else {
		counts = s.SegmentsTwice()
	}
	list := []segmentView{}
	for _, c := range counts[:min(len(counts), maxSegmentRows)] {
		list = append(list, segmentView(c))
	}
	return list, nil
}
