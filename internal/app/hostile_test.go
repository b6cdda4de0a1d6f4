package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
)

// certificate writes a certificate of this machine with its key, and gives the two paths.
func certificate(t *testing.T, folder string, serial int64) (cert, key string) {
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

// startLocal starts a development server on free ports, for as long as the test runs.
func startLocal(t *testing.T, change func(*config.Server)) *App {
	t.Helper()
	cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", MetricsListen: "off", Storage: config.Storage{Data: t.TempDir()}, DrainFor: time.Minute}
	if change != nil {
		change(&cfg)
	}
	a, err := Start(t.Context(), cfg, Options{Log: slog.New(slog.DiscardHandler)})
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

// Two hundred bodies that never end, from somebody without a key, are refused before they are read: by connections of
// their own, and as streams of one.
func TestBodiesWithoutAKeyCostNoMemory(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t, t.TempDir(), 1)
	a := startLocal(t, func(c *config.Server) { c.TLSCert, c.TLSKey = cert, key })
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: protocol == "HTTP/2.0"}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: time.Minute}
			const bodies = 200
			answered := make(chan string, bodies)
			for range bodies {
				go func() {
					body, more := io.Pipe() // 1 MB, and no end
					defer more.Close()
					go func() { _, _ = more.Write(make([]byte, 1<<20)) }()
					answer, err := client.Post(a.ready.APIURL+"/sms-api/contact/addBulkContact", "application/json", body)
					if err != nil {
						answered <- err.Error()
						return
					}
					_ = answer.Body.Close()
					answered <- answer.Proto + " " + answer.Status
				}()
			}
			for range bodies {
				if got := <-answered; got != protocol+" 401 Unauthorized" {
					t.Fatalf("answered %s", got)
				}
			}
		})
	}
}
