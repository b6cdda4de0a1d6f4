package notice

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/mailtest"
)

// eximConf makes exim accept mails only with TLS and a password, greylist the first recipient, and refuse nobody@ as unknown.
var eximConf = template.Must(template.New("").Parse(`primary_hostname = mail.test
spool_directory = {{.Folder}}/spool
log_file_path = {{.Folder}}/spool/%slog
pid_file_path = {{.Folder}}/spool/exim.pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = {{.Port}}
tls_advertise_hosts = *
tls_certificate = {{.Folder}}/cert.pem
tls_privatekey = {{.Folder}}/key.pem
auth_advertise_hosts = *
acl_smtp_rcpt = rcpt
qualify_domain = mail.test
keep_environment =
begin acl
rcpt:
  require authenticated = *
  deny local_parts = nobody
       message = 5.1.1 no such user
  defer condition = ${if !exists{ {{- .Folder}}/spool/seen}}
        set acl_m_x = ${run{/usr/bin/touch {{.Folder}}/spool/seen}}
        message = 4.7.1 greylisted
  accept
begin routers
all:
  driver = accept
  transport = box
begin transports
box:
  driver = appendfile
  file = {{.Folder}}/spool/mails
  user = {{.User}}
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if and{ {eq{$auth2}{makola}} {eq{$auth3}{secret}} }}
  server_advertise_condition = ${if def:tls_in_cipher}
`))

// exim starts a real mail server, which stops with the test. It returns the server's settings and the file of its mails.
func exim(t *testing.T) (s config.SMTP, mails string) {
	t.Helper()
	found, err := exec.Command("../../scripts/smtp.sh").Output()
	if err != nil {
		t.Fatal("there is no mail server: run scripts/smtp.sh")
	}
	folder, err := os.MkdirTemp("", "makola-exim-") // exim's user cannot enter the folder of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	account := owner(t, folder)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	certificate(t, folder, account)
	var conf bytes.Buffer
	if err := eximConf.Execute(&conf, map[string]any{"Folder": folder, "Port": port, "User": account.Username}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "exim.conf"), conf.Bytes(), 0o644)
	write(t, filepath.Join(folder, "password"), []byte("secret\n"), 0o600)
	c := exec.Command(strings.TrimSpace(string(found)), "-C", filepath.Join(folder, "exim.conf"), "-bdf", "-q1s")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	clocktest.Await(t, "exim", func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return config.SMTP{Host: "localhost", Port: port, From: "Makola <notices@mail.test>", TLS: "starttls", CA: filepath.Join(folder, "cert.pem"), User: "makola", PasswordFile: filepath.Join(folder, "password")},
		filepath.Join(folder, "spool", "mails")
}

// owner returns the folder of the spool to the user that exim runs as.
func owner(t *testing.T, folder string) *user.User {
	t.Helper()
	account, err := user.Current()
	if err == nil && os.Getuid() == 0 {
		account, err = user.Lookup("Debian-exim")
	}
	if err != nil {
		t.Fatalf("exim has no user of its own: %v", err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "spool"), 0o755); err != nil {
		t.Fatal(err)
	}
	chown(t, filepath.Join(folder, "spool"), account)
	return account
}

func chown(t *testing.T, path string, to *user.User) {
	t.Helper()
	uid, _ := strconv.Atoi(to.Uid)
	gid, _ := strconv.Atoi(to.Gid)
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, text []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, text, mode); err != nil {
		t.Fatal(err)
	}
}

// certificate makes the certificate of localhost.
func certificate(t *testing.T, folder string, to *user.User) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o644)
	write(t, filepath.Join(folder, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)
	chown(t, filepath.Join(folder, "key.pem"), to)
}

// A real mail server greylists a mail first, and then accepts it with STARTTLS and a password. It refuses an unknown recipient
// permanently. A wrong password does not end a message.
func TestDeliver_realMailServer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		settings, mails := exim(t)
		f := quick(node(t, d, mailtest.Start(t, nil), clock.Real()))
		f.SMTP = settings
		f.start()
		f.person("ama@mail.test", roles.Owner)
		f.person("nobody@mail.test", roles.Owner)
		f.report(1)
		f.until("the ends of the messages", func() bool { all := f.states(); return all[Sent] == 1 && all[Failed] == 1 })
		var text string
		f.until("the mail", func() bool {
			raw, _ := os.ReadFile(mails)
			text = string(raw)
			return strings.Contains(text, "Nothing can be approved")
		})
		for _, want := range []string{"esmtpsa", "TLS1.3", "Subject: Makola: The outcome of a payment is unknown", "To: <ama@mail.test>", "Auto-Submitted: auto-generated", "@mail.test>"} {
			if !strings.Contains(text, want) {
				t.Errorf("the mail lacks %q:\n%s", want, text)
			}
		}
		if n := strings.Count(text, "Message-ID:"); n != 1 {
			t.Errorf("%d mails", n)
		}
		if err := Probe(t.Context(), settings); err != nil {
			t.Error(err)
		}
		wrong := settings
		wrong.PasswordFile = filepath.Join(t.TempDir(), "password")
		write(t, wrong.PasswordFile, []byte("other\n"), 0o600)
		if err := Probe(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "535") {
			t.Errorf("a wrong password: %v", err)
		}
		untrusted := settings
		untrusted.CA = ""
		if err := Probe(t.Context(), untrusted); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("an unknown authority: %v", err)
		}
	})
}
