package smsc

import (
	"net/http"
	"time"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sim"
)

// view is the state of the message centre in the control interface.
type view struct {
	Account
	Options
	LatencyMS int64 `json:"latency_ms"`
	Totals
	Counting bool `json:"counting"`      // whether accepted segments are counted
	Segments int  `json:"segments"`      // number of different segments accepted since
	Again    int  `json:"again"`         // number of repeated acceptances
	Lost     int  `json:"not_counted"`   // acceptances beyond the capacity of the count
	Waiting  int  `json:"receipts_wait"` // receipts that wait for a connection
}

// control returns the centre's part of /sim/v1.
func (c *Centre) control() map[string]func(*http.Request) (any, error) {
	return map[string]func(*http.Request) (any, error){
		"GET /sim/v1/smsc": c.show, "POST /sim/v1/smsc": c.change, "GET /sim/v1/smsc/segments": c.listSegments, "POST /sim/v1/smsc/texts": c.sendText,
	}
}

func (c *Centre) show(*http.Request) (any, error) { return c.view(), nil }

func (c *Centre) view() view {
	v := view{Account: c.Account(), Options: c.Options(), Totals: c.Totals()}
	v.LatencyMS = v.Options.Latency.Milliseconds()
	book := c.counted.Load()
	v.Counting = book != nil
	v.Segments, v.Again, v.Lost = book.totals()
	v.Waiting = c.outbox.waiting()
	return v
}

// change changes the options in the body, starts or stops the count of segments, and cuts the connections.
func (c *Centre) change(r *http.Request) (any, error) {
	o := c.Options()
	body := struct {
		*Options
		LatencyMS  int64 `json:"latency_ms"`
		Counting   *bool `json:"counting"`
		Disconnect bool  `json:"disconnect"`
	}{Options: &o, LatencyMS: o.Latency.Milliseconds()}
	if err := sim.Decode(r, &body); err != nil {
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
	c.Set(o)
	if body.Counting != nil {
		c.CountSegments(*body.Counting)
	}
	if body.Disconnect {
		c.Disconnect()
	}
	return c.view(), nil
}

// sendText sends a text from a handset to a number or short code.
func (c *Centre) sendText(r *http.Request) (any, error) {
	var body struct{ From, To, Text string }
	if err := sim.Decode(r, &body); err != nil {
		return nil, err
	}
	if body.From == "" || body.To == "" || body.Text == "" || len(body.From) > 20 || len(body.To) > 20 {
		return nil, problem.Field("from", "and to must have 1 to 20 characters, and text at least one")
	}
	c.SendText(body.From, body.To, body.Text)
	return c.view(), nil
}

type segmentView struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Part     int    `json:"part"`
	Parts    int    `json:"parts"`
	Text     string `json:"text"`
	Accepted int    `json:"accepted"`
}

// maxSegmentRows is the maximum number of segments in one response.
const maxSegmentRows = 10_000

// listSegments lists counted segments: those of one recipient (to=), or else those that were accepted more than once.
func (c *Centre) listSegments(r *http.Request) (any, error) {
	var counts []SegmentCount
	if to := r.URL.Query().Get("to"); to != "" {
		counts = c.SegmentsTo(to)
	} else {
		counts = c.SegmentsTwice()
	}
	list := []segmentView{}
	for _, count := range counts[:min(len(counts), maxSegmentRows)] {
		list = append(list, segmentView(count))
	}
	return list, nil
}
