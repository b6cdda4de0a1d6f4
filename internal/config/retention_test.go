package config

import (
	"strings"
	"testing"
	"time"
)

func TestRetention_refusesTooShort(t *testing.T) {
	good := Retention{Exchanges: 24 * time.Hour, Requests: 24 * time.Hour, Webhooks: 24 * time.Hour, OTPs: 24 * time.Hour, Incoming: 24 * time.Hour}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Retention){
		"--keep-exchanges": func(r *Retention) { r.Exchanges-- }, "--keep-requests": func(r *Retention) { r.Requests = 0 },
		"--keep-webhooks": func(r *Retention) { r.Webhooks = -1 }, "--keep-otps": func(r *Retention) { r.OTPs-- },
		"--keep-texts": func(r *Retention) { r.Texts = time.Hour },
	} {
		r := good
		change(&r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}
