package frame

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/money"
)

// A customer's text in an output is neither a formula in a spreadsheet nor a control sequence of the terminal.
func TestOutput_isInert(t *testing.T) {
	t.Parallel()
	for in, want := range map[any]string{
		`=HYPERLINK("http://evil.example")`: `"'=HYPERLINK(""http://evil.example"")"`,
		"+233244123456":                     `"'+233244123456"`, "-1+cmd|' /C calc'!A0": `"'-1+cmd|' /C calc'!A0"`, "Ama;=1+2;x": `"Ama;'=1+2;x"`,
		"Ama\u202eusneM": "\"Ama\ufffdusneM\"", "A\u200bm\u00ada": "\"A\ufffdm\ufffda\"", "\x1b[2J": "\"\ufffd[2J\"", "two\nlines": "\"two\nlines\"", "Ama Mensah": `"Ama Mensah"`, "": `""`,
		int64(-5): "-5", money.Pesewas(-150): "-1.50", true: `"yes"`, time.Date(2026, 11, 26, 12, 0, 0, 1, time.UTC): "2026-11-26T12:00:00Z", time.Time{}: "",
	} {
		var out strings.Builder
		if err := asCSV(&out, []Column[any]{{"head", func(v any) any { return v }}}, []any{in}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != "\ufeff\"head\"\r\n"+want+"\r\n" {
			t.Errorf("%q is written to CSV as %q, want %q", in, got, want)
		}
	}
	if got := Cell("Ama\u202e\u2066us\u200bneM\x1b[2J\n"); got != "Ama??us?neM?[2J?" {
		t.Errorf("a terminal gets %q", got)
	}
}
