package privacy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// readAtOnce is the number of bytes of a file that are searched at once.
const readAtOnce = 1 << 20

// Copies lists files that contain one of the spellings: the SQLite database, its log, and copies made before
// migrations. It searches all files whose names begin with the database's name. A process that has the database open
// must not call it, because closing a file ends SQLite's locks on it.
func Copies(database string, spellings ...string) (names []string, err error) {
	folder := filepath.Dir(database)
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), filepath.Base(database)) || !f.Type().IsRegular() {
			continue
		}
		found, err := holds(filepath.Join(folder, f.Name()), spellings)
		if errors.Is(err, fs.ErrNotExist) { // the file was removed meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		if found {
			names = append(names, f.Name())
		}
	}
	return names, nil
}

// holds reports whether a file contains one of the spellings. It also finds a spelling that is divided
// between two reads.
func holds(path string, spellings []string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	in, longest := bufio.NewReaderSize(file, readAtOnce), 0
	for _, s := range spellings {
		longest = max(longest, len(s))
	}
	window := make([]byte, 0, readAtOnce+longest)
	for {
		kept := copy(window[:cap(window)], window[max(0, len(window)-longest+1):])
		n, err := io.ReadFull(in, window[kept:kept+readAtOnce])
		window = window[:kept+n]
		for _, s := range spellings {
			if bytes.Contains(window, []byte(s)) {
				return true, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return false, nil
		case err != nil:
			return false, err
		}
	}
}
