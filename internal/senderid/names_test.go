package senderid

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/problem"
)

func TestName_reservedWordIsRefused(t *testing.T) {
	for name, word := range map[string]string{
		"MTN": "mtn", "mtn": "mtn", "M7N": "mtn", "M.T.N": "mtn", "M T N": "mtn", "MTN GHANA": "mtn", "My-MTN": "mtn", "МТN": "mtn",
		"MOMO": "momo", "M0M0": "momo", "MyMoMoShop": "momo", "Mo Mo": "momo", "Telecel": "telecel", "te1ece1": "telecel", "TELECEI": "telecel",
		"Vodafone": "vodafone", "V0daCash": "voda", "AT Home": "at", "AirtelTigo": "airteltigo", "G-Money": "gmoney", "GRA": "gra",
		"MTNcash": "mtn", "VDFpay": "vdf", "MyMTN": "mtn", "paywithm7n": "mtn", "M-TN cash": "mtn", "A.T": "at", "ATL Pay": "atl", "Xmomo": "momo", "Te lecelPay": "telecel",
	} {
		err := CheckName(name)
		p := problem.From(err)
		if err == nil || p.Code != "forbidden_word" {
			t.Errorf("%q is allowed, or refused as %v", name, err)
			continue
		}
		last := p.Message[strings.LastIndex(p.Message, " ")+1:]
		if last != strings.ToLower(last) || last != word && !strings.HasPrefix(word, last) {
			t.Errorf("%q is refused for %q, expected %q", name, last, word)
		}
	}
	for _, name := range []string{"Data", "Kejetia", "Batman", "Great Food", "A.B-C & D", "Agrabah", "Ecgonine", "12B", "Atlas", "abcdefghijk", "Farm TN", "ATpay", "A.T. Addo", "Globe", "Grace", "Whatsup", "M T Nartey", "MM TN"} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "abcdefghijkl", "123", "...", "a_b", "a\nb", "café", "a\x00", "ɛ", "a\xff"} {
		if err := CheckName(name); !problem.Is(err, problem.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestName_nearReservedWordIsWarned(t *testing.T) {
	for name, word := range map[string]string{
		"Farm TN": "mtn", "MMTN": "", "MMTTN": "mtn", "MTTN": "mtn", "M.TNcash": "mtn", "VDDF": "vdf", "Telesel": "telecel", "Tellecel": "telecel", "Telcel Pay": "telecel",
		"Vodafon": "", "ATpay": "at", "ATPay": "at", "myATLpay": "atl", "GRAtax": "gra", "OTPs": "otp", "Hubtell": "", "Hubtal": "hubtel", "Paystak": "paystack", "Espresso": "expresso",
		"DATA HUB": "", "Data": "", "Grace": "", "Adom Stores": "", "AdomStores": "", "Kejetia": "", "Globe": "", "Great Food": "", "Matinee": "", "Batman": "", "": "", "MTN": "", "12B": "",
	} {
		if near := Near(name); near != word {
			t.Errorf("%q comes near %q, want %q", name, near, word)
		}
	}
}
