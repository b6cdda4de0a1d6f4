package config

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestSecretNeverPrints(t *testing.T) {
	key := bytes.Repeat([]byte("k"), SecretBytes)
	s, err := NewSecret(key)
	if err != nil {
		t.Fatal(err)
	}
	c := Credential("hunter2-hunter2")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "s", s, "c", c, "both", struct {
		S Secret
		C Credential
	}{s, c})
	asJSON, err := json.Marshal(map[string]any{"s": s, "c": c})
	if err != nil {
		t.Fatal(err)
	}
	all := log.String() + string(asJSON) + fmt.Sprintf("%v %+v %#v %s %x %q %d", s, s, s, s, s, s, s) +
		fmt.Sprintf("%v %+v %#v %s %x %q", c, c, c, c, c, c) + fmt.Sprintf("%+v %#v", Server{Secret: s}, MTN{CollectionKey: c})
	for _, leak := range []string{"kkkk", "hunter2", hex.EncodeToString(key)[:8], "107 107", hex.EncodeToString([]byte("hunter2")), base64.StdEncoding.EncodeToString(key)[:8]} {
		if strings.Contains(all, leak) {
			t.Errorf("%q shows in %s", leak, all)
		}
	}
	if c.Reveal() != "hunter2-hunter2" {
		t.Error("Reveal hides")
	}
}

func TestParseSecret(t *testing.T) {
	key := make([]byte, SecretBytes)
	for i := range key {
		key[i] = byte(i * 7)
	}
	want, _ := NewSecret(key)
	for _, text := range []string{hex.EncodeToString(key), " " + base64.StdEncoding.EncodeToString(key) + "\n", base64.RawURLEncoding.EncodeToString(key)} {
		got, err := ParseSecret(text)
		if err != nil || !bytes.Equal(got.Derive("x"), want.Derive("x")) {
			t.Errorf("ParseSecret(%q): %v", text, err)
		}
	}
	for _, text := range []string{"", "short", hex.EncodeToString(key[:31]), "!!!"} {
		if _, err := ParseSecret(text); err == nil {
			t.Errorf("ParseSecret(%q) took it", text)
		}
	}
	if bytes.Equal(want.Derive("a"), want.Derive("b")) || len(want.Derive("a")) != 32 {
		t.Error("labels do not make keys of their own")
	}
}

func TestSecretFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "master.key")
	if _, err := SecretFile(path, false); err == nil {
		t.Fatal("a missing file was no error")
	}
	made, err := SecretFile(path, true)
	if err != nil {
		t.Fatal(err)
	}
	read, err := SecretFile(path, true)
	if err != nil || !bytes.Equal(made.Derive("x"), read.Derive("x")) {
		t.Fatalf("the second start has another key (%v)", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file is %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("zz"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := SecretFile(path, true); err == nil {
		t.Fatal("a broken file was replaced or taken")
	}
}

// TestKong holds the tags to what the command line library makes of them.
func TestKong(t *testing.T) {
	t.Setenv("MAKOLA_TRUSTED_PROXIES", "10.0.0.0/8,fd00::/8")
	t.Setenv("MAKOLA_MTN_COLLECTION_KEY", "abc")
	t.Setenv("MAKOLA_HUBTEL_CLIENT_ID", "id")
	var server Server
	parser, err := kong.New(&server)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--listen", ":0", "--mtn-url", "http://x", "--data", "d"}); err != nil {
		t.Fatal(err)
	}
	if len(server.TrustedProxies) != 2 || server.TrustedProxies[1] != netip.MustParsePrefix("fd00::/8") {
		t.Errorf("proxies are %v", server.TrustedProxies)
	}
	if server.MTN.CollectionKey.Reveal() != "abc" || server.MTN.URL != "http://x" || server.MTN.Currency != "GHS" {
		t.Errorf("MTN is %+v", server.MTN)
	}
	if server.Hubtel.ClientID != "id" || server.Hubtel.SendURL != "https://smp.hubtel.com" || server.Data != "d" {
		t.Errorf("server is %+v", server)
	}
	if !server.Production() {
		t.Error("a listener on every address counts as development")
	}
}

func TestTheDefaultFolder(t *testing.T) {
	t.Setenv("MAKOLA_DATA", "") // and back at the end
	if err := os.Unsetenv("MAKOLA_DATA"); err != nil {
		t.Fatal(err)
	}
	var storage Storage
	parser, err := kong.New(&storage)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(nil); err != nil || storage.Data != DefaultData {
		t.Errorf("the folder is %q, %v", storage.Data, err)
	}
}

func TestProduction(t *testing.T) {
	local := Server{Environment: "development", Listen: "127.0.0.1:8080", MetricsListen: "localhost:9"}
	if local.Production() {
		t.Error("loopback counts as production")
	}
	for _, off := range []string{"off", ""} {
		if local.MetricsListen = off; local.Production() || local.Metrics() {
			t.Errorf("without metrics (%q): production %v, metrics %v", off, local.Production(), local.Metrics())
		}
	}
	for _, s := range []Server{
		{Environment: "production", Listen: "127.0.0.1:1"}, {Listen: "0.0.0.0:1"}, {Listen: ":1"}, {Listen: "[::]:1"},
		{Listen: "[::1]:1", MetricsListen: "10.0.0.1:1"},
	} {
		if !s.Production() {
			t.Errorf("%+v counts as development", s)
		}
	}
	if got := len(Server{MTN: MTN{URL: "x"}, Hubtel: Hubtel{ClientID: "x"}, Ephemeral: true, TLSCert: "x"}.Missing()); got != 8 {
		t.Errorf("%d things are missing, want 8", got)
	}
	if all := strings.Join(Server{}.Missing(), "\n"); !strings.Contains(all, "a provider: ") {
		t.Errorf("production without a provider only lacks %s", all)
	}
	secret, _ := NewSecret(make([]byte, SecretBytes))
	whole := Server{Secret: secret, Sim: "http://127.0.0.1:8090", PublicURL: "https://pay.example", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	if got := whole.Missing(); got != nil {
		t.Errorf("a whole configuration lacks %v", got)
	}
}

func TestWrongSettings(t *testing.T) {
	good := Server{PublicURL: "https://pay.example/makola/", Sim: "http://127.0.0.1:8090/sim/v1", Origins: []string{"https://shop.example", "http://localhost:3000/"},
		Listen: ":8080", MetricsListen: "off"}
	for _, s := range []Server{{}, good} {
		if wrong := s.Wrong(); wrong != nil {
			t.Errorf("%+v has %v", s, wrong)
		}
	}
	for _, s := range []Server{
		{PublicURL: "pay.example"}, {PublicURL: "https://"}, {PublicURL: "https://:443"}, {PublicURL: "ftp://pay.example"}, {PublicURL: "https://pay.example?x"},
		{PublicURL: "https://ama:secret@pay.example"}, {PublicURL: "https://pay.example/#"}, {Sim: "127.0.0.1:8090"}, {Sim: "http://[::1"},
		{Origins: []string{"*"}}, {Origins: []string{"https://shop.example", "https://shop.example/cart"}}, {GeneralLimit: -1},
		{Listen: "8080"}, {Listen: "127.0.0.1"}, {MetricsListen: "on"},
	} {
		if wrong := s.Wrong(); len(wrong) != 1 {
			t.Errorf("%+v has %v", s, wrong)
		}
	}
}
