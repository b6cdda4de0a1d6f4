package provider

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
)

func TestCallbackPath_isPerProvider(t *testing.T) {
	one, _ := config.NewSecret(make([]byte, config.SecretBytes))
	two, _ := config.NewSecret([]byte(strings.Repeat("k", config.SecretBytes)))
	seen := map[string]bool{}
	for _, s := range []config.Secret{one, two} {
		for _, r := range []Rail{{Name: "mtn", Mode: "test"}, {Name: "mtn", Mode: "live"}, {Name: "hubtel", Mode: "test"}} {
			path := CallbackPath(s, r)
			if !strings.HasPrefix(path, "/callbacks/"+r.Name+"/") || len(path) != len("/callbacks/"+r.Name+"/")+32 {
				t.Errorf("%v answers at %q", r, path)
			}
			token := path[strings.LastIndex(path, "/"):]
			if seen[token] {
				t.Errorf("%v shares its token", r)
			}
			seen[token] = true
			if again := CallbackPath(s, r); again != path {
				t.Errorf("%v moved from %q to %q", r, path, again)
			}
		}
	}
}
