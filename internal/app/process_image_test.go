//go:build !race

// The program in the image is built as it ships.

package app_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/makola/makola/internal/test/clocktest"
)

// The image has no shell and no privileged user. A server starts in it, keeps its data, and passes its health check.
func TestImage_servesAndIsHealthy(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Fatal("buildah is not here; scripts/tools.sh gets it")
	}
	store := t.TempDir()
	flags := []string{"--root=" + filepath.Join(store, "root"), "--runroot=" + filepath.Join(store, "run"), "--storage-driver=vfs"}
	run := func(name string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Env = append(c.Environ(), "IMAGE_BUILDER=buildah", "BUILDAH_FLAGS="+strings.Join(flags, " "), "IMAGE_TREE="+filepath.Join(store, "tree"))
		out, err := c.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	must := func(name string, args ...string) string {
		t.Helper()
		out, err := run(name, args...)
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return out
	}
	must("../../scripts/image.sh", "0.1.0~test")
	container := must("buildah", append(flags, "from", "--pull-never", "localhost/makola:0.1.0-test")...)
	address := freeAddress(t)
	within := func(args ...string) []string {
		return append(append(flags, "run", "--isolation=chroot", "--env=MAKOLA_LISTEN="+address, "--env=MAKOLA_METRICS_LISTEN=off", container, "--", "/usr/bin/makola"), args...)
	}
	if said := must("buildah", within("version")...); !strings.Contains(said, "makola 0.1.0~test,") {
		t.Errorf("the program says %s", said)
	}
	said := &tail{}
	server := exec.Command("buildah", within("serve")...)
	server.Stdout, server.Stderr = said, said
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGTERM) // the server in it, too
		_ = server.Wait()
		if t.Failed() {
			t.Logf("the server printed:\n%s", said)
		}
	})
	clocktest.Await(t, "the server to be well", func() bool { _, err := run("buildah", within("health")...); return err == nil })
	if out, err := run("buildah", within("health", "--listen", freeAddress(t))...); err == nil {
		t.Errorf("where there is no server it says %s", out)
	}
	if list := must("buildah", append(flags, "inspect", "--format={{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}", container)...); list != "10001:10001 [/usr/bin/makola] [serve]" {
		t.Errorf("the image is run as %s", list)
	}
	if check := must("buildah", append(flags, "inspect", "--type=image", "--format={{.Docker.Config.Healthcheck.Test}}", "localhost/makola:0.1.0-test")...); check != "[CMD /usr/bin/makola health]" {
		t.Errorf("its health check is %s", check)
	}
}
