package app

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

var batchesPage = "/app/" + demoTenant + "/batches"

// eachBatching runs a test on a server of each engine. The developer is signed in, and the providers work.
func eachBatching(t *testing.T, fn func(t *testing.T, b *browsed)) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			b := browse(t, func(c *config.Server) {
				if e == db.Postgres {
					c.Database = dbtest.URL(t)
				}
			})
			b.signIn(b.nextLink())
			fn(t, b)
		})
	}
}

var columnSelect = regexp.MustCompile(`(?s)<select id="columns-[a-z]+" name="([a-z]+)">(.*?)</select>`)

var selectedOption = regexp.MustCompile(`value="([^"]*)" selected`)

// uploads sends the form of a new batch with a file, and confirms the proposed columns.
func (b *browsed) uploads(name, file, text string) page {
	b.t.Helper()
	p := b.sendsFile(name, file, []byte(text))
	to := p.Header.Get("Location")
	if to == "" {
		return p
	}
	p = b.want(http.StatusOK, to, "Columns of the file", "Check the rows")
	form := url.Values{"shown": {""}}
	for _, field := range columnSelect.FindAllStringSubmatch(p.text, -1) {
		if chosen := selectedOption.FindStringSubmatch(field[2]); chosen != nil {
			form.Set(field[1], chosen[1])
		}
	}
	return b.do(http.MethodPost, to, form)
}

// sendsFile sends the form of a new batch with a file.
func (b *browsed) sendsFile(name, file string, content []byte) page {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := form.WriteField("name", name); err != nil {
		b.t.Fatal(err)
	}
	part, err := form.CreateFormFile("file", file)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = form.Close()
	}
	r, requestErr := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+batchesPage+"/new", &body)
	if err != nil || requestErr != nil {
		b.t.Fatal(err, requestErr)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.read(r)
}

// leadsTo fails the test unless a form leads to a page.
func (b *browsed) leadsTo(p page, want string) {
	b.t.Helper()
	if to := p.Header.Get("Location"); !strings.HasPrefix(to, want) {
		b.t.Fatalf("it answers %d, leads to %q: %s", p.StatusCode, to, p.text)
	}
}

// A person uploads a file with faults, corrects the rows, sends the batch and downloads its results. A second upload of the
// file is refused. A corrected file shows the rows that were paid, and keeps only its new rows.
func TestBatchPages_fromFileToResults(t *testing.T) {
	eachBatching(t, func(t *testing.T, b *browsed) {
		b.want(http.StatusOK, batchesPage, "No batches", "Upload a file")
		b.want(http.StatusOK, batchesPage+"/new", "multipart/form-data", "template.xlsx")
		file := "Phone Number,Network,Amount,Name\n0240000001,MTN,\"1,200.50\",Ama\n2.33E+11,MTN,10,Kofi\n0240000002,,5,Esi\n0240000001,MTN,\"1,200.50\",Ama\n"
		p := b.uploads("Salaries November", "salaries.csv", file)
		b.leadsTo(p, batchesPage+"/")
		here := p.Header.Get("Location")
		p = b.want(http.StatusOK, here, "2 of 4 rows", "number ", "network is missing; by the number it may be MTN", "No network, numbers that begin with 024 (1 row)", "is also in row 1, with the same amount")
		if strings.Contains(p.text, "Request batch") {
			t.Error("a draft with bad rows can be requested")
		}
		row := url.Values{"number": {"0240000004"}, "network": {"MTN"}, "amount": {"many"}}
		if p := b.do(http.MethodPost, here+"/rows/2", row); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, "must be cedis") {
			t.Errorf("a row that cannot be paid is answered %d: %s", p.StatusCode, p.text)
		}
		row.Set("amount", "10")
		b.leadsTo(b.do(http.MethodPost, here+"/rows/2", row), here)
		b.leadsTo(b.do(http.MethodPost, here+"/settle", url.Values{"key0": {"?024"}, "choice0": {"MTN"}}), here)
		b.want(http.StatusOK, here, "4 of 4 rows")
		b.leadsTo(b.do(http.MethodPost, here+"/rows/3/drop", nil), here)
		b.leadsTo(b.do(http.MethodPost, here+"/rows/4/drop", nil), here)
		p = b.want(http.StatusOK, here, "2 of 4 rows", "GHS 1,210.50", "Request batch")
		ask := url.Values{"id": {p.hidden(t, "id")}, "reason": {"salaries of November"}}
		b.leadsTo(b.do(http.MethodPost, here+"/request", ask), here) // nobody else may approve, so the batch starts at once
		id := here[strings.LastIndex(here, "/")+1:]
		b.ends(id)
		b.want(http.StatusOK, here, "Finished", "2 of 2 rows sent: 2 paid")
		b.want(http.StatusOK, here+"/rows", "233240000001", "success", "Dropped")
		results := b.want(http.StatusOK, here+"/results.csv", "success", "dropped", "b-")
		if n := strings.Count(results.text, "\n"); n != 5 {
			t.Errorf("the results have %d lines: %s", n, results.text)
		}
		if p := b.uploads("Salaries November", "salaries.csv", "Phone Number,Network,Amount,Name\n0240000001,MTN,\"1,200.50\",Ama\n0240000004,MTN,7,Yaw\n"); p.Header.Get("Location") == "" {
			t.Fatalf("the corrected file is answered %d: %s", p.StatusCode, p.text)
		} else {
			here = p.Header.Get("Location")
		}
		b.want(http.StatusOK, here, "1 of 2 rows (GHS 1,200.50) were paid by Salaries November", "Keep only new rows", "Reason for paying rows again")
		ask = url.Values{"id": {uuid.Must(uuid.NewV7()).String()}, "reason": {"salaries"}}
		if p := b.do(http.MethodPost, here+"/request", ask); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, "keep only the new rows") {
			t.Errorf("rows that were paid are answered %d: %s", p.StatusCode, p.text)
		}
		b.leadsTo(b.do(http.MethodPost, here+"/new-rows", nil), here)
		b.want(http.StatusOK, here, "1 of 2 rows", "GHS 7.00")
		b.leadsTo(b.do(http.MethodPost, here+"/discard", nil), batchesPage)
		b.want(http.StatusNotFound, here)
	})
}

// ends waits until a batch has finished and its payouts have ended.
func (b *browsed) ends(id string) {
	b.t.Helper()
	clocktest.Await(b.t, "the batch ends", func() bool {
		is, err := b.batches.Get(b.t.Context(), demoTenant, id)
		open, openErr := b.payments.OpenOfBatch(b.t.Context(), id, 10)
		return err == nil && openErr == nil && is.Status == batch.Finished && open == 0
	})
}

var draftOf = regexp.MustCompile(`/batches/[0-9a-f-]{36}$`)

// A file that is not a table is refused with one sentence, and nothing is stored. Failed rows become a separate draft.
func TestBatchPages_refusedAndRetried(t *testing.T) {
	eachBatching(t, func(t *testing.T, b *browsed) {
		for text, want := range map[string]string{"%PDF-1.7": "is a PDF", "": "no rows"} {
			if p := b.uploads("Salaries", "salaries.csv", text); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, want) {
				t.Errorf("%q is answered %d: %s", text, p.StatusCode, p.text)
			}
		}
		b.want(http.StatusOK, batchesPage, "No batches")
		p := b.uploads("Winners", "winners.csv", "number,network,amount,reference\n0240000001,MTN,10,winner-000001\n0240000002,MTN,20,winner-000001\n")
		b.leadsTo(p, batchesPage+"/")
		here := p.Header.Get("Location")
		b.leadsTo(b.do(http.MethodPost, here+"/request", url.Values{"id": {uuid.Must(uuid.NewV7()).String()}, "reason": {"winners"}}), here)
		b.ends(here[strings.LastIndex(here, "/")+1:])
		b.want(http.StatusOK, here, "1 of 2 rows sent: 1 paid")
		p = b.do(http.MethodPost, here+"/retry", nil)
		if to := p.Header.Get("Location"); !draftOf.MatchString(to) || to == here {
			t.Fatalf("failed rows lead to %q: %s", to, p.text)
		}
		b.want(http.StatusOK, p.Header.Get("Location"), "1 of 1 rows", "GHS 20.00", "Winners (failed rows)")
	})
}

// A person selects the contents of each column and answers the questions about the file. For the next file the columns are
// already selected.
func TestBatchPages_columnsOfAFile(t *testing.T) {
	eachBatching(t, func(t *testing.T, b *browsed) {
		file := "Colour,Line of the person,Firm,Cedis in full\nred,0240000001,MTN,10\nred,#N/A,MTN,11\n,,,21\n"
		p := b.sendsFile("Salaries", "salaries.csv", []byte(file))
		b.leadsTo(p, "/app/"+demoTenant+"/batch-files/")
		here := p.Header.Get("Location")
		b.want(http.StatusOK, here, "All rows of Salaries", "Line of the person", "0240000001", "No column", "Cedis in full (10)")
		form := url.Values{"shown": {""}, "number": {"1"}, "network": {"2"}}
		if p := b.do(http.MethodPost, here, form); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, "Amount in GHS") {
			t.Errorf("a file without amounts is answered %d: %s", p.StatusCode, p.text)
		}
		form.Set("amount", "3")
		p = b.do(http.MethodPost, here, form)
		b.leadsTo(p, batchesPage+"/")
		b.want(http.StatusOK, p.Header.Get("Location"), "Line 4 has the total GHS 21.00, which equals the sum of the rows")
		b.want(http.StatusNotFound, here, "The file is no longer here")
		p = b.sendsFile("Salaries again", "salaries.csv", []byte(file))
		b.want(http.StatusOK, p.Header.Get("Location"), "Columns of an earlier file", `value="3" selected`)
		p = b.sendsFile("Salaries later", "salaries.csv", []byte(strings.Replace(file, "Firm", "Company", 1)))
		b.want(http.StatusOK, p.Header.Get("Location"), "The headings changed since the file of", "New or moved headings: company. Missing headings: firm.")
	})
}

// A person looks up the registered names and sees the differences first. To request the batch, the person types their number.
func TestBatchPages_registeredNames(t *testing.T) {
	eachBatching(t, func(t *testing.T, b *browsed) {
		p := b.uploads("Salaries", "salaries.csv", "number,network,amount,name\n0240000001,MTN,10,Nobody Of That Name\n0240000101,MTN,20,\n")
		b.leadsTo(p, batchesPage+"/")
		here := p.Header.Get("Location")
		b.want(http.StatusOK, here, "Registered names", "Look up registered names")
		b.leadsTo(b.do(http.MethodPost, here+"/names", nil), here)
		clocktest.Await(t, "the names are looked up", func() bool {
			is, err := b.batches.Get(t.Context(), demoTenant, here[strings.LastIndex(here, "/")+1:])
			return err == nil && !is.LooksUp()
		})
		p = b.want(http.StatusOK, here, "Names that differ", "Different", "No name in the file", "Rows with a different registered name")
		ask := url.Values{"id": {p.hidden(t, "id")}, "reason": {"salaries"}, "different": {"2"}}
		if p := b.do(http.MethodPost, here+"/request", ask); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, "must be the number of rows whose registered name differs") {
			t.Errorf("a wrong number is answered %d: %s", p.StatusCode, p.text)
		}
		ask.Set("different", "1")
		b.leadsTo(b.do(http.MethodPost, here+"/request", ask), here)
		b.ends(here[strings.LastIndex(here, "/")+1:])
		b.want(http.StatusOK, here, "2 of 2 rows sent: 2 paid")
	})
}
