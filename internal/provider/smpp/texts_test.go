package smpp_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/smpp"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/smsc"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/providertest"
)

// The client of message centres must follow the same rules as providers over HTTP: if a message may be sent again, it
// was not accepted.
func TestTextSender_conforms(t *testing.T) {
	centre := smsc.New(smsc.Options{})
	s, err := sim.New(sim.Options{Clock: clock.Real()}, centre.Join)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- centre.Serve(listener) }()
	centre.CountSegments(true)
	bind := smpp.Bind{Name: "one", Address: listener.Addr().String(), SystemID: "makola", Password: centre.Account().Password, AnswerTimeout: 300 * time.Millisecond}
	options := smpp.Options{Binds: []smpp.Bind{bind}, Clock: clock.Real(), Log: slog.New(slog.DiscardHandler),
		Receipt: func(context.Context, provider.Receipt) func() error { return func() error { return nil } }}
	client := smpp.New(options)
	options.Binds = []smpp.Bind{{Name: "nowhere", Address: providertest.Nowhere(t), SystemID: "makola"}}
	nowhere := smpp.New(options)
	client.Start(t.Context())
	nowhere.Start(t.Context())
	t.Cleanup(func() {
		client.Stop(context.Background())
		nowhere.Stop(context.Background())
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	send := func(c *smpp.Client, bound bool) func(context.Context, msisdn.MSISDN, string) provider.Outcome {
		return func(ctx context.Context, to msisdn.MSISDN, text string) provider.Outcome {
			if bound {
				clocktest.Await(t, "a bind", func() bool { return c.Ready("") == nil })
			}
			encoded := smstext.Encode(text)
			out := make(chan provider.Outcome, len(encoded.Segments))
			for i, octets := range encoded.Segments {
				c.Submit(ctx, provider.Segment{From: "Kejetia", To: to, Encoding: encoded.Encoding, Octets: octets, Part: i + 1, Parts: len(encoded.Segments), Group: 7},
					func(o provider.Outcome) { out <- o })
			}
			return <-out
		}
	}
	providertest.TextSender(t, providertest.TextBench{
		Send: send(client, true), Unreachable: send(nowhere, false), Clear: s.ClearFaults,
		Fault: func(fault string) {
			if err := s.Inject(sim.Fault{Provider: smsc.Name, Operation: sim.OpSubmit, Kind: sim.FaultKind(fault), Count: 1}); err != nil {
				t.Fatal(err)
			}
		},
		Taken: func(to msisdn.MSISDN) (n int) {
			for _, x := range centre.SegmentsTo(string(to)) {
				if x.Part == 1 {
					n += x.Accepted
				}
			}
			return n
		},
	})
}
