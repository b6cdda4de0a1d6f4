package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/test/clocktest"
)

// asProgram is the variable that makes this binary run as the program itself: a simulator with this data folder.
const asProgram = "CLI_TEST_AS_PROGRAM"

// TestMain returns every command the master key of the tests; a test that sets another variable runs alone.
func TestMain(m *testing.M) {
	if folder := os.Getenv(asProgram); folder != "" {
		os.Exit(Run([]string{"sim", "--listen", "127.0.0.1:0", "--data", folder, "--ready-file", filepath.Join(folder, "ready")}, os.Stdout, os.Stderr))
	}
	if err := os.Setenv(config.EnvMasterKey, testMasterKey); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// If the reader of the log or the terminal ends, the server continues. It ends in order, and only after a signal to stop.
func TestServe_outlivesItsLog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), asProgram+"="+folder)
	command.Stderr = w
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	}()
	for _, end := range []*os.File{r, w} { // the program has its own copy of w
		if err := end.Close(); err != nil {
			t.Fatal(err)
		}
	}
	clocktest.Await(t, "the simulator", func() bool {
		_, err := os.Stat(filepath.Join(folder, "ready"))
		return err == nil
	})
	stop := syscall.SIGHUP
	if signal.Ignored(stop) { // the command then ignores the signal, too
		stop = syscall.SIGTERM
	}
	if err := command.Process.Signal(stop); err != nil {
		t.Fatal(err)
	}
	err = command.Wait() // it logs the drain
	ended = true
	if err != nil {
		t.Errorf("after %v: %v", stop, err)
	}
}
