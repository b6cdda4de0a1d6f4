package smpp

import (
	"encoding/binary"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// states maps the states in a receipt's text (appendix B) to ours.
var states = map[string]provider.Delivery{
	"DELIVRD": provider.Delivered, "DELIVERED": provider.Delivered,
	"ENROUTE": provider.DeliveryPending, "ACCEPTD": provider.DeliveryPending, "ACCEPTED": provider.DeliveryPending, "SCHEDULED": provider.DeliveryPending,
	"EXPIRED": provider.DeliveryExpired, "DELETED": provider.DeliveryFailed, "UNDELIV": provider.DeliveryFailed, "FAILED": provider.DeliveryFailed,
	"UNDELIVERED": provider.DeliveryFailed, "UNDELIVERABLE": provider.DeliveryFailed,
	"REJECTD": provider.DeliveryRejected, "REJECTED": provider.DeliveryRejected, "UNKNOWN": provider.DeliveryUnknown, "SKIPPED": provider.DeliveryRejected,
}

// stateNumbers maps the values of message_state (section 5.2.28) to our states.
var stateNumbers = []provider.Delivery{
	provider.DeliveryPending, provider.DeliveryPending, provider.Delivered, provider.DeliveryExpired, provider.DeliveryFailed,
	provider.DeliveryFailed, provider.DeliveryPending, provider.DeliveryUnknown, provider.DeliveryRejected, provider.DeliveryRejected,
}

// parseReceipt reads the receipt in a deliver_sm. It tolerates over-long fields, odd dates, missing members, any case
// of the keys, and spaces around colons.
func parseReceipt(d delivered, b Bind, now time.Time) (provider.Receipt, delivery) {
	if d.kind != matchable {
		return provider.Receipt{}, d.kind
	}
	from, to, coding, text, extra := d.from, d.to, d.coding, d.text, d.optional
	words := receiptWords(decodeText(text, coding))
	r := provider.Receipt{At: now, Code: words["err"], State: provider.DeliveryUnknown}
	for _, address := range []string{from, to} { // some operators exchange the two addresses
		if m, err := msisdn.Parse(address); err == nil {
			r.To = m
			break
		}
	}
	id := words["id"]
	if tlv := extra[tagReceiptedID]; len(tlv) > 0 {
		id = decodeText(tlv, 0)
	}
	r.UpstreamID = canonicalID(id, b.ReceiptIDs)
	if state, ok := states[strings.ToUpper(words["stat"])]; ok {
		r.State = state
	} else if n := extra[tagMessageState]; len(n) == 1 && int(n[0]) < len(stateNumbers) {
		r.State = stateNumbers[n[0]]
	}
	if code := extra[tagNetworkError]; r.Code == "" && len(code) == 3 {
		r.Code = big.NewInt(int64(binary.BigEndian.Uint16(code[1:]))).String()
	}
	r.Code = provider.Clip(r.Code)
	if r.UpstreamID == "" {
		return r, unreadable
	}
	return r, matchable
}

// receiptKeys maps the keys of a receipt's text (appendix B), in the spellings of message centres, to ours. It
// includes "submit" and "done" of "submit date" and "done date", which are never values.
var receiptKeys = map[string]string{
	"id": "id", "msgid": "id", "message_id": "id", "messageid": "id",
	"stat": "stat", "status": "stat", "state": "stat",
	"err": "err", "error": "err",
	"sub": "sub", "dlvrd": "dlvrd", "submit": "submit", "done": "done", "date": "date", "text": "text",
}

// receiptWords reads "id:… sub:… stat:…" up to the text of the message, which may contain anything. A colon may have
// spaces on both sides, and a value may be missing. The first value of a key counts.
func receiptWords(text string) map[string]string {
	if i := indexFold(text, "text:"); i >= 0 {
		text = text[:i]
	}
	space := func(r rune) bool { return r == ' ' || '\t' <= r && r <= '\r' } // other Unicode spaces may be part of an id
	rest := strings.FieldsFunc(text, space)
	words := map[string]string{}
	for len(rest) > 0 {
		var key, value string
		key, value, rest = receiptField(rest)
		if key == "text" {
			break
		}
		if key != "" && value != "" && words[key] == "" {
			words[key] = value
		}
	}
	return words
}

// receiptField removes a key and its value from the words of a receipt. Either may be missing.
func receiptField(in []string) (key, value string, rest []string) {
	word, rest := in[0], in[1:]
	if !strings.Contains(word, ":") && len(rest) > 0 && rest[0][0] == ':' {
		word, rest = word+rest[0], rest[1:]
	}
	name, value, pair := strings.Cut(word, ":")
	if !pair {
		return "", "", rest
	}
	if value == "" && len(rest) > 0 && !beginsField(rest) {
		value, rest = rest[0], rest[1:]
	}
	return receiptKeys[strings.ToLower(name)], value, rest
}

// beginsField reports whether a word is the key of a field, and not the value of the key before it.
func beginsField(words []string) bool {
	name, _, pair := strings.Cut(words[0], ":")
	key := receiptKeys[strings.ToLower(name)]
	return key == "submit" || key == "done" || key != "" && (pair || len(words) > 1 && words[1][0] == ':')
}

// indexFold returns the index of an ASCII word in any case, or -1. Searching the text in lower case would return
// wrong indexes, because some letters are longer in lower case.
func indexFold(text, word string) int {
	for i := range len(text) - len(word) + 1 {
		if strings.EqualFold(text[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}

// longestID is the maximum length of an id in octets, which is SMPP's own (section 5.2.23).
const longestID = 64

// canonicalID returns an id in the form in which submits and receipts are matched: numbers in decimal, texts in lower
// case. An id ends at a NUL. Callers must convert octets to text in the same way as decodeText does for a receipt.
// Only then are the ids of both sides equal, and every id can be stored.
func canonicalID(id string, form IDForm) string {
	id, _, _ = strings.Cut(id, "\x00")
	id = strings.Map(printable, strings.ToLower(strings.TrimSpace(id)))
	id = clipID(id)
	base := 0
	switch form {
	case IDHex:
		base, id = 16, strings.TrimPrefix(id, "0x")
	case IDDecimal:
		base = 10
	default:
		return id
	}
	if n, ok := new(big.Int).SetString(id, base); ok {
		return n.String()
	}
	return id // not in the configured form, but usable if both sides have the same form
}

// clipID cuts an id to longestID, without splitting a character.
func clipID(id string) string {
	if len(id) <= longestID {
		return id
	}
	end := longestID
	for !utf8.RuneStart(id[end]) {
		end--
	}
	return id[:end]
}
