package sheet

import (
	"bytes"
	"errors"
	"io"
)

// partBytes is the size of the parts of a file that is stored in a database.
const partBytes = 512 << 10

// Split reads a file and passes its parts to store, numbered from 1. It returns their number.
func Split(file io.Reader, store func(number int, part []byte) error) (parts int, err error) {
	for part := make([]byte, partBytes); ; {
		n, err := io.ReadFull(file, part)
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return parts, err
		}
		parts++
		if err := store(parts, part[:n]); err != nil {
			return parts, err
		}
	}
}

// Joined returns a reader of a file that Split divided. load returns a part by its number.
func Joined(parts int, load func(number int) ([]byte, error)) io.Reader {
	return &joined{parts: parts, load: load}
}

type joined struct {
	parts, read int
	load        func(int) ([]byte, error)
	ahead       bytes.Reader // not embedded, because its WriteTo would end with a part
}

func (j *joined) Read(into []byte) (int, error) {
	for j.ahead.Len() == 0 {
		if j.read == j.parts {
			return 0, io.EOF
		}
		part, err := j.load(j.read + 1)
		if err != nil {
			return 0, err
		}
		j.read++
		j.ahead.Reset(part)
	}
	return j.ahead.Read(into)
}
