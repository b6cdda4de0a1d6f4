package route

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/makola/makola/internal/provider"
)

// dictionary is text that exchanges have in common, such as the documented samples of providers. Rows are packed with
// it, so it never changes. A new dictionary gets another number.
//
//go:embed exchanges.dictionary
var dictionary []byte

const (
	dictionaryID = 1
	packWindow   = 64 << 10 // bytes; longer than any exchange
	unpackedMost = 64 << 10 // maximum bytes of an unpacked exchange, to refuse damaged rows
	keptText     = 8192     // bytes of a body, URL or error
	packedFields = 12
)

// A packer compresses exchanges to a quarter of their size. It is safe for concurrent use.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newPacker() *packer {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(dictionaryID, dictionary), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // cannot happen: its settings are constants
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(dictionaryID, dictionary), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(unpackedMost))
	if err != nil {
		panic(err)
	}
	return &packer{encoder, decoder}
}

// pack packs all fields of an exchange except its time and payment. A NUL, which no field contains, separates the
// fields.
func (p *packer) pack(e provider.Exchange) []byte {
	written := "0"
	if e.Written {
		written = "1"
	}
	fields := [packedFields]string{e.Provider, e.Mode, e.Operation, e.Method, strconv.Itoa(e.Status), written, clip(e.URL), clip(provider.PlainReference(e.Reference)),
		strconv.FormatInt(e.Took.Microseconds(), 10), clip(e.Request), clip(e.Answer), clip(e.Err)}
	return p.encoder.EncodeAll([]byte(strings.Join(fields[:], "\x00")), nil)
}

// unpack sets the fields of an exchange that pack has packed.
func (p *packer) unpack(packed []byte, e *provider.Exchange) error {
	text, err := p.decoder.DecodeAll(packed, nil)
	if err != nil {
		return fmt.Errorf("route: unpack an exchange: %w", err)
	}
	fields := strings.Split(string(text), "\x00")
	if len(fields) != packedFields {
		return fmt.Errorf("route: an exchange of %d fields", len(fields))
	}
	e.Provider, e.Mode, e.Operation, e.Method, e.URL, e.Reference = fields[0], fields[1], fields[2], fields[3], fields[6], fields[7]
	e.Written, e.Request, e.Answer, e.Err = fields[5] == "1", fields[9], fields[10], fields[11]
	if e.Status, err = strconv.Atoi(fields[4]); err != nil {
		return fmt.Errorf("route: parse the status of an exchange: %w", err)
	}
	took, err := strconv.ParseInt(fields[8], 10, 64)
	if err != nil {
		return fmt.Errorf("route: parse the time of an exchange: %w", err)
	}
	e.Took = time.Duration(took) * time.Microsecond
	return nil
}

// clip returns text that can be packed: not too long, valid UTF-8 and without NUL.
func clip(s string) string {
	if len(s) > keptText {
		s = s[:keptText]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
}
