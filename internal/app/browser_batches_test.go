package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/makola/makola/internal/test/browsertest"
)

// salaries is a file of sixty rows with faults of spreadsheets: a lost zero in row 10, an exponent in row 5, no network in row 15,
// row 20 as row 1, and a name that is not the registered one in row 30.
func salaries(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("MoMo number,Telco,Net pay,Name\n")
	for i := 1; i <= 60; i++ {
		number, network, name := fmt.Sprintf("0240001%03d", 300+i), "MTN", ""
		switch i {
		case 5:
			number = "2.33E+11"
		case 10:
			number = number[1:]
		case 15:
			network = ""
		case 20:
			number = "0240001301"
		case 30:
			name = "Nobody Of That Name"
		}
		fmt.Fprintf(&text, "%s,%s,10,%s\n", number, network, name)
	}
	path := filepath.Join(t.TempDir(), "salaries.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sends uploads a file in the browser, confirms its columns, and returns the page of the draft.
func sends(tab *browsertest.Tab, name, file string) (here string) {
	tab.Goto(batchesPage + "/new")
	tab.Fill("[name=name]", name)
	tab.Run(chromedp.SetUploadFiles("[name=file]", []string{file}, chromedp.ByQuery))
	tab.Click(`form[action$="/batches/new"] button`)
	tab.Reads("main", "Columns of the file")
	tab.Click(`form[action*="/batch-files/"] button.main`)
	tab.Reads("main", "Rows to pay")
	tab.Run(chromedp.Evaluate(`location.pathname`, &here))
	return here
}

// A person uploads a file with faults, corrects each fault in the browser, and requests the batch. Another person approves the
// batch from its page. Each row is paid once, and a second upload of the file is recognised.
func TestBrowser_salariesByFile(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	approver := b.holds("1.00")
	tab, file := b.tab(t, b.nextLink()), salaries(t)
	here := sends(tab, "Salaries November", file)
	tab.Reads("main", "58 of 60 rows")
	tab.Click(`main a[href="` + here + `/rows/5"]`)
	tab.Fill("[name=number]", "0240001305")
	tab.Click(`form[action="` + here + `/rows/5"] button`)
	tab.Reads("main", "59 of 60 rows")
	tab.Fill("[name=choice0]", "MTN")
	tab.Click(`form[action="` + here + `/settle"] button`)
	tab.Reads("main", "60 of 60 rows")
	tab.Click(`main a[href="` + here + `/rows/20"]`)
	tab.Click(`form[action="` + here + `/rows/20/drop"] button`)
	tab.Reads("main", "59 of 60 rows")
	tab.Click(`form[action="` + here + `/names"] button`)
	tab.Reads("main", "Nobody Of That Name") // the page reloads itself when the lookup has ended
	tab.Fill("[name=reason]", "salaries of November", "[name=different]", "1")
	tab.Click(`form[action="` + here + `/request"] button`)
	tab.Reads("main", "Pay 59 people of the batch Salaries November")
	tab.Obeys()

	second := b.enters(t, approver)
	second.Goto("/app/" + demoTenant + "/acts")
	second.Click(`main a[href^="/app/` + demoTenant + `/acts/"]`)
	second.Reads("main", "1 rows go to people whose registered name differs")
	second.Click(`form[action$="/approve"] button`)
	second.Reads("main", "Applied")
	second.Goto(here)
	second.Reads("main", "59 of 59 rows sent: 59 paid, 0 failed, 0 open")
	second.Obeys()

	sends(tab, "Salaries November", file)
	tab.Reads("main", "were paid by Salaries November")
	tab.Reads("main", "Keep only new rows")
	tab.Obeys()
}
