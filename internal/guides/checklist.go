package guides

import (
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	extended "github.com/yuin/goldmark/extension/ast"
	render "github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// box is the sign before an item of a checklist.
const box = `<span class="box" aria-hidden="true"></span> `

// checklists renders the boxes of checklists as signs. Disabled inputs would have no names for a screen reader.
type checklists struct{}

// RegisterFuncs registers the renderer of boxes.
func (checklists) RegisterFuncs(r render.NodeRendererFuncRegisterer) {
	r.Register(extended.KindTaskCheckBox, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		_, err := w.WriteString(box)
		return ast.WalkContinue, err
	})
}

// withChecklists is the option that renders checklists. Its renderer comes before the extension's own.
func withChecklists() goldmark.Option {
	return goldmark.WithRendererOptions(render.WithNodeRenderers(util.Prioritized(checklists{}, 100)))
}
