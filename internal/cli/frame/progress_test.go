package frame

import (
	"bytes"
	"testing"
)

func TestProgress_oneLineThatGoesAway(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	show := progressLine(&out, Megabytes)
	show("", 0, 0)
	show("copying", 1_500_000, 3_000_000)
	show("copying", 1_600_000, 3_000_000) // too soon
	show("", 0, 0)
	show("", 0, 0)
	if want := "\r\x1b[Kcopying: 1.5 MB of 3.0 MB (50 %)\r\x1b[K"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	ProgressOn(&out, Megabytes)("copying", 1, 2)
	if out.Len() > 0 {
		t.Errorf("where no terminal is: %q", out.String())
	}
}
