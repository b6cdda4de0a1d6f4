// Package wire reads and writes the JSON of the interface. Its decoder refuses ambiguous input: a repeated name, text
// that is not UTF-8, and unbounded nesting. Its writer keeps the order and the types of members, because client
// programs compare them literally. An amount is a number in one endpoint and a string in another. Package api decides
// the meaning of the members.
package wire

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/makola/makola/internal/problem"
)

// Limits of a body. They are far above the needs of the interface and far below harmful sizes.
const (
	maxDepth   = 16      // nesting of arrays and objects
	maxMembers = 1_000   // maximum number of members of one object
	maxItems   = 200_000 // items of one array: twice the maximum of any endpoint
	maxLinear  = 16      // number of members up to which names are compared one by one, without a map
	maxFaults  = 50      // maximum number of errors in one response
	nameShown  = 64      // maximum bytes of a member's name in an error
	bodyMember = "body"
)

// Object is one JSON object. Decode checks its whole text. A member is decoded only when a form reads it, so that
// unread members cost nothing.
type Object struct {
	members []member
}

// member is the name of a member and the text of its value, without spaces around it.
type member struct {
	name string
	raw  []byte
}

// Find returns the text of a member's value, or nil if there is none.
func (o Object) Find(name string) []byte {
	for i := range o.members {
		if o.members[i].name == name {
			return o.members[i].raw
		}
	}
	return nil
}

// syntax is the value with which scanner.fail panics. Decode converts it to an error.
type syntax struct {
	offset int
	what   string
}

// enough is the value with which a scan panics after too many errors.
type enough struct{}

// scanner reads a text once. It replaces encoding/json, which does not report all errors. That package takes the last
// of two equal names, replaces invalid UTF-8, loses digits of numbers, and stops at the first error.
type scanner struct {
	in     []byte
	at     int
	top    string // name of the outermost member being read
	faults *problem.Fields
	count  int
}

// Decode decodes a body that must be one JSON object. For a body that is not JSON it returns a Malformed error. For
// ambiguous JSON (a repeated name, invalid UTF-8, deep nesting) it adds errors to faults under the name of the
// outermost member.
func Decode(body []byte, faults *problem.Fields) (o Object, err error) {
	s := &scanner{in: bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), faults: faults}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case syntax:
			o, err = Object{}, malformed(r)
		case enough:
			o, err = Object{}, faults.Err()
		default:
			panic(r)
		}
	}()
	s.space()
	switch {
	case s.at == len(s.in):
		s.fail("the body is empty")
	case s.in[s.at] != '{':
		s.fail("the body must be a JSON object")
	}
	o = s.object(1)
	s.space()
	if s.at < len(s.in) {
		s.fail("text after the end of the object")
	}
	return o, nil
}

func malformed(s syntax) error {
	e := problem.New(problem.Malformed, "malformed_json",
		"The request body is not valid JSON: "+s.what+" (at byte "+strconv.Itoa(s.offset)+")")
	return e
}

func (s *scanner) fail(what string) { panic(syntax{s.at, what}) }

func (s *scanner) fault(text string) {
	if s.count++; s.count > maxFaults {
		return
	}
	name := s.top
	if name == "" {
		name = bodyMember
	}
	s.faults.Add(name, text)
}

func (s *scanner) space() {
	for s.at < len(s.in) {
		switch s.in[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek returns the next byte after spaces. It fails at the end of the text.
func (s *scanner) peek() byte {
	s.space()
	if s.at == len(s.in) {
		s.fail("the text ends too early")
	}
	return s.in[s.at]
}

// object reads from '{' to '}' and records repeated names.
func (s *scanner) object(depth int) Object {
	s.enter(depth)
	var o Object
	var seen map[string]bool
	if s.peek() == '}' {
		s.at++
		return o
	}
	for {
		if s.peek() != '"' {
			s.fail("a member's name must be in quotes")
		}
		name, ok := s.name()
		if depth == 1 {
			s.top = shown(name, ok)
		}
		if twice(o.members, &seen, name) {
			s.fault(repeated(name, ok, depth))
		}
		if s.peek() != ':' {
			s.fail("a colon is missing")
		}
		s.at++
		if len(o.members) == maxMembers {
			s.fault("has too many members")
			panic(enough{})
		}
		o.members = append(o.members, member{name, s.value(depth)})
		if depth == 1 {
			s.top = ""
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return o
		default:
			s.fail("a comma or a closing brace is missing")
		}
	}
}

// twice reports whether name is among members. It uses a map if there are many.
func twice(members []member, seen *map[string]bool, name string) bool {
	if *seen == nil {
		if len(members) < maxLinear {
			return Object{members}.Find(name) != nil
		}
		*seen = make(map[string]bool, 2*maxLinear)
		for _, m := range members {
			(*seen)[m.name] = true
		}
	}
	if (*seen)[name] {
		return true
	}
	(*seen)[name] = true
	return false
}

func repeated(name string, ok bool, depth int) string {
	if depth == 1 {
		return "is given more than once"
	}
	return "holds " + shown(name, ok) + " more than once"
}

// shown returns a name in a form that is safe in an error message.
func shown(name string, ok bool) string {
	if !ok || name == "" || len(name) > nameShown || HasControl(name, false) {
		return bodyMember
	}
	return name
}

func (s *scanner) enter(depth int) {
	if depth > maxDepth {
		s.fault("is nested too deeply")
		panic(enough{})
	}
	s.at++
}

// value reads any value and returns its text.
func (s *scanner) value(depth int) []byte {
	first := s.peek()
	start := s.at
	switch {
	case first == '"':
		if !s.text() {
			s.fault("must be valid UTF-8 text")
		}
	case first == '{':
		s.object(depth + 1)
	case first == '[':
		s.array(depth + 1)
	case first == '-' || first >= '0' && first <= '9':
		s.number()
	default:
		s.word()
	}
	return s.in[start:s.at]
}

func (s *scanner) array(depth int) {
	s.enter(depth)
	if s.peek() == ']' {
		s.at++
		return
	}
	for n := 1; ; n++ {
		if n > maxItems {
			s.fault("has more than " + strconv.Itoa(maxItems) + " items")
			panic(enough{})
		}
		s.value(depth)
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return
		default:
			s.fail("a comma or a closing bracket is missing")
		}
	}
}

func (s *scanner) word() {
	for _, w := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.in[s.at:], []byte(w)) {
			s.at += len(w)
			return
		}
	}
	s.fail("a value is missing or is no JSON value")
}

// number reads a number by the grammar of RFC 8259: no leading zero, no bare decimal point.
func (s *scanner) number() {
	if s.in[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.in) && s.in[s.at] == '0' {
		s.at++
	} else {
		s.digits()
	}
	if s.at < len(s.in) && s.in[s.at] == '.' {
		s.at++
		s.digits()
	}
	if s.at < len(s.in) && s.in[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.in) && (s.in[s.at] == '+' || s.in[s.at] == '-') {
			s.at++
		}
		s.digits()
	}
}

func (s *scanner) digits() {
	start := s.at
	for s.at < len(s.in) && s.in[s.at] >= '0' && s.in[s.at] <= '9' {
		s.at++
	}
	if s.at == start {
		s.fail("a number is incomplete")
	}
}

// name reads a member's name. ok is false if the name is not valid text.
func (s *scanner) name() (name string, ok bool) {
	start := s.at
	if ok = s.text(); !ok {
		s.fault("has a member whose name is no valid UTF-8 text")
	}
	return Unquote(s.in[start:s.at]), ok
}

// text reads a string and reports whether it is valid Unicode. It accepts control characters, escaped or not. The
// form that reads the field refuses them with the field's name.
func (s *scanner) text() bool {
	s.at++
	start, whole := s.at, true
	for s.at < len(s.in) {
		switch s.in[s.at] {
		case '"':
			whole = whole && utf8.Valid(s.in[start:s.at])
			s.at++
			return whole
		case '\\':
			whole = s.escape() && whole
		default:
			s.at++
		}
	}
	s.fail("a string does not end")
	return false
}

// escape reads one escape, or two escapes that form a surrogate pair. It reports whether they form a valid
// character.
func (s *scanner) escape() bool {
	if s.at+1 >= len(s.in) {
		s.fail("a string does not end")
	}
	switch s.in[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return true
	case 'u':
	default:
		s.fail("an escape is unknown")
	}
	high, ok := hex4(s.in[s.at:])
	if !ok {
		s.fail("an escape is incomplete")
	}
	s.at += 6
	if !utf16.IsSurrogate(high) {
		return true
	}
	low, ok := hex4(s.in[s.at:])
	if !ok || utf16.DecodeRune(high, low) == utf8.RuneError {
		return false
	}
	s.at += 6
	return true
}

// hex4 parses the escape \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Unquote decodes a string that Decode has checked.
func Unquote(raw []byte) string {
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); {
		if in[i] != '\\' {
			out = append(out, in[i])
			i++
			continue
		}
		if in[i+1] != 'u' {
			out = append(out, plain(in[i+1]))
			i += 2
			continue
		}
		r, _ := hex4(in[i:])
		i += 6
		if utf16.IsSurrogate(r) {
			low, ok := hex4(in[i:])
			if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
				i += 6
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// plain returns the character of an escape of one letter.
func plain(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// HasControl reports whether s contains NUL or another control character. If lines is true, line breaks and tabs are
// allowed, such as in the text of a message.
func HasControl(s string, lines bool) bool {
	for i, c := range s {
		switch {
		case lines && (c == '\n' || c == '\r' || c == '\t'):
		case c < 0x20 || c >= 0x7f && c <= 0x9f:
			return true
		case c == utf8.RuneError && !validAt(s[i:]):
			return true
		}
	}
	return false
}

// validAt reports whether s begins with a valid character. It distinguishes a U+FFFD in the text from an invalid
// byte.
func validAt(s string) bool {
	_, size := utf8.DecodeRuneInString(s)
	return size > 1
}

// Items returns the texts of the items of a list that Decode has checked. It returns at most one item more than most.
func Items(list []byte, most int) [][]byte {
	var all [][]byte
	s := &scanner{in: list, at: 1, faults: &problem.Fields{}}
	for len(all) <= most && s.peek() != ']' {
		all = append(all, s.value(1))
		if s.peek() == ',' {
			s.at++
		}
	}
	return all
}
