package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// WriteCertificate writes a certificate of this machine with its key, and returns the two paths.
func WriteCertificate(t testing.TB, folder string, serial int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// startLocal starts a development server on free ports until the test ends.
func startLocal(t *testing.T, change func(*config.Server)) *App {
	t.Helper()
	cfg := localConfig(t)
	if change != nil {
		change(&cfg)
	}
	return startWith(t, cfg, Options{Log: slog.New(slog.DiscardHandler)})
}

// localConfig is the configuration of a development server on SQLite, without a listener for metrics.
func localConfig(t *testing.T) config.Server {
	return config.Server{Environment: "development", Listen: "127.0.0.1:0", MetricsListen: "off", Storage: freshStorage(t, db.SQLite), DrainFor: time.Minute}
}

func startWith(t *testing.T, cfg config.Server, o Options) *App {
	t.Helper()
	a, err := Start(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return a
}

// Development mode never handles live money. With live credentials the server requires production and lists the missing
// settings. It refuses a database with live customers before it changes the database.
func TestLiveMoney_needsProduction(t *testing.T) {
	t.Parallel()
	local := config.Server{Environment: "development", Listen: "127.0.0.1:0", MetricsListen: "off", DrainFor: time.Minute}
	credentials := local
	credentials.Data, credentials.MTN = t.TempDir(), config.MTN{URL: "https://momo.example", CollectionUser: "u", CollectionKey: "k", CollectionAPIKey: "k"}
	_, err := Start(t.Context(), credentials, Options{})
	if err == nil || !strings.Contains(err.Error(), "credentials of MTN, which moves live money") || !strings.Contains(err.Error(), "a master key") {
		t.Errorf("with live credentials: %v", err)
	}
	if made, err := os.ReadDir(credentials.Data); err != nil || len(made) > 0 {
		t.Errorf("a start that was refused has made %v, %v", made, err)
	}
	for _, engine := range dbtest.Engines() {
		cfg := local
		cfg.Data, cfg.Connections = t.TempDir(), 4
		if engine == db.Postgres {
			cfg.Database = dbtest.URL(t)
		}
		a, err := Start(t.Context(), cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = a.db.Write(t.Context(), func(tx *db.Tx) error {
			_, err := a.tenants.Create(tx, tenant.Tenant{Name: "Kejetia Market", Mode: tenant.Live})
			return err
		})
		if err = errors.Join(err, a.Stop(t.Context())); err != nil {
			t.Fatal(err)
		}
		if _, err := Start(t.Context(), cfg, Options{}); err == nil || !strings.Contains(err.Error(), "live money, so it needs production mode") {
			t.Errorf("%s with a live customer: %v", engine, err)
		}
		if cfg, err = asProduction(cfg); err != nil {
			t.Fatal(err)
		}
		cfg.Sim = "http://127.0.0.1:1"
		if cfg.Secret, err = DevelopmentSecret(cfg.Storage, false); err != nil { // the key of this database
			t.Fatal(err)
		}
		if cfg.Secret.Weak() {
			t.Fatal("a drawn key counts as weak")
		}
		if a, err = Start(t.Context(), cfg, Options{}); err != nil {
			t.Fatal(err)
		}
		if a.ready.APIKey != "" || a.ready.SimURL != "" {
			t.Errorf("%s in production mode tells %+v", engine, a.ready)
		}
		if err := a.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// asProduction returns a valid configuration of a production server behind a proxy on this machine.
func asProduction(c config.Server) (config.Server, error) {
	key := sha256.Sum256([]byte(rand.Text()))
	var err error
	c.Environment, c.PublicURL, c.TrustedProxies = "production", "https://makola.example", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	c.Secret, err = config.NewSecret(key[:])
	return c, err
}

// A failed start does not disturb a running node, whether it has the same address or the same name.
func TestStart_failureReleasesResources(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	node := func(c *config.Server) {
		c.Database, c.Node, c.Connections, c.Data = url, "one", 8, t.TempDir()
	}
	running := startLocal(t, node)
	second := config.Server{Environment: "development", Listen: strings.TrimPrefix(strings.TrimSuffix(running.ready.APIURL, "/api/v1"), "http://"),
		MetricsListen: "off", DrainFor: time.Minute}
	node(&second)
	if _, err := Start(t.Context(), second, Options{}); !errors.Is(err, ErrAddressInUse) {
		t.Errorf("on an address that is taken: %v", err)
	}
	second.Listen = "127.0.0.1:0"
	if _, err := Start(t.Context(), second, Options{}); !problem.Is(err, problem.InProgress) {
		t.Errorf("under a name that is taken: %v", err)
	}
	if counts := running.jobs.Counts(); counts.LeasesLost != 0 || !counts.LeaseHolds {
		t.Errorf("the node that runs has lost its lease: %+v", counts)
	}
	connected(t, running)
	second.Node = "two"
	a, err := Start(t.Context(), second, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// If a proxy ends TLS, a connection from another address is not encrypted and is refused. Probes are answered.
func TestPlainHTTP_trustedProxiesOnly(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(c *config.Server) {
		var err error
		if *c, err = asProduction(*c); err != nil {
			t.Fatal(err)
		}
		c.Sim = "http://127.0.0.1:1"
	})
	for path, want := range map[string][2]int{"/api/v1/account-api/balance": {401, 403}, "/callbacks/mtn/x": {404, 403}, "/docs": {200, 403}, "/readyz": {200, 200}} {
		for i, from := range []string{"127.0.0.1:5000", "192.0.2.1:5000"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = from
			r.Header.Set("X-Forwarded-For", "127.0.0.1")
			w := httptest.NewRecorder()
			a.handler().ServeHTTP(w, r)
			if w.Code != want[i] {
				t.Errorf("%s from %s answers %d, want %d", path, from, w.Code, want[i])
			}
		}
	}
}

// A certificate that is renewed on disk is used without a restart. An incomplete renewal changes nothing.
func TestCertificate_renewedIsLoaded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := WriteCertificate(t, folder, 1)
	c := &certificate{cert: cert, key: key, log: slog.New(slog.DiscardHandler)}
	if err := c.load(); err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		t.Helper()
		c.looked = time.Time{} // a second has passed
		pair, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("the first certificate has the number %d", got)
	}
	before, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	WriteCertificate(t, folder, 2)
	after, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for step, text := range [][]byte{before, after} {
		if err := os.WriteFile(key, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(key, time.Time{}, time.Now().Add(time.Duration(step+1)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := serial(); got != int64(step+1) {
			t.Errorf("after step %d the certificate has the number %d", step+1, got)
		}
	}
}

// Listeners on loopback without a key accept programs on this machine, and refuse pages that a browser on it has open.
func TestLoopback_otherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(c *config.Server) { c.MetricsListen = "127.0.0.1:0" })
	metrics := strings.TrimSuffix(a.ready.MetricsURL, "/metrics")
	for _, target := range []string{a.ready.SimURL + "/faults", a.sim.url + "/sim/v1/faults", a.ready.MetricsURL, metrics + "/debug/pprof/"} {
		for name, attack := range map[string]struct {
			host, origin, site string
			refused            bool
		}{
			"a program":                 {},
			"a page of this machine":    {origin: "http://localhost:3000", site: "same-site"},
			"a page of another":         {origin: "https://evil.example", site: "cross-site", refused: true},
			"one that hides its name":   {origin: "null", refused: true},
			"an image in it":            {site: "cross-site", refused: true},
			"a name that points to us":  {host: "evil.example:8080", refused: true},
			"this machine's name":       {host: "localhost:8080"},
			"an address of the network": {host: "192.0.2.1:8080", refused: true},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = attack.host
			for header, value := range map[string]string{"Origin": attack.origin, "Sec-Fetch-Site": attack.site} {
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if (answer.StatusCode == http.StatusForbidden) != attack.refused {
				t.Errorf("%s at %s is answered %s", name, target, answer.Status)
			}
		}
	}
}

// A development server answers only to this machine's names and to the names in its settings. A web page that points its own name
// to loopback cannot read the demo key or pay with it.
func TestForeignHosts_areRefused(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(c *config.Server) { c.PublicURL = "https://pay.example:8443" })
	site := strings.TrimSuffix(a.ready.APIURL, "/api/v1")
	for host, refused := range map[string]bool{
		"": false, "localhost:8080": false, "LOCALHOST.": false, "127.3.2.1": false, "[::1]:8080": false, "[::1]": false, "shop.localhost:1": false,
		"pay.example": false, "pay.example:8443": false,
		"evil.example": true, "evil.example:8080": true, "localhost.evil.example": true, "127.0.0.1.evil.example": true, "evillocalhost": true,
		"192.0.2.1": true, "0.0.0.0:8080": true, "[fd00::1]": true, ".pay.example": true,
	} {
		for _, path := range []string{"/docs/quickstart", "/openapi.json", "/api/v1/account-api/balance", "/", "/sign-in", "/assets/console.css", "/callbacks/mtn/x"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header.Set("X-Api-Key", a.ready.APIKey)
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if (answer.StatusCode == http.StatusForbidden) != refused || refused && strings.Contains(string(text), a.ready.APIKey) {
				t.Errorf("%s of host %q answered %d", path, host, answer.StatusCode)
			}
			if refused && !strings.Contains(string(text), "MAKOLA_PUBLIC_URL") {
				t.Errorf("%s of host %q names no fix: %s", path, host, text)
			}
		}
		if answer := statusUnder(t, site+"/healthz", host); answer != http.StatusOK {
			t.Errorf("a probe of host %q answered %d", host, answer)
		}
	}
}

// statusUnder returns the status of a GET under a host.
func statusUnder(t *testing.T, url, host string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// Metrics that other machines can reach require a token.
func TestMetrics_needAToken(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(c *config.Server) { c.MetricsListen, c.MetricsToken = "127.0.0.1:0", "a-token-of-the-operator" })
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		for token, want := range map[string]int{"": 401, "Bearer a-token": 401, "Bearer a-token-of-the-operator": 200} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(a.ready.MetricsURL, "/metrics")+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", token)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s with %q: %s", path, token, answer.Status)
			}
		}
	}
}

// The next answer of a stopping node closes the client's connection. The client loses no request.
func TestDraining_losesNoRequest(t *testing.T) {
	t.Parallel()
	cert, key := WriteCertificate(t, t.TempDir(), 1)
	a := startLocal(t, func(c *config.Server) { c.DrainNotice, c.TLSCert, c.TLSKey = new(24*time.Hour), cert, key })
	const clients = 8
	var answered atomic.Int64
	left := make(chan error, clients)
	for n := range clients {
		go func() {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: n%2 == 0}}
			defer client.CloseIdleConnections()
			for {
				answer, err := client.Get(a.ready.APIURL + "/account-api/balance")
				if err != nil {
					left <- err
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				if answered.Add(1); answer.StatusCode != http.StatusUnauthorized {
					left <- errors.New(answer.Status)
					return
				}
				if answer.Close || a.leaving() && answer.ProtoMajor == 2 { // HTTP/2 announces the end in a frame that Go's client does not show
					left <- nil
					return
				}
			}
		}()
	}
	clocktest.Await(t, "the clients to be busy", func() bool { return answered.Load() > 10*clients })
	go a.notice(t.Context()) // the first step after an interrupt
	for range clients {
		if err := <-left; err != nil {
			t.Errorf("a client was lost: %v", err)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/api/v1/account-api/balance": 401} {
		answer, err := client.Get(strings.TrimSuffix(a.ready.APIURL, "/api/v1") + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want || !answer.Close {
			t.Errorf("in the notice %s answers %s, close %v", path, answer.Status, answer.Close)
		}
	}
}

// The daily limit of a key applies to the sum of payouts and airtime. Collections continue.
func TestDailyLimit_ofAKey(t *testing.T) {
	t.Parallel()
	a := startLocal(t, nil)
	key, err := a.access.Mint(access.NewKey{Tenant: demoTenant, Daily: 2 * money.Cedi})
	if err == nil {
		err = a.db.Write(t.Context(), func(tx *db.Tx) error {
			a.access.CreateKey(tx, key)
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	networks, err := a.routes.Networks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	payout := `{"amount":"%s","channel":"MTN","account_number":"0240000001","client_reference":"daily-limit-%d"}`
	for i, one := range []struct {
		path, body string
		status     int
	}{
		{"payment-api/send/mobilemoney", fmt.Sprintf(payout, "0.60", 1), 200}, // amount with its charges
		{"airtime-api/sendAirtime", fmt.Sprintf(`{"phone_number":"0240000001","amount":1,"network_id":%q,"transaction_id":"daily-limit-2"}`, networks[0].ID), 200},
		{"payment-api/send/mobilemoney", fmt.Sprintf(payout, "0.60", 3), 403},
		{"payment-api/send/mobilemoney", fmt.Sprintf(payout, "0.60", 1), 422},
		{"payment-api/momopay", `{"amount":1,"network":"MTN","phone_number":"0240000001","transaction_id":"daily-limit-4"}`, 200},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.ready.APIURL+"/"+one.path, strings.NewReader(one.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Api-Key", key.Text)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != one.status || one.status == 403 && !strings.Contains(string(text), "daily_limit_reached") {
			t.Errorf("request %d: %d %s", i, answer.StatusCode, text)
		}
	}
}

// A client without a key sends two hundred bodies that never end, over separate connections and as streams of one connection. All
// are refused before they are read.
func TestBody_withoutAKeyIsNotRead(t *testing.T) {
	t.Parallel()
	cert, key := WriteCertificate(t, t.TempDir(), 1)
	a := startLocal(t, func(c *config.Server) { c.TLSCert, c.TLSKey = cert, key })
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: protocol == "HTTP/2.0"}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: time.Minute}
			const bodies = 200
			refused := protocol + " 401 Unauthorized"
			answered := make(chan string, bodies)
			for range bodies {
				go func() {
					body, more := io.Pipe() // 1 MB without an end
					defer more.Close()
					go func() { _, _ = more.Write(make([]byte, 1<<20)) }()
					answer, err := client.Post(a.ready.APIURL+"/sms-api/contact/addBulkContact", "application/json", body)
					if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
						answered <- refused // the server closed the connection before the client read the answer
						return
					}
					if err != nil {
						answered <- err.Error()
						return
					}
					_ = answer.Body.Close()
					answered <- answer.Proto + " " + answer.Status
				}()
			}
			for range bodies {
				if got := <-answered; got != refused {
					t.Fatalf("answered %s", got)
				}
			}
		})
	}
}

// getWithKey returns the answer to a GET with the demo account's key.
func getWithKey(t *testing.T, a *App, path string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.Ready().APIURL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", a.Ready().APIKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// If the database refuses writes, for example on a full disk, requests that only read are answered, although the general rate
// limit cannot be counted.
func TestReads_workOnAFullDisk(t *testing.T) {
	t.Parallel()
	faults, limit := &db.Faults{}, int64(100)
	cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", MetricsListen: "off", Storage: freshStorage(t, db.SQLite), DrainFor: time.Minute, GeneralLimit: &limit}
	a := startWith(t, cfg, Options{Log: slog.New(slog.DiscardHandler), Faults: faults})
	faults.Decide(func(b db.Boundary) db.Fault {
		if b == db.BoundaryCommit {
			return db.FaultBefore
		}
		return db.FaultNone
	})
	defer faults.Decide(nil)
	for _, path := range []string{"/account-api/balance", "/payment-api/transfers/history"} {
		if status, _ := getWithKey(t, a, path); status != http.StatusOK {
			t.Errorf("%s answered %d", path, status)
		}
	}
}
