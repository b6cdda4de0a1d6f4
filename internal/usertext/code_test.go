package usertext

import "testing"

// A code is the same with the spaces and dashes that people type and apps paste.
func TestCode_asPeopleTypeIt(t *testing.T) {
	for text, want := range map[string]string{
		"123456": "123456", "123 456": "123456", "1 2 3 4": "1234", " 123456 ": "123456", "123-456": "123456", "12345 67890": "1234567890",
		"123\u00a0456": "123456", "123\u202f456": "123456", "123\u2009456": "123456", "123\u3000456": "123456", "\t123456\r\n": "123456",
		"\u200e123456\u200f": "123456", "\ufeff123\u200b456": "123456", "\u2068123456\u2069": "123456", "123\u2011456": "123456", "123\u2013456": "123456", "123\u2212456": "123456",
		"ABCD-efgh 2345": "abcdefgh2345", "": "", " ": "", "12.34": "12.34", "12_34": "12_34", "１２": "１２", "1\x002": "1\x002",
	} {
		if got := Code(text); got != want {
			t.Errorf("%q is the code %q, expected %q", text, got, want)
		}
	}
}
