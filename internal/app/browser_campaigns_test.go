package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/test/dbtest"
)

// A person writes a campaign with fields from a file, corrects the text, checks the text of each recipient, and sends it once,
// on both engines.
func TestBrowser_campaignByFile(t *testing.T) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			b := browse(t, func(c *config.Server) { c.Storage = freshStorage(t, e) })
			tab := b.tab(t, b.ready.SignInURL)
			file := filepath.Join(t.TempDir(), "customers.csv")
			if err := os.WriteFile(file, []byte("Phone,First name,Due\n0240000001,Ama,GHS 12.50\n0200000001,Kwame,GHS 7\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			tab.Goto("/app/" + demoTenant + "/messages")
			tab.Click(`main a[href$="/messages/new"]`)
			tab.Fill("[name=message]", "Dear {first_name}, you owe {amount}.")
			tab.Run(chromedp.SetUploadFiles("[name=file]", []string{file}, chromedp.ByQuery))
			tab.Click(`form[action$="/messages/new"] button`)
			tab.Reads("main", "has the field {amount}, which no recipient has. The fields are {first_name}, {last_name}, {email}, {due}")
			tab.Obeys()
			tab.Fill("[name=message]", "Dear {first_name}, you owe {due}.")
			tab.Run(chromedp.SetUploadFiles("[name=file]", []string{file}, chromedp.ByQuery))
			tab.Click(`form[action$="/messages/new"] button`)
			tab.Reads("main", "Dear Kwame, you owe GHS 7.")
			tab.Reads("main", "2 SMS credits")
			tab.Obeys()
			tab.Click(`main a[href$="/text"]`)
			tab.Fill("[name=message]", "Dear {first_name}, please pay {due}.")
			tab.Click(`form[action$="/text"] button`)
			tab.Reads("main", "Dear Kwame, please pay GHS 7.")
			tab.Click(`form[action$="/send"] button`)
			tab.Reads("main", "Campaign from AdomStores")
			tab.Obeys()
			b.gets("233240000001", "Dear Ama, please pay GHS 12.50.")
		})
	}
}
