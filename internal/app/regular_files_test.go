package app

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

// Every answer of a production server behind TLS tells browsers to use only TLS. Development has no TLS.
func TestAnswers_demandTLS(t *testing.T) {
	t.Parallel()
	b := produce(t)
	for _, path := range []string{"/sign-in", "/docs", "/api/v1/nothing", "/healthz"} {
		if got := b.get(path).Header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := browse(t).do(http.MethodGet, "/sign-in", nil).Header.Get("Strict-Transport-Security"); got != "" {
		t.Errorf("development: %q", got)
	}
}

// A ready file replaces only a regular file. A server removes it when it stops, unless another server has written it since.
func TestReadyFile_isARegularFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path, link := filepath.Join(folder, "ready"), filepath.Join(folder, "link")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Skip(err)
	}
	ours, other := Ready{APIKey: "ours"}, Ready{APIKey: "another"}
	for _, bad := range []string{link, folder} {
		if err := checkPlace(bad); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
		if err := ours.write(bad); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := ours.write(path); err != nil {
		t.Fatal(err)
	}
	if err := other.remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal("another server's file is gone")
	}
	if err := ours.remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal("the ready file stays")
	}
	b := browse(t, func(c *config.Server) { c.ReadyFile = path })
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal("the ready file of a stopped server stays")
	}
}
