package usertext

import "strings"

// maxEmail is the greatest length of an e-mail address in bytes.
const maxEmail = 254

// IsEmail reports whether a text has the form of an e-mail address.
func IsEmail(text string) bool {
	at := strings.LastIndexByte(text, '@')
	return at >= 1 && at < len(text)-1 && len(text) <= maxEmail && Storable(text) && !strings.ContainsAny(text, " \t\r\n")
}
