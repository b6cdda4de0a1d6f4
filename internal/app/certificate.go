package app

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookAgain is how often handshakes check whether the files of a certificate have changed.
const lookAgain = time.Second

// certificate is a certificate with its key from two PEM files. After a renewal replaces the files, new connections
// get the new certificate.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	stamp  [2]time.Time // change times of the files when they were last read
	looked time.Time
}

// load reads both files.
func (c *certificate) load() error {
	c.stamp = c.stamps()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.pair = &pair
	}
	return err
}

// stamps returns the times at which the files were changed.
func (c *certificate) stamps() (stamp [2]time.Time) {
	for i, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			stamp[i] = info.ModTime()
		}
	}
	return stamp
}

// get implements tls.Config.GetCertificate. If the files cannot be used, such as while one of them is not yet
// written, get keeps the previous certificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookAgain {
		c.looked = now
		if c.stamps() != c.stamp {
			if err := c.load(); err != nil {
				c.log.Warn("failed to reload TLS certificate, keeping previous one", "error", err)
			} else {
				c.log.Info("reloaded TLS certificate", "not_after", c.pair.Leaf.NotAfter)
			}
		}
	}
	return c.pair, nil
}
