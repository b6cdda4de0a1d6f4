package smsc

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// ask sends a request to the control interface and reads the data of the answer.
func ask(t *testing.T, url, method, path, body string, into any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	whole := struct{ Data any }{into}
	if err := json.NewDecoder(a.Body).Decode(&whole); err != nil && into != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
	return a.StatusCode
}

// The message centre is controlled over HTTP.
func TestControl_ofMessageCentre(t *testing.T) {
	s, _ := newCentre(t, Options{})
	server := httptest.NewServer(s.s.Handler())
	defer server.Close()
	url := server.URL + "/sim/v1"
	var view struct {
		Address   string
		SystemID  string `json:"system_id"`
		Password  string
		SubmitIDs string `json:"submit_ids"`
		MaxBinds  int    `json:"max_binds"`
		LatencyMS int    `json:"latency_ms"`
		Bound     int
		Accepted  int
		Counting  bool
		Segments  int
		Again     int
	}
	ask(t, url, "GET", "/smsc", "", &view)
	if view.Address != s.Account().Address || view.SystemID != systemID || view.Password != password || view.SubmitIDs != "text" || view.Counting {
		t.Errorf("%+v", view)
	}
	if got := ask(t, url, "POST", "/smsc", `{"submit_ids":"hex","max_binds":2,"latency_ms":20,"counting":true}`, &view); got != 200 ||
		view.SubmitIDs != "hex" || view.MaxBinds != 2 || view.LatencyMS != 20 || !view.Counting || s.Options().Latency != 20*time.Millisecond {
		t.Errorf("%d, %+v", got, view)
	}
	if got := ask(t, url, "POST", "/smsc", `{"latency_ms":0}`, &view); got != 200 || view.SubmitIDs != "hex" {
		t.Errorf("%d, %+v", got, view)
	}
	for _, body := range []string{`{"submit_ids":"octal"}`, `{"rate":-1}`, `{"latency_ms":-1}`} {
		if got := ask(t, url, "POST", "/smsc", body, nil); got != 422 {
			t.Errorf("%s: %d", body, got)
		}
	}
	l := bound(t, s, pdu.Transmitter)
	l.submit(message("233244123456", "Hello"))
	l.submit(message("233244123456", "Hello"))
	l.submit(message("233244123457", "Hello"))
	ask(t, url, "GET", "/smsc", "", &view)
	if view.Bound != 1 || view.Accepted != 3 || view.Segments != 2 || view.Again != 1 {
		t.Errorf("%+v", view)
	}
	var segments []struct {
		To, From, Text string
		Accepted       int
	}
	for path, want := range map[string]string{
		"/smsc/segments": "[{233244123456 ADOM Hello 2}]", "/smsc/segments?to=0244123457": "[{233244123457 ADOM Hello 1}]",
	} {
		ask(t, url, "GET", path, "", &segments)
		if fmt.Sprint(segments) != want {
			t.Errorf("%s: %v", path, segments)
		}
	}
	if got := ask(t, url, "POST", "/faults", `{"provider":"smpp","fault":"rthrottled","every":2,"count":1}`, nil); got != 200 ||
		s.s.Faults()[0].Provider != Name || s.s.Faults()[0].Every != 2 || s.s.Faults()[0].Kind != sim.Throttle {
		t.Errorf("%d, %+v", got, s.s.Faults())
	}
	if got := ask(t, url, "POST", "/smsc", `{"disconnect":true,"counting":false}`, nil); got != 200 || !l.closed() || len(s.SegmentsTo("233244123456")) != 0 {
		t.Errorf("%d", got)
	}
}

// A closed simulator unbinds its clients and accepts no others.
func TestClose_unbindsClients(t *testing.T) {
	s, _ := newCentre(t, Options{})
	l := bound(t, s, pdu.Transceiver)
	closed := make(chan error, 1)
	go func() { closed <- s.s.Close() }()
	if p, ok := l.read().(*pdu.Unbind); !ok || !l.closed() {
		t.Errorf("%+v", p)
	}
	l.conn.Close()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if s.Serve(other) == nil {
		t.Error("a closed simulator serves")
	}
}

// exhausted is a listener whose first calls of Accept fail, because the process has no free file descriptor.
type exhausted struct {
	net.Listener
	failures atomic.Int64
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, syscall.EMFILE
	}
	return l.Listener.Accept()
}

// A failed accept does not end the message centre.
func TestServe_survivesFailedAccepts(t *testing.T) {
	s := New(Options{})
	simtest.New(t, sim.Options{}, s.Join)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	few := &exhausted{Listener: l}
	few.failures.Store(3)
	serve(t, s, few)
	bound(t, s, pdu.Transceiver)
}

// The account shows the address of the listener from the start.
func TestAccount_knowsAddressFromTheStart(t *testing.T) {
	s := New(Options{})
	simtest.New(t, sim.Options{}, s.Join)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Announce(l)
	if is := s.Account().Address; is != l.Addr().String() {
		t.Errorf("the account is at %q", is)
	}
	serve(t, s, l)
	bound(t, s, pdu.Transceiver)
}

// BenchmarkSMSC measures a submit, its answer and its receipt over TCP, with as many unanswered submits as the client
// allows.
func BenchmarkSMSC(b *testing.B) {
	s := New(Options{})
	whole, err := sim.New(sim.Options{}, s.Join)
	if err != nil {
		b.Fatal(err)
	}
	defer whole.Close()
	listen(b, s)
	l := bound(b, s, pdu.Transceiver)
	l.conn.SetReadDeadline(time.Time{})
	const window = 100
	var units [][]byte
	for range 1000 {
		buf := pdu.NewBuffer(nil)
		message(fmt.Sprintf("23324%07d", rand.IntN(1e7)), "Your order is ready, come before six. Adom shop").Marshal(buf)
		units = append(units, buf.Bytes())
	}
	b.ReportAllocs()
	b.ResetTimer()
	buffer := make([]byte, 0, 64<<10)
	in := make([]byte, 64<<10)
	answers := 0
	var head []byte
	for sent := 0; answers < b.N; {
		buffer = buffer[:0]
		for ; sent < b.N && sent-answers < window; sent++ {
			buffer = append(buffer, units[sent%len(units)]...)
		}
		l.write(buffer...)
		n, err := l.conn.Read(in)
		if err != nil {
			b.Fatal(err)
		}
		head = append(head, in[:n]...)
		for len(head) >= 16 && len(head) >= int(binary.BigEndian.Uint32(head)) {
			h := pdu.ParseHeader([16]byte(head))
			switch h.CommandID {
			case data.SUBMIT_SM_RESP:
				answers++
			case data.DELIVER_SM:
				l.write(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 17, 0x80, 0, 0, 5, 0, 0, 0, 0}, uint32(h.SequenceNumber))...)
				l.write(0)
			}
			head = head[h.CommandLength:]
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
