package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func TestSecret_isNotPrinted(t *testing.T) {
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

func TestMasterKey_hexOrBase64(t *testing.T) {
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

func TestKeyFile_createdOnce(t *testing.T) {
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

// TestTags_matchTheParser checks that the command line library reads the tags as we intend.
func TestTags_matchTheParser(t *testing.T) {
	t.Setenv("MAKOLA_TRUSTED_PROXIES", "10.0.0.0/8,fd00::/8")
	t.Setenv("MAKOLA_MTN_COLLECTION_KEY", "abc")
	t.Setenv("MAKOLA_HUBTEL_CLIENT_ID", "id")
	t.Setenv("MAKOLA_HUBTEL_STATUS_NOT_KNOWN", "404:3000,200:2001")
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
	if got := server.Hubtel.StatusNotKnown; !slices.Equal(got, []Reply{{404, "3000"}, {200, "2001"}}) || server.Hubtel.SendStatusNotKnown != nil {
		t.Errorf("not known is %v, and of payouts %v", got, server.Hubtel.SendStatusNotKnown)
	}
	if !server.Production() {
		t.Error("a listener on every address counts as development")
	}
}

func TestFolder_default(t *testing.T) {
	t.Setenv("MAKOLA_DATA", "") // restores the variable at the end
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

func TestMode_publicListenerIsProduction(t *testing.T) {
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
	if got := len(Server{MTN: MTN{URL: "x"}, Hubtel: Hubtel{ClientID: "x"}, Ephemeral: true, TLSCert: "x"}.Missing()); got != 10 {
		t.Errorf("%d things are missing, want 10", got)
	}
	if all := strings.Join(Server{}.Missing(), "\n"); !strings.Contains(all, "a provider: ") {
		t.Errorf("production without a provider only lacks %s", all)
	}
	whole := Server{Secret: drawn(t), Sim: "http://127.0.0.1:8090", PublicURL: "https://pay.example", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	if got := whole.Missing(); got != nil {
		t.Errorf("a whole configuration lacks %v", got)
	}
}

// drawn returns a master key as an operator creates one.
func drawn(t *testing.T) Secret {
	t.Helper()
	sum := sha256.Sum256([]byte("as good as random"))
	secret, err := NewSecret(sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// A server with a credential for live money is a production server, on whatever address it listens.
func TestMode_liveCredentialsAreProduction(t *testing.T) {
	local := Server{Environment: "development", Listen: "127.0.0.1:8080", MetricsListen: "off"}
	for want, change := range map[string]func(*Server){
		"MTN":             func(s *Server) { s.MTN.URL = "https://momo.example" },
		"Hubtel":          func(s *Server) { s.Hubtel.ClientID = "shop" },
		"an SMS operator": func(s *Server) { s.SMPP.Address = "127.0.0.1:2775" },
	} {
		s := local
		change(&s)
		if why := s.WhyProduction(); !s.Production() || !strings.Contains(why, want) {
			t.Errorf("with an account of %s: %q", want, why)
		}
	}
	if why := local.WhyProduction(); why != "" {
		t.Errorf("without an account: %q", why)
	}
}

// A setting that is not given has the default of the mode.
func TestMode_defaults(t *testing.T) {
	local, live := Server{Listen: "127.0.0.1:1", MetricsListen: "off"}, Server{Environment: "production"}
	if local.PerMinute() != 0 || local.Notice() != 0 || live.PerMinute() != 60_000 || live.Notice() != 10*time.Second {
		t.Errorf("development has %d and %v, production %d and %v", local.PerMinute(), local.Notice(), live.PerMinute(), live.Notice())
	}
	for _, s := range []Server{local, live} {
		if s.GeneralLimit, s.DrainNotice = new(int64(7)), new(time.Minute); s.PerMinute() != 7 || s.Notice() != time.Minute {
			t.Errorf("what was said is %d and %v", s.PerMinute(), s.Notice())
		}
	}
}

// Production refuses these settings although they are set.
func TestProduction_refusesUnsafeSettings(t *testing.T) {
	whole := Server{Environment: "production", Listen: "127.0.0.1:1", Secret: drawn(t), PublicURL: "https://pay.example",
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fc00::/7")},
		MTN:            MTN{URL: "https://momo.example", CollectionUser: "u", CollectionKey: "k", CollectionAPIKey: "k"},
		Hubtel:         Hubtel{ClientID: "x", ClientSecret: "x", Prepaid: "1", SendURL: "http://127.0.0.1:8090", ReceiveURL: "http://[::1]:8090"},
	}
	if got := whole.Missing(); got != nil {
		t.Fatalf("a whole configuration lacks %v", got)
	}
	proxies := func(text string) func(*Server) {
		return func(s *Server) { s.TrustedProxies = append(s.TrustedProxies, netip.MustParsePrefix(text)) }
	}
	key := func(fill func(i int) byte) func(*Server) {
		bytes := make([]byte, SecretBytes)
		for i := range bytes {
			bytes[i] = fill(i)
		}
		return func(s *Server) { s.Secret, _ = NewSecret(bytes) }
	}
	for name, refused := range map[string]struct {
		change func(*Server)
		want   string
	}{
		"every address is a proxy":     {proxies("0.0.0.0/0"), "MAKOLA_TRUSTED_PROXIES"},
		"half of them are":             {proxies("128.0.0.0/1"), "MAKOLA_TRUSTED_PROXIES"},
		"every IPv6 address is":        {proxies("::/0"), "MAKOLA_TRUSTED_PROXIES"},
		"a key of one byte":            {key(func(int) byte { return 0 }), "random"},
		"a key of two":                 {key(func(i int) byte { return byte(i % 2) }), "random"},
		"a key that counts":            {key(func(i int) byte { return byte(i * 7) }), "random"},
		"a key that is text":           {key(func(i int) byte { return "correct horse battery staple 12345"[i] }), "random"},
		"MTN without TLS":              {func(s *Server) { s.MTN.URL = "http://momo.example" }, "MAKOLA_MTN_URL"},
		"a host of Hubtel without TLS": {func(s *Server) { s.Hubtel.ServicesURL = "http://10.0.0.1" }, "MAKOLA_HUBTEL_SERVICES_URL"},
		"metrics for everybody":        {func(s *Server) { s.MetricsListen = "0.0.0.0:9090" }, "MAKOLA_METRICS_TOKEN"},
		"with a guessable token":       {func(s *Server) { s.MetricsListen, s.MetricsToken = "0.0.0.0:9090", "short" }, "MAKOLA_METRICS_TOKEN"},
	} {
		s := whole
		refused.change(&s)
		if got := s.Missing(); len(got) != 1 || !strings.Contains(got[0], refused.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if whole.MetricsListen, whole.MetricsToken = "0.0.0.0:9090", "0123456789abcdef"; whole.Missing() != nil {
		t.Errorf("with a token: %v", whole.Missing())
	}
}

// A key file that others can read is refused.
func TestKeyFile_refusesReadableByOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	if CheckSecretFile(path) == nil {
		t.Error("a file that is not there is good")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o640: true, 0o644: false, 0o660: false, 0o602: false, 0o444: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := CheckSecretFile(path); (err == nil) != good {
			t.Errorf("%04o: %v", mode, err)
		}
	}
}

func TestSettings_allErrorsListed(t *testing.T) {
	good := Server{PublicURL: "https://pay.example/makola/", Sim: "http://127.0.0.1:8090/sim/v1", Origins: []string{"https://shop.example", "http://localhost:3000/"},
		Listen: ":8080", MetricsListen: "off", DrainNotice: new(time.Duration(0)), BootstrapEmail: "ama@pay.example", BootstrapFile: "password"}
	for _, s := range []Server{{}, good} {
		if wrong := s.Wrong(); wrong != nil {
			t.Errorf("%+v has %v", s, wrong)
		}
	}
	for _, s := range []Server{
		{PublicURL: "pay.example"}, {PublicURL: "https://"}, {PublicURL: "https://:443"}, {PublicURL: "ftp://pay.example"}, {PublicURL: "https://pay.example?x"},
		{PublicURL: "https://ama:secret@pay.example"}, {PublicURL: "https://pay.example/#"}, {Sim: "127.0.0.1:8090"}, {Sim: "http://[::1"},
		{Origins: []string{"*"}}, {Origins: []string{"https://shop.example", "https://shop.example/cart"}}, {GeneralLimit: new(int64(-1))},
		{Listen: "8080"}, {Listen: "127.0.0.1"}, {MetricsListen: "on"},
		{Listen: "127.0.0.1:99999"}, {Listen: ":-1"}, {MetricsListen: "127.0.0.1:65536"},
		{Egress: Egress{URL: "proxy.example:3128"}}, {Egress: Egress{URL: "socks5://proxy.example:1080"}}, {Egress: Egress{URL: "http://proxy.example:3128", Except: []string{"bank.example", "10.0.0.0/33"}}},
		{DrainNotice: new(-time.Second)}, {DrainFor: -time.Second}, {BootstrapEmail: "ama@pay.example"},
	} {
		if wrong := s.Wrong(); len(wrong) != 1 {
			t.Errorf("%+v has %v", s, wrong)
		}
	}
}

// If the URL of a proxy is unusable, the error names its setting but not the URL, which may contain a password.
func TestEgress_keepsThePassword(t *testing.T) {
	t.Parallel()
	for _, raw := range []Credential{"http://ama:hunter2@proxy.example", "ama:hunter2@proxy.example:3128", "http://ama:hunter2@proxy.example:3128/x"} {
		s := Server{Egress: Egress{URL: raw}}
		_, err := s.Egress.Proxy(nil)
		if text := fmt.Sprint(s.Wrong(), err, s); strings.Contains(text, "hunter2") || !strings.Contains(text, "in MAKOLA_PROXY") || err == nil {
			t.Errorf("%s", text)
		}
	}
	s := Server{Egress: Egress{URL: "https://ama:hunter2@proxy.example:3129", Except: []string{"bank.example", "10.0.0.0/8"}}}
	p, err := s.Egress.Proxy(nil)
	if wrong := s.Wrong(); wrong != nil || err != nil || p.Address() != "proxy.example:3129" || p.Through("bank.example:443") || !p.Through("momo.example:443") {
		t.Errorf("%+v, %v, %v", p, err, wrong)
	}
}

func TestReply_isStatusAndCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Reply{"404:3000": {404, "3000"}, " 200 : failed ": {200, "failed"}} {
		var r Reply
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want || r.UnmarshalText([]byte(want.String())) != nil {
			t.Errorf("%q is %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "404", "404:", ":3000", "3000:404", "401:x", "403:x", "429:x", "500:5000", "301:x"} {
		if err := new(Reply).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// TestHubtel_needsAPublicURL: the public URL must be reachable from outside, because Hubtel refuses every order
// without a callback URL.
func TestHubtel_needsAPublicURL(t *testing.T) {
	t.Parallel()
	server := Server{Hubtel: Hubtel{ClientID: "x", ClientSecret: "y", POSSales: "1"}}
	for public, lacks := range map[string]bool{"": true, "https://127.0.0.1:8443": true, "https://localhost": true, "https://pay.example": false} {
		server.PublicURL = public
		if got := strings.Contains(strings.Join(server.Missing(), "\n"), "a public URL that Hubtel reaches"); got != lacks {
			t.Errorf("%q: it is missing: %v", public, got)
		}
	}
	sells := Hubtel{ClientID: "x", ClientSecret: "y", Prepaid: "2", Commission: "2"}
	if all := strings.Join(sells.Missing(), "\n"); !strings.Contains(all, "MAKOLA_HUBTEL_POS_SALES") {
		t.Errorf("who sells and cannot ask lacks %q", all)
	}
}

// A secret is read only from a regular file of limited size. A link is followed, because platforms provide secrets as
// links.
func TestReadSecretFile_regularFilesAlone(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "key"), filepath.Join(folder, "link")
	write := func(bytes int) {
		t.Helper()
		if err := os.WriteFile(path, make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(maxSecretFile)
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	for _, good := range []string{path, link} {
		if text, err := ReadSecretFile(good); err != nil || len(text) != maxSecretFile {
			t.Errorf("%s: %d bytes, %v", good, len(text), err)
		}
		if err := CheckSecretFile(good); err != nil {
			t.Error(err)
		}
	}
	if CheckOwnFile(link) == nil {
		t.Error("a link is an own file")
	}
	if err := CheckOwnFile(filepath.Join(folder, "none")); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{folder, os.DevNull} {
		if _, err := ReadSecretFile(bad); err == nil {
			t.Errorf("%s is read", bad)
		}
		if CheckSecretFile(bad) == nil || CheckOwnFile(bad) == nil {
			t.Errorf("%s passes", bad)
		}
	}
	write(maxSecretFile + 1)
	if _, err := ReadSecretFile(path); err == nil {
		t.Error("a file beyond the limit is read")
	}
}

// Production refuses each secret file that others can read, and names its setting.
func TestMissing_namesReadableSecretFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("[]"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := Server{TLSKey: path, BootstrapFile: path, SMPP: SMPP{File: path}}
	all := strings.Join(s.Missing(), "\n")
	for _, setting := range []string{"MAKOLA_TLS_KEY", "MAKOLA_BOOTSTRAP_PASSWORD_FILE", "MAKOLA_SMPP_FILE"} {
		if !strings.Contains(all, "a file in "+setting+" that only you can read") {
			t.Errorf("%s: %s", setting, all)
		}
	}
}
