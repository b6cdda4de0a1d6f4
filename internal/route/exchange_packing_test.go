package route

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makola/makola/internal/provider"
)

// said is MTN's answer to a status query of a payout.
var said = provider.Exchange{
	Took: 10234 * time.Microsecond, Provider: "mtn", Mode: "live", Operation: "transfer_status", Reference: "d66b5c6b0612492d983461411f212326", Method: "GET",
	URL: "https://proxy.momoapi.mtn.com/disbursement/v1_0/transfer/d66b5c6b-0612-492d-9834-61411f212326", Status: 200, Written: true,
	Answer: `{"amount":"5.00","currency":"GHS","externalId":"d66b5c6b-0612-492d-9834-61411f212326","payee":{"partyIdType":"MSISDN","partyId":"233*****0000"},` +
		`"payerMessage":"payout-20261126-092536","payeeNote":"Payment","financialTransactionId":"4000000011","status":"SUCCESSFUL"}`,
}

// A packed row is read with the same dictionary as long as it is kept, so the dictionary must not change.
func TestPacking_dictionaryIsFixed(t *testing.T) {
	sum := sha256.Sum256(dictionary)
	if got := hex.EncodeToString(sum[:]); got != "be5a31f2cf009adfb8885bd7114d461606954986c6e5a20f135331e80e932aac" {
		t.Errorf("dictionary %d is %s now: rows are packed with it, another one needs another number", dictionaryID, got)
	}
	packed, err := hex.DecodeString("28b52ffd6101b4003d030032450f13b0a701706c21e1dd452cb8fbaf94df12e6d514d41a1e715added6daec2180e80204478b6e2953c4e746f749f6ba1c5bef04ad67162b9b7320f88f94f0d00b70b601cc3ad0bc3320a8ecf45b0b42f008cc11604dc5b72f5566c883aa948894f97690101")
	if err != nil {
		t.Fatal(err)
	}
	var e provider.Exchange
	if err := newPacker().unpack(packed, &e); err != nil || e != said {
		t.Errorf("a row of the first day is %+v: %v", e, err)
	}
}

func TestPacking_roundTrip(t *testing.T) {
	p := newPacker()
	if packed := p.pack(said); len(packed) > 130 { // unpacked it has 480 bytes
		t.Errorf("a question is packed into %d bytes", len(packed))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~éƒ]{0,40}`)
		e := provider.Exchange{
			Took: time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "took")) * time.Microsecond, Provider: text.Draw(t, "provider"), Mode: text.Draw(t, "mode"),
			Operation: text.Draw(t, "operation"), Method: text.Draw(t, "method"), URL: text.Draw(t, "url"), Status: rapid.IntRange(0, 599).Draw(t, "status"),
			Request: text.Draw(t, "request"), Answer: text.Draw(t, "answer"), Written: rapid.Bool().Draw(t, "written"), Err: text.Draw(t, "error"),
		}
		var back provider.Exchange
		if err := p.unpack(p.pack(e), &back); err != nil || back != e {
			t.Fatalf("%+v came back as %+v: %v", e, back, err)
		}
	})
	long := strings.Repeat("x", 2*keptText)
	var back provider.Exchange
	if err := p.unpack(p.pack(provider.Exchange{URL: long, Request: long, Answer: long, Err: long}), &back); err != nil || len(back.Request) != keptText || len(back.Err) != keptText {
		t.Errorf("a long exchange came back with %d and %d bytes: %v", len(back.Request), len(back.Err), err)
	}
}

// Unpacking a row that pack did not write returns an error, whatever the row contains.
func FuzzUnpack(f *testing.F) {
	p := newPacker()
	f.Add(p.pack(said))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, packed []byte) {
		var e provider.Exchange
		if err := p.unpack(packed, &e); err == nil && len(e.Request) > unpackedMost {
			t.Errorf("%d bytes", len(e.Request))
		}
	})
}
