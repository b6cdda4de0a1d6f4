package app

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

const statementsPage = "/ops/statements"

// givesStatement submits the form of an import with a file.
func (b *browsed) givesStatement(source, bank, text string) page {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, field := range [][2]string{{"source", source}, {"bank", bank}, {"mode", "test"}} {
		if err := form.WriteField(field[0], field[1]); err != nil {
			b.t.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("file", "statement.csv")
	if err == nil {
		_, err = part.Write([]byte(text))
	}
	if err == nil {
		err = form.Close()
	}
	r, requestErr := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+statementsPage+"/new", &body)
	if err != nil || requestErr != nil {
		b.t.Fatal(err, requestErr)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.read(r)
}

// A person imports the first file of a bank account, confirms its columns and answers a question. The next file of the account is read
// without questions, and a file with other headings is refused.
func TestStatementPages_import(t *testing.T) {
	b := browse(t)
	b.signIn(b.nextLink())
	b.want(http.StatusOK, statementsPage, "No statements", "Import a statement")
	b.want(http.StatusOK, statementsPage+"/new", "multipart/form-data", "MTN MoMo portal, collection")
	const heading = "Date,Remarks,Debit,Credit,Balance\n"
	p := b.givesStatement("bank", "gcb", heading+"03/04/2026,CHARGES,1.00,,99.00\n04/05/2026,DEPOSIT,,2.00,101.00\n")
	b.leadsTo(p, statementsPage+"/drafts/")
	draft := p.Header.Get("Location")
	b.want(http.StatusOK, draft, "Check how the file is read", "Do the dates begin with the day or with the month?", "CHARGES", "5: Balance")
	columns := url.Values{"column_date": {"0"}, "column_text": {"1"}, "column_debit": {"2"}, "column_credit": {"3"}, "column_balance": {"4"}}
	if p := b.do(http.MethodPost, draft, columns); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, "is required") {
		t.Fatalf("without an answer it answers %d: %s", p.StatusCode, p.text)
	}
	columns.Set("dates", "dmy")
	p = b.do(http.MethodPost, draft, columns)
	b.leadsTo(p, statementsPage+"/")
	here := p.Header.Get("Location")
	b.want(http.StatusOK, here, "2: 2 new, 0 changed", "3 Apr 2026 to 4 May 2026", "GHS 101.00", "Complete")
	b.want(http.StatusNotFound, draft)

	p = b.givesStatement("test/bank/gcb", "", heading+"05/05/2026,CHARGES,1.00,,100.00\n")
	b.leadsTo(p, statementsPage+"/")
	b.want(http.StatusOK, p.Header.Get("Location"), "1: 1 new, 0 changed")
	if p = b.givesStatement("test/bank/gcb", "", strings.Replace(heading, "Debit,Credit", "Credit,Debit", 1)+"06/05/2026,CHARGES,,1.00,99.00\n"); !strings.Contains(p.text, "the headings are not those of the files before") {
		t.Errorf("a file with moved columns answers %d: %s", p.StatusCode, p.text)
	}
	if p = b.givesStatement("test/bank/gcb", "", heading+"06/05/2026,CHARGES,x,,99.00\n"); !strings.Contains(p.text, "row 2, column Debit") {
		t.Errorf("a broken file answers %d: %s", p.StatusCode, p.text)
	}
	b.want(http.StatusOK, statementsPage, "Bank statement, gcb (test)", "5 May 2026")
	b.exceptionsHaveOwners()
}

// exceptionsHaveOwners matches the lines of the test, which match no payment, and assigns one of the exceptions.
func (b *browsed) exceptionsHaveOwners() {
	b.t.Helper()
	const list = "/ops/exceptions"
	if err := b.reconcile.Match(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	p := b.want(http.StatusOK, list, "Only in the statement", "Bank statement, gcb (test)")
	b.want(http.StatusOK, list+"?kind=amount", "No exception matches these filters")
	b.want(http.StatusOK, list+"?source=test%2Fbank%2Fgcb&kind=theirs_only&owner=none&least=1.50&most=2.50", "GHS 2.00")
	b.want(http.StatusUnprocessableEntity, list+"?least=much")
	here := regexp.MustCompile(`/ops/exceptions/[0-9a-f-]{36}`).FindString(p.text)
	b.want(http.StatusOK, here, "no payment of ours has this line", "In the statement", "statement.csv, row ", "Imported by", "Assign to me")
	b.leadsTo(b.do(http.MethodPost, here+"/own", nil), here)
	b.leadsTo(b.do(http.MethodPost, here+"/note", url.Values{"note": {"asked the bank"}}), here)
	b.want(http.StatusOK, here, "asked the bank", "Remove my assignment", developerName)
	b.want(http.StatusOK, list+"?owner=me", "Only in the statement")
	b.leadsTo(b.do(http.MethodPost, here+"/leave", nil), here)
	id := here[strings.LastIndex(here, "/")+1:]
	for _, text := range []string{"Match with a payment", "Put into suspense", "Write off"} {
		b.want(http.StatusOK, here, text)
	}
	p = b.requestsEnd(list+"/write-off", id, nil)
	b.want(http.StatusOK, p.Header.Get("Location"), "Write off an exception of GHS", "statement.csv, row ")
	b.want(http.StatusOK, here, "Written off")
	for _, form := range []string{"fee", "suspend", "release", "adopt", "match", "match-all", "end", "end-all"} {
		b.want(http.StatusOK, list+"/"+form, "Exception")
	}
}

// requestsEnd submits the form that resolves an exception. Nobody else may approve it here, so it is applied at once.
func (b *browsed) requestsEnd(form, exception string, more url.Values) page {
	b.t.Helper()
	shown := b.want(http.StatusOK, form+"?exception="+exception, exception)
	values := url.Values{"id": {shown.hidden(b.t, "id")}, "exception": {exception}, "reason": {"as the bank says"}}
	for name, value := range more {
		values[name] = value
	}
	p := b.do(http.MethodPost, form, values)
	b.leadsTo(p, "/ops/acts/")
	return p
}
