package guides

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// sample is the request of an endpoint in one language.
type sample struct {
	Language, Text string
}

// samples writes the request of an endpoint in five languages, with the key in the environment variable MAKOLA_KEY. A
// parameter of the path without an example is shown as its name in capitals.
func samples(base string, o operation) ([]sample, error) {
	path := o.Path
	for _, p := range o.Inputs {
		if p.In == "path" {
			value := strings.ToUpper(p.Name)
			if p.Example != nil {
				value = fmt.Sprint(p.Example)
			}
			path = strings.ReplaceAll(path, "{"+p.Name+"}", value)
		}
	}
	var body any
	if o.Example != "" {
		d := json.NewDecoder(strings.NewReader(o.Example))
		d.UseNumber()
		if err := d.Decode(&body); err != nil {
			return nil, fmt.Errorf("guides: parse the example of %s: %w", o.ID, err)
		}
	}
	r := request{method: o.Method, url: base + path, body: o.Example, value: body}
	return []sample{{"curl", r.curl()}, {"JavaScript", r.javaScript()}, {"PHP", r.php()}, {"Python", r.python()}, {"Go", r.golang()}}, nil
}

// request is an example of a request. Without a body, body is empty.
type request struct {
	method, url, body string
	value             any // the body
}

func (r request) curl() string {
	text := "curl -s"
	if r.method != "GET" && (r.method != "POST" || r.body == "") {
		text += " -X " + r.method
	}
	text += " " + r.url + " \\\n  -H \"x-api-key: $MAKOLA_KEY\""
	if r.body != "" {
		text += " -d '" + strings.ReplaceAll(r.body, "'", `'\''`) + "'"
	}
	return text
}

func (r request) javaScript() string {
	var text strings.Builder
	fmt.Fprintf(&text, "const response = await fetch(%q, {\n  method: %q,\n", r.url, r.method)
	if r.body == "" {
		text.WriteString("  headers: { \"x-api-key\": process.env.MAKOLA_KEY },\n});\n")
	} else {
		text.WriteString("  headers: { \"x-api-key\": process.env.MAKOLA_KEY, \"content-type\": \"application/json\" },\n")
		fmt.Fprintf(&text, "  body: JSON.stringify(%s),\n});\n", strings.ReplaceAll(r.body, "\n", "\n  "))
	}
	text.WriteString("console.log(response.status, await response.json());")
	return text.String()
}

func (r request) php() string {
	var text strings.Builder
	fmt.Fprintf(&text, "$curl = curl_init('%s');\ncurl_setopt_array($curl, [\n    CURLOPT_CUSTOMREQUEST => '%s',\n    CURLOPT_RETURNTRANSFER => true,\n    CURLOPT_TIMEOUT => 30,\n", r.url, r.method)
	text.WriteString("    CURLOPT_HTTPHEADER => ['x-api-key: ' . getenv('MAKOLA_KEY'), 'Content-Type: application/json'],\n")
	if r.body != "" {
		fmt.Fprintf(&text, "    CURLOPT_POSTFIELDS => json_encode(%s),\n", literal{null: "null", yes: "true", no: "false", open: "[", end: "]", empty: "new stdClass()", arrow: " => ", quote: phpQuote}.of(r.value, "    "))
	}
	text.WriteString("]);\n$answer = json_decode(curl_exec($curl), true);\nprint_r([curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $answer]);")
	return text.String()
}

func (r request) python() string {
	var text strings.Builder
	text.WriteString("import json, os, urllib.request\n\n")
	data := ""
	if r.body != "" {
		fmt.Fprintf(&text, "body = %s\n", literal{null: "None", yes: "True", no: "False", open: "{", end: "}", empty: "{}", arrow: ": ", quote: strconv.Quote}.of(r.value, ""))
		data = ", data=json.dumps(body).encode()"
	}
	fmt.Fprintf(&text, "request = urllib.request.Request(%q, method=%q%s)\n", r.url, r.method, data)
	text.WriteString("request.add_header(\"x-api-key\", os.environ[\"MAKOLA_KEY\"])\nrequest.add_header(\"content-type\", \"application/json\")\n")
	text.WriteString("with urllib.request.urlopen(request, timeout=30) as response:\n    print(response.status, json.load(response))")
	return text.String()
}

func (r request) golang() string {
	var text strings.Builder
	body := "nil"
	if r.body != "" {
		fmt.Fprintf(&text, "body := strings.NewReader(`%s`)\n", r.body)
		body = "body"
	}
	fmt.Fprintf(&text, "request, err := http.NewRequest(%q, %q, %s)\nif err != nil {\n\treturn err\n}\n", r.method, r.url, body)
	text.WriteString("request.Header.Set(\"x-api-key\", os.Getenv(\"MAKOLA_KEY\"))\nresponse, err := http.DefaultClient.Do(request)\nif err != nil {\n\treturn err\n}\n")
	text.WriteString("defer response.Body.Close()\nanswer, err := io.ReadAll(response.Body)\nfmt.Println(response.Status, string(answer))\nreturn err")
	return text.String()
}

// literal formats JSON values as literals of a language.
type literal struct {
	null, yes, no    string
	open, end, arrow string // texts that begin and end an object, and separate a name from its value
	empty            string // an object without members
	quote            func(string) string
}

// of formats a value. Its members are indented below indent.
func (l literal) of(value any, indent string) string {
	switch v := value.(type) {
	case nil:
		return l.null
	case bool:
		if v {
			return l.yes
		}
		return l.no
	case string:
		return l.quote(v)
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, l.of(item, indent))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		return l.object(v, indent)
	}
	return fmt.Sprint(value) // a json.Number
}

func (l literal) object(v map[string]any, indent string) string {
	if len(v) == 0 {
		return l.empty
	}
	var text bytes.Buffer
	text.WriteString(l.open + "\n")
	for _, name := range slices.Sorted(maps.Keys(v)) {
		fmt.Fprintf(&text, "%s    %s%s%s,\n", indent, l.quote(name), l.arrow, l.of(v[name], indent+"    "))
	}
	text.WriteString(indent + l.end)
	return text.String()
}

// phpQuote quotes a text for PHP, whose single quotes interpret only themselves and the backslash.
func phpQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
