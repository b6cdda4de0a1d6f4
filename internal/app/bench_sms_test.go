package app_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

const (
	// smsClients is the number of keep-alive clients that send messages at the same time, to Makola and to Kannel.
	smsClients = 64
	// smsWindow is the maximum number of unanswered submits to the message centre, for both programs.
	smsWindow = 100
	// kannelMessages are enough messages to measure Kannel's rate. Makola sends for at most the same time. In both runs the first
	// receipts arrive two seconds after their messages, long before the end.
	kannelMessages = 60_000
	smsText        = "Your order is ready to be fetched"
)

// BenchmarkMessages sends messages over HTTP until the message centre has answered every submit, over one connection. It measures
// Makola and then Kannel with the same simulator, clients and window, and both request receipts. When Makola answers, it has
// committed the charge and the message with full durability. When Kannel answers, it has written the message to its file store,
// which it never syncs. The benchmark reports messages a second and the ratio to Kannel.
func BenchmarkMessages(b *testing.B) {
	for _, engine := range []db.Engine{db.Postgres, db.SQLite} {
		for _, c := range []struct{ recipients, requests int }{{1, 30_000}, {100, 2_000}} {
			b.Run(fmt.Sprintf("%s/%d", engine, c.recipients), func(b *testing.B) {
				for range b.N {
					benchmarkMessages(b, engine, c.recipients, c.requests)
				}
			})
		}
	}
}

func benchmarkMessages(b *testing.B, engine db.Engine, recipients, requests int) {
	b.StopTimer()
	defer b.ReportMetric(0, "ns/op")
	sim := startSim(b)
	centre := messageCentre(b, sim)
	kannel := 0.0
	if boxes := startKannel(b, centre); boxes != nil {
		kannel = boxes.run(b, centre, recipients, min(requests, kannelMessages/recipients))
		boxes.stop()
		clocktest.Await(b, "the end of Kannel's connection", func() bool { return centre.totals(b).Bound == 0 })
		b.ReportMetric(kannel, "kannel-messages/s")
	}
	where := newSite(b, engine)
	durable(b, engine)
	where.live(b)
	server := where.serve(b, "makola", sim, centre.flags("--smpp-window", strconv.Itoa(smsWindow))...)
	key, sender := smsTenant(b, where, server)
	clocktest.Await(b, "the connection", func() bool { return centre.totals(b).Bound == 2 }) // test money also has a connection
	pids := map[string]int{"server": server.ready.PID, "simulator": sim.cmd.Process.Pid}
	cpu := cpuOf(b, pids)
	b.StartTimer()
	l := &texters{address: host(server.ready.APIURL), status: http.StatusOK, request: smsRequest(key, sender, recipients)}
	rate := l.run(b, centre, recipients, requests)
	b.StopTimer()
	cpuOf(b, pids).report(b, cpu, float64(recipients*requests))
	b.ReportMetric(rate, "messages/s")
	b.ReportMetric(l.accepted, "accepted/s")
	if kannel > 0 {
		b.ReportMetric(rate/kannel, "of-kannel")
	}
	b.ReportMetric(float64(l.percentile(0.5).Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(l.percentile(0.99).Microseconds())/1000, "p99-ms")
	b.ReportMetric(peakMemory(b, server.ready.PID), "MB-peak")
	clocktest.Await(b, "a row for each message", func() bool { return rowsOf(b, where) == int64(recipients*requests) })
	server.kill()
	sim.kill()
}

// rowsOf checks the books of a site and returns its number of messages.
func rowsOf(b *testing.B, where site) int64 {
	b.Helper()
	var checked struct {
		Messages int64 `json:"messages"`
	}
	decode(b, where.command(b, "ledger", "check", "-o", "json"), &checked)
	return checked.Messages
}

// recipientsOf returns the numbers of the n-th request: ordinary numbers, each with a receipt after two seconds.
func recipientsOf(n, many int) []string {
	list := make([]string, many)
	for i := range list {
		list[i] = strconv.Itoa(233_241_000_000 + (n*many+i)%1_000_000)
	}
	return list
}

func host(url string) string {
	return strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/api/v1")
}

// texters are keep-alive clients that send messages on bare connections.
type texters struct {
	address  string
	status   int // status of a successful answer
	request  func(to []byte, n int) []byte
	accepted float64 // messages a second, as answered
	lives
}

// run sends a number of requests. It returns the messages a second, from the first request to the message centre's answer to the
// last submit.
func (l *texters) run(b *testing.B, c *centre, recipients, requests int) float64 {
	b.Helper()
	before := c.totals(b).Accepted
	begun := time.Now()
	var next atomic.Int64
	var group sync.WaitGroup
	for range smsClients {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := l.client(&next, int64(requests)); err != nil {
				b.Error(err)
			}
		}()
	}
	group.Wait()
	if b.Failed() {
		b.FailNow()
	}
	l.accepted = float64(recipients*requests) / time.Since(begun).Seconds()
	clocktest.Await(b, "the last submit", func() bool { return c.totals(b).Accepted >= before+int64(recipients*requests) })
	return float64(recipients*requests) / time.Since(begun).Seconds()
}

func (l *texters) client(next *atomic.Int64, requests int64) error {
	connection, err := net.Dial("tcp", l.address)
	if err != nil {
		return err
	}
	defer connection.Close()
	reader := bufio.NewReaderSize(connection, 8<<10)
	var request []byte
	var took []time.Duration
	for {
		n := next.Add(1) - 1
		if n >= requests {
			break
		}
		request = l.request(request[:0], int(n))
		status, latency, err := exchange(connection, reader, request)
		if err != nil {
			return err
		}
		if status != l.status {
			return fmt.Errorf("a request was answered with %d", status)
		}
		took = append(took, latency)
	}
	l.keep(took)
	return nil
}

// kannel is a running Kannel: its bearerbox with a file store, and its smsbox.
type kannel struct {
	address string
	admin   string
	boxes   []*box
}

// box is one of Kannel's processes.
type box struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

const kannelSettings = `group = core
admin-port = %[1]d
admin-password = bench
smsbox-port = %[2]d
box-allow-ip = "127.0.0.1"
store-type = file
store-location = %[3]s/store
log-level = 3
log-file = %[3]s/bearerbox.log

group = smsc
smsc = smpp
smsc-id = centre
host = %[4]s
port = %[5]s
transceiver-mode = yes
smsc-username = %[6]s
smsc-password = %[7]s
system-type = ""
max-pending-submits = %[8]d

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = %[9]d
log-level = 3
log-file = %[3]s/smsbox.log

group = sendsms-user
username = bench
password = bench
`

// startKannel starts Kannel, or returns nil if it is not installed.
func startKannel(b *testing.B, c *centre) *kannel {
	b.Helper()
	binaries := map[string]string{}
	for _, name := range []string{"bearerbox", "smsbox"} {
		path, err := exec.LookPath(name)
		if err != nil {
			path = "/usr/sbin/" + name // Debian's folder, which may be missing in PATH
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			b.Log("Kannel is not here (Debian has it as kannel): Makola is measured alone")
			return nil
		}
		binaries[name] = path
	}
	folder := b.TempDir()
	centreHost, centrePort, err := net.SplitHostPort(c.Address)
	if err != nil {
		b.Fatal(err)
	}
	ports := freePorts(b, 3)
	settings := fmt.Sprintf(kannelSettings, ports[0], ports[1], folder, centreHost, centrePort, c.SystemID, c.Password, smsWindow, ports[2])
	file := filepath.Join(folder, "kannel.conf")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		b.Fatal(err)
	}
	k := &kannel{address: fmt.Sprintf("127.0.0.1:%d", ports[2]), admin: fmt.Sprintf("http://127.0.0.1:%d/status.txt?password=bench", ports[0])}
	b.Cleanup(k.stop)
	bound := c.totals(b).Bound
	k.start(b, binaries["bearerbox"], file)
	k.await(b, "Kannel's connection", func() bool { return c.totals(b).Bound > bound })
	k.start(b, binaries["smsbox"], file)
	k.await(b, "Kannel to listen", func() bool {
		connection, err := net.Dial("tcp", k.address)
		if err != nil {
			return false
		}
		return connection.Close() == nil
	})
	// It listens before it is connected to its bearerbox, to which it passes accepted messages.
	k.await(b, "Kannel's boxes to know each other", func() bool {
		answer, err := http.Get(k.admin)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(text), "smsbox:")
	})
	return k
}

func (k *kannel) start(b *testing.B, binary, settings string) {
	b.Helper()
	one := &box{cmd: exec.Command(binary, settings), exited: make(chan struct{})}
	one.cmd.Dir = filepath.Dir(settings)
	if err := one.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() {
		_ = one.cmd.Wait()
		close(one.exited)
	}()
	k.boxes = append(k.boxes, one)
}

// await waits until a condition is true. It fails if a box ends.
func (k *kannel) await(b *testing.B, what string, so func() bool) {
	b.Helper()
	clocktest.Await(b, what, func() bool {
		for _, each := range k.boxes {
			select {
			case <-each.exited:
				b.Fatalf("%s ended: %v", each.cmd.Path, each.cmd.ProcessState)
			default:
			}
		}
		return so()
	})
}

// stop kills the boxes, the newest first.
func (k *kannel) stop() {
	for _, each := range slices.Backward(k.boxes) {
		_ = each.cmd.Process.Kill()
		<-each.exited
	}
	k.boxes = nil
}

// run returns Kannel's messages a second. It waits for the receipts of them all: one that was not taken goes to
// the next bind.
func (k *kannel) run(b *testing.B, c *centre, recipients, requests int) float64 {
	b.Helper()
	l := &texters{address: k.address, status: http.StatusAccepted, request: func(to []byte, n int) []byte {
		to = append(to, "GET /cgi-bin/sendsms?username=bench&password=bench&from=Kejetia&dlr-mask=3&text="+strings.ReplaceAll(smsText, " ", "+")+"&to="...)
		to = append(to, strings.Join(recipientsOf(n, recipients), "+")...)
		return append(to, " HTTP/1.1\r\nHost: localhost\r\n\r\n"...)
	}}
	rate := l.run(b, c, recipients, requests)
	k.await(b, "Kannel's receipts", func() bool { return c.totals(b).Confirmed >= int64(recipients*requests) })
	b.Logf("Kannel: %.0f messages a second, accepted at %.0f, p50 %v, p99 %v", rate, l.accepted, l.percentile(0.5), l.percentile(0.99))
	return rate
}

// freePorts finds ports without a listener, outside the range that the system gives to connections. A port in that range may be in
// use before Kannel opens it.
func freePorts(b *testing.B, n int) []int {
	b.Helper()
	var ports []int
	for len(ports) < n {
		port := 20_000 + rand.IntN(10_000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			b.Fatal(err)
		}
		defer listener.Close()
		ports = append(ports, port)
	}
	return ports
}
