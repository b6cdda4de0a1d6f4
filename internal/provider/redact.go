package provider

import "strings"

// secretMembers are JSON members whose text never reaches a log: credentials,
// and what tells who a person is. Names are compared in lower case.
var secretMembers = map[string]bool{
	"access_token": true, "apikey": true, "authorization": true,
	"given_name": true, "family_name": true, "birthdate": true, "sub": true,
	"name": true, "customername": true, "recipientname": true, "customeremail": true,
	"bankaccountname": true, "bankaccountnumber": true,
}

// Redact makes a body or URL fit for a log: secret members become "***" and
// phone numbers keep their first three and last four digits.
func Redact(s string) string {
	return maskNumbers(maskMembers(s))
}

// maskMembers walks a JSON text (or anything else) and blanks the string
// values of secret members. It needs no valid JSON: half an answer is what
// one wants to read in a log.
func maskMembers(s string) string {
	var out strings.Builder
	last := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}
		end := stringEnd(s, i)
		if end < 0 {
			break
		}
		key := s[i+1 : end]
		i = end
		if len(key) > 20 || !secretMembers[strings.ToLower(key)] {
			continue
		}
		j := skipSpace(s, end+1)
		if j >= len(s) || s[j] != ':' {
			continue
		}
		j = skipSpace(s, j+1)
		if j >= len(s) || s[j] != '"' {
			continue
		}
		stop := stringEnd(s, j)
		if stop < 0 { // cut in the middle: blank the rest
			stop = len(s)
		}
		out.WriteString(s[last : j+1])
		out.WriteString("***")
		last = stop
		i = min(stop, len(s)-1)
	}
	if last == 0 {
		return s
	}
	out.WriteString(s[last:])
	return out.String()
}

func stringEnd(s string, open int) int {
	for i := open + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// maskNumbers hides the middle of digit runs that look like a Ghanaian number
// (233 and nine digits, or 0 and nine) or a bank account behind such a shape.
func maskNumbers(s string) string {
	var out []byte
	for i := 0; i < len(s); {
		if s[i] < '0' || s[i] > '9' {
			i++
			continue
		}
		j := i
		for j < len(s) && s[j] >= '0' && s[j] <= '9' {
			j++
		}
		run := s[i:j]
		inWord := i > 0 && isWord(s[i-1]) && !(i > 2 && s[i-3] == '%') || j < len(s) && isWord(s[j])
		if !inWord && (len(run) == 12 && strings.HasPrefix(run, "233") || len(run) == 10 && run[0] == '0') {
			if out == nil {
				out = []byte(s)
			}
			for k := i + 3; k < j-4; k++ {
				out[k] = '*'
			}
		}
		i = j
	}
	if out == nil {
		return s
	}
	return string(out)
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
