package cli

import (
	"testing"

	"github.com/makola/makola/internal/money"
)

// What a customer chose is neither a formula in the operator's spreadsheet nor an order to the terminal.
func TestOutputIsInert(t *testing.T) {
	t.Parallel()
	for in, want := range map[any]string{
		`=HYPERLINK("http://evil.example")`: `'=HYPERLINK("http://evil.example")`,
		"+233244123456":                     "'+233244123456", "-1+cmd|' /C calc'!A0": "'-1+cmd|' /C calc'!A0", "@SUM(A1)": "'@SUM(A1)",
		"\t=1": "?=1", "Ama\u202eusneM": "Ama?usneM", "\x1b[2J": "?[2J", "two\nlines": "two\nlines", "Ama Mensah": "Ama Mensah", "": "",
		int64(-5): "-5", money.Pesewas(-150): "-1.50",
	} {
		if got := inert(in); got != want {
			t.Errorf("%q is written to CSV as %q, want %q", in, got, want)
		}
	}
	if got := cell("Ama\u202e\u2066usneM\x1b[2J"); got != "Ama??usneM?[2J" {
		t.Errorf("a terminal gets %q", got)
	}
}
