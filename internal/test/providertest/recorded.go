package providertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// EachRecorded checks each recorded sample of the tested adapter in a test of its own. The samples are the JSON lists in
// testdata. origin returns the sample's name, the source and the date on which it was read, all of which it must have.
func EachRecorded[T any](t *testing.T, origin func(T) (name, source, date string), check func(T, *testing.T)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var all []T
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, sample := range all {
			name, source, date := origin(sample)
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				if _, err := time.Parse(time.DateOnly, date); err != nil || source == "" {
					t.Errorf("source %q of %q", source, date)
				}
				check(sample, t)
			})
		}
	}
}
