package guides

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

//go:embed reference.html
var referenceText string

// group is the endpoints of one tag.
type group struct {
	Name, Description string
	Operations        []operation
}

// Anchor is the id of the group's heading. It differs from the ids of endpoints, because an endpoint may have
// the name of its group.
func (g group) Anchor() string { return "endpoints-" + strings.ReplaceAll(g.Name, " ", "-") }

// reference adds the page of the interface.
func (r *renderer) reference(title string) error {
	var d document
	if err := json.Unmarshal(r.values.Document, &d); err != nil {
		return fmt.Errorf("guides: parse the OpenAPI document: %w", err)
	}
	groups, err := d.groups(r.values.URL)
	if err != nil {
		return err
	}
	page, err := template.New("reference").Funcs(template.FuncMap{"prose": r.prose}).Parse(referenceText)
	if err != nil {
		return fmt.Errorf("guides: parse the template of the reference: %w", err)
	}
	var body bytes.Buffer
	if err := page.Execute(&body, map[string]any{"Groups": groups, "Webhooks": d.hooks()}); err != nil {
		return fmt.Errorf("guides: render the reference: %w", err)
	}
	return r.lay("reference", title, http.StatusOK, template.HTML(body.String())) // made by html/template
}

// groups returns the endpoints by tag, with samples for the server at base.
func (d *document) groups(base string) ([]group, error) {
	groups := make([]group, len(d.Tags))
	at := map[string]int{}
	for i, t := range d.Tags {
		groups[i], at[t.Name] = group{Name: t.Name, Description: t.Description}, i
	}
	for _, path := range d.Paths {
		for _, method := range path.Value {
			o := method.Value
			o.Method, o.Path = strings.ToUpper(method.Name), path.Name
			d.complete(&o, "path", "query")
			var err error
			if o.Samples, err = samples(base, o); err != nil {
				return nil, err
			}
			for _, tag := range o.Tags {
				g := &groups[at[tag]]
				g.Operations = append(g.Operations, o)
			}
		}
	}
	return groups, nil
}

// hooks returns the webhooks.
func (d *document) hooks() []operation {
	var all []operation
	for _, hook := range d.Webhooks {
		for _, method := range hook.Value {
			o := method.Value
			d.complete(&o, "header")
			all = append(all, o)
		}
	}
	return all
}

// prose renders a description, which is Markdown.
func (r *renderer) prose(text string) (template.HTML, error) {
	var out bytes.Buffer
	err := r.markdown.Convert([]byte(text), &out)
	return template.HTML(out.String()), err // made of our own document; Markdown drops HTML
}
