package batch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
)

// blockRows is how many lines share a digest, which is compared when they are accepted.
const blockRows = 1000

// codeLength is how many characters of base32 a code has.
const codeLength = 13

var codeAlphabet = base32.StdEncoding.WithPadding(base32.NoPadding)

// codes makes the codes of batches under the installation's secret.
type codes struct{ key []byte }

// writeField writes a text with its length before it, so that no two lists of fields are the same bytes.
func writeField(h hash.Hash, text string) {
	var length [20]byte
	h.Write(append(strconv.AppendInt(length[:0], int64(len(text)), 10), ':'))
	h.Write([]byte(text))
}

// of returns the code of rows under a name. sum is the digest of all canonical rows, and repetition counts batches
// with the same rows and name.
func (c codes) of(mode, tenant, name string, sum []byte, repetition int) string {
	mac := hmac.New(sha256.New, c.key)
	for _, text := range []string{mode, tenant, strings.ToLower(strings.Join(strings.Fields(name), " ")), string(sum), strconv.Itoa(repetition)} {
		writeField(mac, text)
	}
	return strings.ToLower(codeAlphabet.EncodeToString(mac.Sum(nil))[:codeLength])
}

// ReferenceOf returns the Reference of a row's payout: the row's own, or one derived from the batch's code.
func ReferenceOf(code string, r Row) string {
	if r.Reference != "" {
		return r.Reference
	}
	return "b-" + code + "-" + strconv.Itoa(r.Line)
}

// writeCanonical writes the members that identify a row, or the cells of a bad row.
func writeCanonical(h hash.Hash, r Row) {
	for _, text := range []string{strconv.Itoa(r.Line), r.Channel, r.Account, strconv.FormatInt(int64(r.Amount), 10), r.Reference, r.Name, r.Note} {
		writeField(h, text)
	}
	if r.Bank != "" {
		writeField(h, r.Bank)
	}
	if r.State == RowBad {
		writeField(h, encodeGiven(r.Given))
	}
}

// digester computes digests of frozen rows in their order, for blocks of lines with the cost of their rows.
type digester struct {
	blocks []string
	block  int
	hash   hash.Hash
}

// add adds the next row that will be paid.
func (d *digester) add(r Row) {
	if block := (r.Line - 1) / blockRows; d.hash == nil || block != d.block {
		d.endBlock()
		d.block, d.hash = block, sha256.New()
		writeField(d.hash, strconv.Itoa(block))
	}
	writeCanonical(d.hash, r)
	writeField(d.hash, strconv.FormatInt(int64(r.Charges), 10))
	if r.Registered != "" {
		writeField(d.hash, r.Registered)
	}
}

func (d *digester) endBlock() {
	if d.hash != nil {
		d.blocks = append(d.blocks, strconv.Itoa(d.block)+" "+hex.EncodeToString(d.hash.Sum(nil)))
		d.hash = nil
	}
}

// sums returns the blocks and the digest over them.
func (d *digester) sums() (blocks []string, digest string) {
	d.endBlock()
	return d.blocks, digestOf(d.blocks)
}

func digestOf(blocks []string) string {
	sum := sha256.Sum256([]byte(strings.Join(blocks, "\n")))
	return hex.EncodeToString(sum[:])
}
