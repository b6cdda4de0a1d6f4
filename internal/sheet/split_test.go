package sheet

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// The joined parts of a file of any size equal the file. An error in a part ends reading and writing.
func TestSplit_joinsToTheSameFile(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, partBytes - 1, partBytes, partBytes + 1, 3 * partBytes} {
		file := bytes.Repeat([]byte("0240000001,10\n"), size/14+1)[:size]
		stored := map[int][]byte{}
		parts, err := Split(bytes.NewReader(file), func(number int, part []byte) error {
			stored[number] = bytes.Clone(part)
			return nil
		})
		if err != nil || parts != (size+partBytes-1)/partBytes || len(stored) != parts {
			t.Fatalf("%d bytes are %d parts, %v", size, parts, err)
		}
		var whole bytes.Buffer
		if _, err := io.Copy(&whole, Joined(parts, func(number int) ([]byte, error) { return stored[number], nil })); err != nil || !bytes.Equal(whole.Bytes(), file) {
			t.Errorf("%d bytes come back as %d, %v", size, whole.Len(), err)
		}
	}
	broken := errors.New("broken")
	if _, err := Split(bytes.NewReader([]byte("x")), func(int, []byte) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := io.ReadAll(Joined(1, func(int) ([]byte, error) { return nil, broken })); !errors.Is(err, broken) {
		t.Error(err)
	}
}
