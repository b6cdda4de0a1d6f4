package reconcile

import "github.com/makola/makola/internal/sheet"

// survey reads the whole file and finds the way to read it. saved is the layout that a person confirmed for the
// source before; a file with another heading is refused. answers are a person's answers to questions, and columns by
// field.
func survey(file *sheet.File, p Profile, saved *Layout, answers Layout) (*reader, error) {
	r := &reader{file: file, Reading: Reading{Profile: p, Layout: answers}, saved: saved != nil}
	if saved != nil {
		r.Layout = *saved
	}
	if err := r.findHeading(); err != nil {
		return nil, err
	}
	if len(r.Columns) == 0 {
		return r, nil // a person must choose the columns first
	}
	for _, step := range []func() error{r.evidence, r.chain} {
		if err := step(); err != nil || len(r.Questions) > 0 {
			return r, err
		}
	}
	return r, nil
}
