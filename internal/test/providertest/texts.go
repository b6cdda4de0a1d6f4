package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// TextSample is a recorded response of a provider of texts, with its source and grade, and what it means.
type TextSample struct {
	Name, Call, Grade, Source, Date, To string
	Status                              int
	Body                                json.RawMessage
	Want                                struct {
		Class, Reason, Code, Upstream, State string
		Clear, Other                         bool
	}
}

// TextSamples reads the recorded responses of the tested adapter.
func TextSamples(t *testing.T) (all []TextSample) {
	t.Helper()
	raw, err := os.ReadFile("testdata/texts.json")
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("%d samples, %v", len(all), err)
	}
	return all
}

// Answer is the response as an adapter gets it.
func (s TextSample) Answer() provider.Answer {
	return provider.Answer{Status: s.Status, Body: s.Body, Written: true}
}

// Check compares an outcome with the meaning of the sample. Only a sample of grade D may be a refusal or an
// acceptance.
func (s TextSample) Check(t *testing.T, o provider.Outcome) {
	t.Helper()
	w := s.Want
	if o.Class.String() != w.Class || o.Reason != w.Reason || o.Code != w.Code || o.UpstreamID != w.Upstream || o.Clear != w.Clear || o.TriesOther() != w.Other {
		t.Errorf("%s %s: %+v", s.Name, s.Source, o)
	}
	if (o.Clear || o.Class == provider.Accepted) && s.Grade != "D" {
		t.Errorf("%s: final by grade %s", s.Name, s.Grade)
	}
}

// TextBench is a sender of texts with its simulated provider. Faults have the simulator's names.
type TextBench struct {
	// Send sends a text and waits for its outcome; Unreachable does so where nothing listens.
	Send, Unreachable func(ctx context.Context, to msisdn.MSISDN, text string) provider.Outcome
	Fault             func(fault string)
	Clear             func()
	// Taken counts the texts to a number that the provider accepted.
	Taken func(to msisdn.MSISDN) int
	// Refusals are the documented refusals of an account that faults can arm; empty: there is none over this protocol.
	Refusals []string
	// Tamper changes the provider's responses; nil: there are none over HTTP.
	Tamper *Tamper
	// Exchanges returns the recorded exchanges; nil: none are recorded.
	Exchanges func() []provider.Exchange
	Secrets   []string
}

// TextSender holds a sender of texts to its role. Every outcome that allows the text to be sent again, or its price to be
// given back, is checked against the provider's own list: the provider must have taken nothing.
func TextSender(t *testing.T, b TextBench) {
	n := 0
	number := func() msisdn.MSISDN {
		n++
		return msisdn.MSISDN(fmt.Sprintf("2332455%05d", 10000+n))
	}
	t.Run("accepted once, with an id", func(t *testing.T) {
		for _, text := range []string{"hello", strings.Repeat("Akwaaba ", 30), "GH₵ 5 \"for\" <you> & ɛyɛ 🙂\nnext line"} {
			to := number()
			if o := b.Send(t.Context(), to, text); o.Class != provider.Accepted || o.UpstreamID == "" || b.Taken(to) != 1 {
				t.Errorf("%+v, taken %d times", o, b.Taken(to))
			}
		}
	})
	t.Run("unreachable is not sent", func(t *testing.T) {
		to := number()
		if o := b.Unreachable(t.Context(), to, "hello"); o.Class != provider.NotSent || b.Taken(to) != 0 {
			t.Errorf("%+v", o)
		}
	})
	t.Run("given up before it left", func(t *testing.T) {
		to := number()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if o := b.Send(ctx, to, "hello"); o.Class != provider.NotSent || b.Taken(to) != 0 {
			t.Errorf("%+v, taken %d times", o, b.Taken(to))
		}
	})
	for _, fault := range []string{"answer_lost", "request_lost", "error_before", "error_after", "malformed", "outage", "throttle", "unauthorized", "forbidden"} {
		t.Run(fault, func(t *testing.T) {
			to := number()
			b.Fault(fault)
			o := b.Send(t.Context(), to, "hello")
			b.Clear()
			taken := b.Taken(to)
			again := o.Class == provider.NotSent || o.Class == provider.Barred || o.Class == provider.Rejected
			if again && taken > 0 || taken > 1 || o.Class == provider.Accepted && taken != 1 {
				t.Errorf("%+v, taken %d times", o, taken)
			}
			if lost := fault == "answer_lost" || fault == "error_after"; lost && o.Class == provider.Accepted {
				t.Errorf("a lost answer reads %+v", o)
			}
		})
	}
	for _, refusal := range b.Refusals {
		t.Run("refused "+refusal, func(t *testing.T) {
			to := number()
			b.Fault(refusal)
			o := b.Send(t.Context(), to, "hello")
			b.Clear()
			if !o.TriesOther() || b.Taken(to) != 0 {
				t.Errorf("%+v, taken %d times", o, b.Taken(to))
			}
		})
	}
	if b.Tamper != nil {
		t.Run("hostile answers", func(t *testing.T) { b.hostile(t, number) })
	}
	if b.Exchanges == nil {
		return
	}
	t.Run("no text, number or secret is recorded", func(t *testing.T) {
		to := number()
		b.Send(t.Context(), to, "the code is 739201")
		for _, e := range b.Exchanges() {
			all := e.URL + e.Request + e.Answer + e.Err
			for _, secret := range append([]string{"739201", string(to), to.Local(), "Akwaaba"}, b.Secrets...) {
				if strings.Contains(all, secret) {
					t.Fatalf("%q is recorded in %+v", secret, e)
				}
			}
		}
	})
}

// hostile answers texts that the provider took by responses that prove nothing. None allows the text to be sent again, over this
// or another provider, or its price to be given back.
func (b TextBench) hostile(t *testing.T, number func() msisdn.MSISDN) {
	b.Send(t.Context(), number(), "hello")
	kind := b.Tamper.Last()
	all := hostiles()
	for _, status := range []int{401, 402, 403, 422} {
		all = append(all, under(status), instead(status, "html", "text/html", page), instead(status, "nothing", "application/json", ""),
			instead(status, "object", "application/json", "{}"), instead(status, "null", "application/json", "null"), instead(status, "list", "application/json", "[]"))
	}
	for _, h := range all {
		to := number()
		b.Tamper.Set(kind, h.change)
		o := b.Send(t.Context(), to, "hello")
		b.Tamper.Set("", nil)
		if o.TriesOther() || o.Clear || o.Class != provider.Unknown && (o.Class != provider.Accepted || o.UpstreamID == "") || b.Taken(to) != 1 {
			t.Errorf("%s: %+v, taken %d times", h.name, o, b.Taken(to))
		}
	}
}
