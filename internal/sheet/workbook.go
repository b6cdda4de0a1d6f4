package sheet

import (
	"archive/zip"
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/makola/makola/internal/problem"
)

// maxTexts is the maximum number of different texts of a workbook.
const maxTexts = 2 << 20

// workbook is an XLSX file: its sheets in order, its texts, and which of its styles are dates.
type workbook struct {
	archive *zip.Reader
	sheets  []worksheet
	dates   []bool // by style
	from    int    // year of day 1: 1900 or 1904
	texts   texts
}

type worksheet struct {
	name   string
	part   string
	hidden bool
}

// texts has the shared texts of a workbook. They are stored after the file in its copy.
type texts struct {
	file io.ReaderAt
	ends []int64 // end of each text; the first begins at the end of the file
	from int64
}

func (t *texts) at(i int) (string, error) {
	if i < 0 || i >= len(t.ends) {
		return "", errDamaged()
	}
	start := t.from
	if i > 0 {
		start = t.ends[i-1]
	}
	text := make([]byte, t.ends[i]-start)
	if _, err := t.file.ReadAt(text, start); err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("sheet: read the uploaded file: %w", err)
	}
	return string(text), nil
}

// foreignArchives has parts of archives of other formats, and what the user should do.
var foreignArchives = []struct{ part, why string }{
	{"xl/workbook.bin", "is an .xlsb workbook: save it as .xlsx"},
	{"mimetype", "is an .ods file of LibreOffice or OpenOffice: save it as .xlsx"},
	{"Index/Document.iwa", "is a file of Numbers: export it as Excel or CSV"},
	{"word/document.xml", "is a text document: save its table as XLSX or CSV"},
}

// openWorkbook reads everything of a workbook except its sheets.
func openWorkbook(file *os.File, size int64) (*workbook, error) {
	limited := &budget{ReaderAt: io.NewSectionReader(file, 0, size), left: maxDirectory}
	archive, err := zip.NewReader(limited, size)
	if err != nil {
		return nil, errDamaged()
	}
	limited.left = -1
	w := &workbook{archive: archive, from: 1900}
	main, err := w.mainPart()
	if err != nil {
		return nil, err
	}
	targets, err := w.relations(path.Join(path.Dir(main), "_rels", path.Base(main)+".rels"), path.Dir(main))
	if err != nil {
		return nil, err
	}
	if err := w.readSheets(main, targets); err != nil {
		return nil, err
	}
	for _, target := range targets {
		switch path.Base(target.kind) {
		case "styles":
			err = w.readStyles(target.part)
		case "sharedStrings":
			err = w.readTexts(file, size, target.part)
		}
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// mainPart returns the name of the workbook's main part.
func (w *workbook) mainPart() (string, error) {
	for _, foreign := range foreignArchives {
		if slices.ContainsFunc(w.archive.File, func(f *zip.File) bool { return f.Name == foreign.part }) {
			return "", refuse(foreign.why)
		}
	}
	if !slices.ContainsFunc(w.archive.File, func(f *zip.File) bool { return f.Name == "_rels/.rels" }) {
		return "", refuse("is an archive and not a workbook: unpack it and use the table in it")
	}
	targets, err := w.relations("_rels/.rels", "")
	if err != nil {
		return "", err
	}
	for _, target := range targets {
		if path.Base(target.kind) == "officeDocument" {
			return target.part, nil
		}
	}
	return "", errDamaged()
}

// relation is a reference from one part to another.
type relation struct{ id, kind, part string }

func (w *workbook) relations(name, folder string) ([]relation, error) {
	var all []relation
	err := w.each(name, func(_ *part, e xml.StartElement) error {
		if e.Name.Local != "Relationship" || attribute(e, "TargetMode") == "External" {
			return nil
		}
		target := attribute(e, "Target")
		if !strings.HasPrefix(target, "/") {
			target = path.Join(folder, target)
		}
		all = append(all, relation{attribute(e, "Id"), attribute(e, "Type"), strings.TrimPrefix(target, "/")})
		if len(all) > maxSheets {
			return errDamaged()
		}
		return nil
	})
	return all, err
}

// maxSheets is the maximum number of sheets, and of relations, of a workbook.
const maxSheets = 1_000

func (w *workbook) readSheets(main string, targets []relation) error {
	err := w.each(main, func(_ *part, e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			if on := attribute(e, "date1904"); on == "1" || on == "true" {
				w.from = 1904
			}
		case "sheet":
			i := slices.IndexFunc(targets, func(r relation) bool { return r.id == attribute(e, "id") })
			if i < 0 || len(w.sheets) == maxSheets {
				return errDamaged()
			}
			if path.Base(targets[i].kind) == "worksheet" {
				w.sheets = append(w.sheets, worksheet{attribute(e, "name"), targets[i].part, attribute(e, "state") != "" && attribute(e, "state") != "visible"})
			}
		}
		return nil
	})
	if err == nil && len(w.sheets) == 0 {
		err = errDamaged()
	}
	return err
}

// readTexts copies the shared texts to the end of the file's copy.
func (w *workbook) readTexts(file *os.File, size int64, name string) error {
	out, at := bufio.NewWriter(io.NewOffsetWriter(file, size)), size
	err := w.each(name, func(p *part, e xml.StartElement) error {
		if e.Name.Local != "si" {
			return nil
		}
		text, err := p.text()
		if err != nil {
			return err
		}
		if len(w.texts.ends) == maxTexts {
			return refuse(fmt.Sprintf("has more than %d different texts: divide the table", maxTexts))
		}
		at += int64(len(text))
		w.texts.ends = append(w.texts.ends, at)
		_, err = out.WriteString(text)
		return err
	})
	if err != nil {
		return err
	}
	w.texts.file, w.texts.from = file, size
	return out.Flush()
}

// each calls do for the start of every element of a part.
func (w *workbook) each(name string, do func(*part, xml.StartElement) error) error {
	p, err := openPart(w.archive, name)
	if err != nil {
		return err
	}
	defer p.close()
	for {
		e, err := p.element()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(p, e); err != nil {
			return err
		}
	}
}

// isRefusal reports whether an error is about the file's content.
func isRefusal(err error) bool { return problem.Is(err, problem.Invalid) }
