package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// patient returns a doctor of an installation without faults. Each test then breaks one part.
func patient(t *testing.T) *doctor {
	return &doctor{doctorCommand: &doctorCommand{Within: 5 * time.Second, Server: config.Server{Storage: config.Storage{Data: t.TempDir()},
		Listen: "127.0.0.1:0", MetricsListen: "off", DiskReserve: 1, MaxClients: 100}},
		e: &frame.Env{Ctx: t.Context()}, clock: clock.Real(), files: 4096}
}

// says fails the test unless the doctor has one finding about check with the state, and with a fix if action is needed.
func (d *doctor) says(t *testing.T, check, state, fact string) {
	t.Helper()
	n := 0
	for _, f := range d.found {
		if f.check != check {
			continue
		}
		if n++; f.state != state || !strings.Contains(f.fact, fact) || (f.fix == "") != (state == stateOK) {
			t.Errorf("%+v, want %s and %q", f, state, fact)
		}
	}
	if n != 1 {
		t.Errorf("%d findings about %q in %+v", n, check, d.found)
	}
	d.found = nil
}

// Each check is tested with a good and a bad configuration, because a check that cannot fail is useless.
func TestDoctor_wrongSettings(t *testing.T) {
	d := patient(t)
	d.variables([]string{"MAKOLA_LISTEN=:80", "MAKOLA_LISTN=:80"})
	d.says(t, "variables", stateFail, "MAKOLA_LISTN")
	d.variables([]string{"MAKOLA_LISTEN=:80", "HOME=/"})
	d.says(t, "variables", stateOK, "")
	d.settings()
	d.says(t, "settings", stateOK, "development")
	d.MaxClients = -1
	d.settings()
	d.says(t, "settings", stateFail, "MAKOLA_MAX_CLIENTS")

	t.Setenv("MAKOLA_LISTN", "x")
	out, _ := where{t: t, flags: []string{"--data", t.TempDir()}}.run(exitInternal, "doctor", "--metrics-listen", "off")
	if !strings.Contains(out, "MAKOLA_LISTN") {
		t.Errorf("the command says %s", out)
	}
}

func TestDoctor_unusableMasterKey(t *testing.T) {
	t.Setenv(config.EnvMasterKey, "")
	t.Setenv(config.EnvMasterKeyFile, "")
	d := patient(t)
	d.Environment = "production"
	d.masterKey()
	d.says(t, "key", stateFail, "no master key")
	file := filepath.Join(t.TempDir(), "key")
	t.Setenv(config.EnvMasterKeyFile, file)
	d.masterKey()
	d.says(t, "key", stateFail, "no such file")
	key := make([]byte, config.SecretBytes)
	rand.Read(key)
	if err := os.WriteFile(file, []byte(hex.EncodeToString(key)), 0o600); err != nil {
		t.Fatal(err)
	}
	d.masterKey()
	d.says(t, "key", stateOK, "random")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	d.masterKey()
	d.says(t, "key", stateFail, "by others")
	t.Setenv(config.EnvMasterKey, strings.Repeat("ab", config.SecretBytes))
	d.masterKey()
	d.says(t, "key", stateWarn, "does not look random")
}

func TestDoctor_databaseMissingOrBehind(t *testing.T) {
	t.Parallel()
	d := patient(t)
	d.stored(t.Context())
	d.says(t, "database", stateFail, "No database")
	d.Database = "postgres://127.0.0.1:1/none"
	d.stored(t.Context())
	d.says(t, "database", stateFail, "cannot be opened")
	d.Database = dbtest.EmptyURL(t)
	d.stored(t.Context())
	d.says(t, "schema", stateFail, "lacks")
}

func TestDoctor_findingsOfTheDatabase(t *testing.T) {
	key := testMasterKey
	eachAlone(t, func(t *testing.T, w where) {
		t.Setenv(config.EnvMasterKey, key)
		tenant := w.tenant()
		w.run(exitOK, "wallet", "fund", tenant, "100", "--reason", "opening", "--reference", "slip-1")
		o := frame.Assemble(w.db, clock.Real())
		secret, err := config.ParseSecret(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Installation.Check(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		d := patient(t)
		d.secret = secret
		d.skew(t.Context(), w.db)
		d.says(t, "clock", stateOK, "")
		now := time.Now()
		d.clock = clock.NewManual(now.Add(-20*time.Second - 500*time.Millisecond))
		d.skew(t.Context(), w.db)
		d.says(t, "clock", stateFail, "20")
		d.clock = clock.NewManual(now.Add(3 * time.Second))
		d.skew(t.Context(), w.db)
		d.says(t, "clock", stateWarn, "s from")

		d.clock = clock.Real()
		d.installation(t.Context(), o)
		d.says(t, "key of the database", stateOK, "")
		d.oldestUnknown(t.Context(), o)
		d.says(t, "unknown outcomes", stateOK, "none")
		w.stuck(t, tenant, "order-000000001") // unknown for an hour
		d.clock = clock.NewManual(time.Now().Add(-10 * time.Minute))
		d.oldestUnknown(t.Context(), o)
		d.says(t, "unknown outcomes", stateWarn, "1 payments")
		d.clock = clock.NewManual(time.Now().Add(10 * time.Minute))
		d.oldestUnknown(t.Context(), o)
		d.says(t, "unknown outcomes", stateFail, "1 payments")
		d.clock = clock.Real()

		d.lastBackup(t.Context(), o)
		d.says(t, "backup", stateWarn, "no record of a backup")
		d.Environment = "production"
		d.lastBackup(t.Context(), o)
		d.says(t, "backup", stateFail, "no record of a backup")
		made := backup.Backup{Path: "/b/one"}
		made.ID, made.MadeAt = frame.NewID(), time.Now().Add(-27*time.Hour)
		record := func() {
			if err := w.db.Write(t.Context(), func(tx *db.Tx) error { backup.Record(tx, made); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		record()
		d.lastBackup(t.Context(), o)
		d.says(t, "backup", stateFail, "27h0m0s old")
		made.ID, made.MadeAt = frame.NewID(), time.Now().Add(-time.Hour)
		record()
		d.lastBackup(t.Context(), o)
		d.says(t, "backup", stateOK, "/b/one")

		d.recoveryState(t.Context(), o)
		d.says(t, "recovery", stateOK, "")
		if err := o.Recovery().Begin(t.Context(), "a test", time.Time{}, "a test", "cli:test"); err != nil {
			t.Fatal(err)
		}
		d.recoveryState(t.Context(), frame.Assemble(w.db, clock.Real()))
		d.says(t, "recovery", stateFail, "customers get 503")

		d.secret, _ = config.ParseSecret(strings.Repeat("cd", config.SecretBytes))
		d.installation(t.Context(), o)
		d.says(t, "key of the database", stateFail, "another master key")
	})
}

func TestDoctor_diskFilesAndCertificate(t *testing.T) {
	t.Parallel()
	d := patient(t)
	d.disk()
	d.says(t, "disk", stateOK, "")
	d.DiskReserve = 1 << 40
	d.disk()
	d.says(t, "disk", stateFail, "MB free")
	d.Data = filepath.Join(d.Data, "none")
	d.disk()
	d.says(t, "disk", stateWarn, "cannot be read")
	d.descriptors()
	d.says(t, "descriptors", stateOK, "")
	d.MaxClients = 4096
	d.descriptors()
	d.says(t, "descriptors", stateWarn, "3072 of 4096 clients")
	d.files = 255
	d.descriptors()
	d.says(t, "descriptors", stateFail, "255 open files")

	for left, state := range map[time.Duration]string{-time.Hour: stateFail, time.Hour: stateWarn, 100 * 24 * time.Hour: stateOK} {
		d.TLSCert, d.TLSKey = certificateFor(t, left)
		d.certificate()
		d.says(t, "certificate", state, "ends on")
	}
	d.TLSKey = d.TLSCert
	d.certificate()
	d.says(t, "certificate", stateFail, "")
}

// certificateFor makes a certificate that is valid for a time, and its key.
func certificateFor(t *testing.T, left time.Duration) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(left)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certFile, keyFile = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func TestDoctor_unreachableProvider(t *testing.T) {
	t.Parallel()
	requests := make(chan struct{}, 1)
	count := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests <- struct{}{} })
	plain, private := httptest.NewServer(count), httptest.NewUnstartedServer(count)
	private.Config.ErrorLog = log.New(io.Discard, "", 0)
	private.StartTLS()
	defer plain.Close()
	defer private.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	d := patient(t)
	d.providers(t.Context())
	d.says(t, "providers", stateOK, "none")
	d.Sim = plain.URL
	d.providers(t.Context())
	d.says(t, "provider simulator", stateOK, "accepts connections")
	d.Sim = "http://" + closed.Addr().String()
	d.providers(t.Context())
	d.says(t, "provider simulator", stateFail, "refused")
	d.Sim, d.MTN.URL = "", private.URL
	d.providers(t.Context())
	d.says(t, "provider mtn URL", stateFail, "certificate")
	d.MTN.URL = "nothing"
	d.providers(t.Context())
	d.says(t, "providers", stateFail, "no URL")
	select {
	case <-requests:
		t.Error("a provider was sent a request")
	default:
	}
}

// The doctor connects to the egress proxy and, through it, to providers. It sends no request and shows no password.
func TestDoctor_egressProxy(t *testing.T) {
	t.Parallel()
	provider := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a provider was sent a request") }))
	defer provider.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "momo.example:443" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		far, err := net.Dial("tcp", provider.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer far.Close()
		conn, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(conn, far)
		io.Copy(far, in)
	}))
	address := proxy.Listener.Addr().String()
	d := patient(t)
	d.Egress.URL = config.Credential("http://ama:hunter2@" + address)
	d.providers(t.Context())
	d.says(t, "egress proxy", stateOK, address+" accepts connections; direct connections are used for loopback and nothing else")
	d.Egress.Except = []string{"bank.example"}
	d.MTN.URL = "https://momo.example"
	d.providers(t.Context())
	d.says(t, "provider mtn URL", stateFail, "momo.example:443 cannot be reached, through the egress proxy: tls: failed to verify certificate")
	d.MTN.URL = "https://other.example"
	d.providers(t.Context())
	d.says(t, "provider mtn URL", stateFail, "through the egress proxy: the proxy answered 403: 403 Forbidden")
	d.MTN.URL = ""
	d.Sim = "http://127.0.0.2:1"
	d.providers(t.Context())
	d.says(t, "provider simulator", stateFail, "127.0.0.2:1 cannot be reached: dial tcp")
	d.Sim = ""
	proxy.Close()
	d.providers(t.Context())
	if text := fmt.Sprint(d.found); strings.Contains(text, "hunter2") {
		t.Error(text)
	}
	d.says(t, "egress proxy", stateFail, address+" cannot be reached: no connection to the proxy: dial tcp")
	d.Egress.URL = "http://ama:hunter2@" + "proxy.example"
	d.settings()
	if text := fmt.Sprint(d.found); strings.Contains(text, "hunter2") {
		t.Error(text)
	}
	d.says(t, "settings", stateFail, "MAKOLA_PROXY")
}

// The doctor reads metrics in the format that a server writes.
const healthyMetrics = `# TYPE makola_build_info gauge
makola_build_info{version="VERSION"} 1
# TYPE makola_http_forwarded_total counter
makola_http_forwarded_total{peer="trusted"} 5
makola_http_forwarded_total{peer="unknown"} 0
# TYPE makola_sms_connected gauge
makola_sms_connected{mode="live"} 1
# TYPE makola_sms_binds_down gauge
makola_sms_binds_down{mode="live"} 0
# TYPE makola_ledger_faults gauge
makola_ledger_faults{book="ledger"} 0
# TYPE makola_ledger_last_check_timestamp_seconds gauge
makola_ledger_last_check_timestamp_seconds{book="ledger"} 1.7e9
`

func TestDoctor_findingsOfTheMetrics(t *testing.T) {
	t.Parallel()
	d := patient(t)
	d.clock = clock.NewManual(time.Unix(1_700_000_060, 0))
	d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	look := func(check, state, fact string, replace ...string) {
		t.Helper()
		text := strings.NewReplacer("VERSION", Version()).Replace(strings.NewReplacer(replace...).Replace(healthyMetrics))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
		defer server.Close()
		d.MetricsListen = server.Listener.Addr().String()
		d.running(t.Context())
		d.says(t, check, state, fact)
	}
	look("server", stateOK, Version())
	look("trusted proxies", stateOK, "10.0.0.1/32")
	look("binds", stateOK, "up")
	look("last check of ledger", stateOK, "1m0s ago")
	look("server", stateWarn, "0.0.1", "VERSION", "0.0.1")
	look("server", stateWarn, "is not Makola", "makola_build_info", "other_build_info")
	look("trusted proxies", stateFail, "9 requests", `"unknown"} 0`, `"unknown"} 9`, `"trusted"} 5`, `"trusted"} 0`)
	look("trusted proxies", stateWarn, "9 requests", `"unknown"} 0`, `"unknown"} 9`)
	look("trusted proxies", stateWarn, "None of the", `{peer="trusted"}`, `{peer="silent"}`)
	look("binds", stateFail, "2 are down", `binds_down{mode="live"} 0`, `binds_down{mode="live"} 2`)
	look("binds", stateWarn, "this node has no binds", `connected{mode="live"} 1`, `connected{mode="live"} 0`)
	look("last check of ledger", stateFail, "3 faults", `faults{book="ledger"} 0`, `faults{book="ledger"} 3`)
	look("last check of ledger", stateWarn, "no check since", "1.7e9", "0")
	look("last check of ledger", stateFail, "ago", "1.7e9", "1.69e9")
	d.MetricsListen = "127.0.0.1:1"
	d.running(t.Context())
	d.says(t, "server", stateWarn, "no server answers")
}

// The doctor finds no problem on a running server with its settings, and every metric that it reads exists under that name.
func TestDoctor_runningServer(t *testing.T) {
	t.Setenv(config.EnvMasterKey, "")
	t.Setenv(config.EnvMasterKeyFile, "")
	var root commands
	parser, err := newParser(&root, &bytes.Buffer{}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if _, err := parser.Parse([]string{"serve", "--data", folder, "--listen", "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	a, err := app.Start(t.Context(), root.Serve.Server, app.Options{Version: Version()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	metrics := strings.TrimSuffix(strings.TrimPrefix(a.Ready().MetricsURL, "http://"), "/metrics")
	report := func(code int) map[string]map[string]string {
		out, _ := where{t: t, flags: []string{"--data", folder}}.run(code, "doctor", "-o", "json", "--metrics-listen", metrics, "--listen", strings.TrimSuffix(strings.TrimPrefix(a.Ready().APIURL, "http://"), "/api/v1"))
		var list []map[string]string
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		by := map[string]map[string]string{}
		for _, line := range list {
			by[line["check"]] = line
		}
		return by
	}
	found := report(exitOK)
	for _, check := range []string{"variables", "settings", "key", "database", "clock", "schema", "key of the database", "recovery", "unknown outcomes", "disk", "readiness", "server", "trusted proxies", "providers"} {
		if found[check]["state"] != stateOK {
			t.Errorf("%s is %v", check, found[check])
		}
	}
	for _, check := range []string{"backup", "binds", "last check of ledger", "last check of payments", "last check of messages", "last check of audit", "descriptors"} {
		if found[check]["state"] == "" {
			t.Errorf("nothing is said about %s", check)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.Ready().APIURL+"/nothing", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if found := report(exitInternal); found["trusted proxies"]["state"] != stateFail {
		t.Errorf("a proxy that is not trusted: %v", found["trusted proxies"])
	}
}
