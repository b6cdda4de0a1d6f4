package batches

import (
	"context"
	"net/http"
	"strings"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/sheet"
)

// results returns the rows with their results as a file.
func (ps *Pages) results(v *console.Visit) (console.Answer, error) {
	b, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	format := sheet.CSV
	if strings.HasSuffix(v.Route.Path, "."+string(sheet.XLSX)) {
		format = sheet.XLSX
	}
	return console.Answer{File: v.FileName("results-"+b.Code, "", b.CreatedAt, v.Now()) + "." + string(format), Media: format.MediaType(), Write: func(w http.ResponseWriter) error {
		return ps.Batches.WriteResults(v.Ctx, w, format, b.Tenant, b.ID)
	}}, nil
}

// retry makes a draft of the rows that failed.
func (ps *Pages) retry(v *console.Visit) (console.Answer, error) {
	return ps.again(v, " (failed rows)", ps.Batches.Retry)
}

// copy makes a draft of all rows.
func (ps *Pages) copy(v *console.Visit) (console.Answer, error) {
	return ps.again(v, " (copy)", ps.Batches.Copy)
}

func (ps *Pages) again(v *console.Visit, suffix string, do func(ctx context.Context, u batch.Upload, id string) (batch.Batch, bool, error)) (console.Answer, error) {
	b, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	made, _, err := do(v.Ctx, batch.Upload{Tenant: b.Tenant, Name: b.Name + suffix, Requester: v.Who.Person.ID}, b.ID)
	if err != nil {
		return ps.done(v, b, err)
	}
	return console.Answer{To: here(v, made)}, nil
}
