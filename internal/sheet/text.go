package sheet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	sniffed = 4 << 10 // number of bytes from which the kind of a file is detected

	markUTF8    = "\xef\xbb\xbf"
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
)

// textEncoding is the encoding of a text and the length of its byte order mark. If of is nil, the text is UTF-8.
type textEncoding struct {
	mark int64
	of   encoding.Encoding
}

// encodingOf detects the encoding of a text by its byte order mark. Without one it looks for zero bytes, which UTF-16
// has, and bytes above 127, which are seldom valid UTF-8 by chance.
func encodingOf(text io.Reader, start []byte) (textEncoding, error) {
	for _, known := range []struct {
		mark string
		of   encoding.Encoding
	}{
		{markUTF8, nil},
		{markUTF16LE, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
		{markUTF16BE, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	} {
		if bytes.HasPrefix(start, []byte(known.mark)) {
			return textEncoding{int64(len(known.mark)), known.of}, nil
		}
	}
	var zeros [2]int
	for i, b := range start {
		if b == 0 {
			zeros[i%2]++
		}
	}
	switch half := len(start) / 2; {
	case zeros[0]+zeros[1] == 0:
	case zeros[0] == 0 && zeros[1] > half/2:
		return textEncoding{0, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)}, nil
	case zeros[1] == 0 && zeros[0] > half/2:
		return textEncoding{0, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)}, nil
	default:
		return textEncoding{}, refuse("is neither text nor a workbook: save the table as XLSX or CSV")
	}
	return plainEncoding(text)
}

// plainEncoding distinguishes UTF-8 from Windows-1252. A text with characters of both counts as UTF-8 with some
// invalid rows.
func plainEncoding(text io.Reader) (textEncoding, error) {
	var good, bad bool
	var left int
	block := make([]byte, sniffed)
	for {
		n, err := text.Read(block[left:])
		chunk := block[:left+n]
		atEnd := errors.Is(err, io.EOF)
		for len(chunk) > 0 && (atEnd || utf8.FullRune(chunk)) {
			r, size := utf8.DecodeRune(chunk)
			bad = bad || r == utf8.RuneError && size == 1
			good = good || size > 1
			chunk = chunk[size:]
		}
		left = copy(block, chunk)
		if atEnd {
			break
		}
		if err != nil {
			return textEncoding{}, fmt.Errorf("sheet: read the uploaded file: %w", err)
		}
	}
	if bad && !good {
		return textEncoding{0, charmap.Windows1252}, nil
	}
	return textEncoding{}, nil
}

// reader returns the text in UTF-8. Invalid bytes stay as they are.
func (f *File) reader() io.Reader {
	text := io.NewSectionReader(f.spool, f.text.mark, f.size-f.text.mark)
	if f.text.of == nil {
		return text
	}
	return transform.NewReader(text, f.text.of.NewDecoder())
}
