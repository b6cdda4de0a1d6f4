package sheet

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of an unpacked workbook. They are needed because one byte can unpack to 1,000, so the size of the file
// limits nothing.
const (
	maxDirectory = 1 << 20   // maximum bytes of the archive's directory
	maxPart      = 200 << 20 // maximum bytes of a part
	maxToken     = 1 << 20   // maximum bytes of one XML token
	maxDepth     = 32
)

// budget is a file that allows only a number of bytes to be read, so that a directory of millions of entries is not
// loaded.
type budget struct {
	io.ReaderAt
	left int64 // negative: no limit
}

var errBudget = errors.New("sheet: the archive's directory is too large")

func (b *budget) ReadAt(p []byte, at int64) (int, error) {
	if b.left >= 0 {
		if b.left -= int64(len(p)); b.left < 0 {
			b.left = 0
			return 0, errBudget
		}
	}
	return b.ReaderAt.ReadAt(p, at)
}

// part reads the XML of one part of a workbook within the limits. After an error it returns the same error again.
type part struct {
	file  io.ReadCloser
	xml   *xml.Decoder
	left  int64 // remaining bytes of the part
	token int64 // remaining bytes of this token
	depth int
	err   error
}

// openPart opens a part of an archive. A missing part counts as empty.
func openPart(archive *zip.Reader, name string) (*part, error) {
	for _, f := range archive.File {
		if f.Name != name {
			continue
		}
		if f.UncompressedSize64 > maxPart {
			return nil, errBomb()
		}
		file, err := f.Open()
		if err != nil {
			return nil, errDamaged()
		}
		p := &part{file: file, left: maxPart}
		p.xml = xml.NewDecoder(p)
		return p, nil
	}
	return nil, errDamaged()
}

func errBomb() error {
	return refuse(fmt.Sprintf("unpacks to more than %d MB: divide the table", maxPart>>20))
}

// Read reads the part for the decoder, within the limits.
func (p *part) Read(b []byte) (int, error) {
	n, err := p.file.Read(b)
	p.left -= int64(n)
	p.token -= int64(n)
	switch {
	case p.left < 0:
		return 0, errBomb()
	case p.token < 0:
		return 0, refuse("has a cell that is too long")
	}
	return n, err
}

func (p *part) close() { _ = p.file.Close() } // the file was only read, so errors do not matter

// next returns the next token. A part that ends inside its root element is damaged.
func (p *part) next() (xml.Token, error) {
	if p.err != nil {
		return nil, p.err
	}
	p.token = maxToken
	token, err := p.xml.Token()
	switch token.(type) {
	case xml.StartElement:
		if p.depth++; p.depth > maxDepth {
			err = errDamaged()
		}
	case xml.EndElement:
		p.depth--
	}
	if errors.Is(err, io.EOF) && p.depth == 0 {
		p.err = io.EOF
		return nil, io.EOF
	}
	if err != nil {
		p.err = partError(err)
		return nil, p.err
	}
	return token, nil
}

// partError returns our own refusals unchanged. It reports every other error as damage of the file, because reads of
// the local copy do not fail otherwise.
func partError(err error) error {
	if isRefusal(err) {
		return err
	}
	return errDamaged()
}

// element returns the next start of an element, or io.EOF.
func (p *part) element() (xml.StartElement, error) {
	for {
		token, err := p.next()
		if err != nil {
			return xml.StartElement{}, err
		}
		if start, is := token.(xml.StartElement); is {
			return start, nil
		}
	}
}

// text returns the characters in the current element, slightly more than a cell may have at most, and reads the
// element's end. If the element has children, only the characters in elements named t count. Phonetic hints do not
// count.
func (p *part) text() (string, error) {
	var all, plain strings.Builder
	children, phonetic := false, 0
	inT := 0
	for end := p.depth - 1; ; {
		token, err := p.next()
		if err != nil {
			return "", unexpected(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			children = true
			switch token.Name.Local {
			case "t":
				inT++
			case "rPh":
				phonetic++
			}
		case xml.EndElement:
			if p.depth == end {
				if children {
					return all.String(), nil
				}
				return plain.String(), nil
			}
			switch token.Name.Local {
			case "t":
				inT--
			case "rPh":
				phonetic--
			}
		case xml.CharData:
			switch {
			case inT > 0 && phonetic == 0 && all.Len() <= maxCell:
				_, _ = all.Write(token)
			case !children && plain.Len() <= maxCell:
				_, _ = plain.Write(token)
			}
		}
	}
}

// skip reads to the end of the current element.
func (p *part) skip() error {
	for end := p.depth - 1; p.depth > end; {
		if _, err := p.next(); err != nil {
			return unexpected(err)
		}
	}
	return nil
}

// unexpected converts the end of a part to an error about damage.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return errDamaged()
	}
	return err
}

// attribute returns an attribute's value by its local name, or "".
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
