package app

import (
	"context"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/clocktest"
)

// TestNotKnown_checkedAtStart: at its start a server queries every status interface for an unknown reference. It recognises the
// answers of the simulated providers.
func TestNotKnown_checkedAtStart(t *testing.T) {
	t.Parallel()
	a, err := Start(t.Context(), config.Server{Environment: "development", Listen: "127.0.0.1:0", Ephemeral: true, DrainFor: time.Minute}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var said []route.Status
	clocktest.Await(t, "every status interface to be asked", func() bool {
		list, err := a.routes.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said = said[:0]
		asked := map[string]int{}
		for _, s := range list {
			if s.NotKnown != nil {
				said = append(said, s)
				asked[s.Provider]++
			}
		}
		return asked["mtn"] == 3 && asked["hubtel"] == 5 && asked["paystack"] >= 2 // operations
	})
	for _, s := range said {
		if s.NotKnown.State != route.Understood {
			t.Errorf("%s %s: %+v", s.Provider, s.Operation, s.NotKnown)
		}
	}
}
