package sheet

import (
	"encoding/xml"
	"regexp"
	"strconv"
	"strings"
)

// maxStyles is the maximum number of cell styles of a workbook. Excel writes at most that many.
const maxStyles = 65_490

// readStyles finds the styles with which a number is a date.
func (w *workbook) readStyles(name string) error {
	dates, within := map[int]bool{}, false
	return w.each(name, func(p *part, e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			id, err := strconv.Atoi(attribute(e, "numFmtId"))
			if err != nil || len(dates) > maxStyles {
				return errDamaged()
			}
			dates[id] = datePattern(attribute(e, "formatCode"))
		case "cellXfs":
			within = true
		case "cellStyleXfs", "cellStyles", "dxfs":
			within = false
		case "xf":
			if !within {
				return nil
			}
			id, _ := strconv.Atoi(attribute(e, "numFmtId")) // a missing id means General
			own, has := dates[id]
			w.dates = append(w.dates, has && own || !has && builtInDate(id))
			if len(w.dates) > maxStyles {
				return errDamaged()
			}
		}
		return nil
	})
}

// builtInDate reports whether a built-in number format shows a date (ECMA-376, 18.8.30).
func builtInDate(id int) bool {
	return id >= 14 && id <= 22 || id >= 27 && id <= 36 || id >= 45 && id <= 47 || id >= 50 && id <= 58
}

// notPattern matches the parts of a number format that are not codes: quoted and escaped texts, colours and
// conditions.
var notPattern = regexp.MustCompile(`"[^"]*"|\\.|_.|\*.|\[[^\]]*\]`)

// datePattern reports whether a number format shows a date or a time.
func datePattern(format string) bool {
	first, _, _ := strings.Cut(notPattern.ReplaceAllString(format, ""), ";")
	return strings.ContainsAny(strings.ToLower(first), "ymdhs") && !strings.ContainsAny(first, "0#?")
}
