package app

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

var newCampaignPage = "/app/" + demoTenant + "/messages/new"

// writes submits the form of a new campaign. file is the content of the uploaded file, or empty for no file.
func (b *browsed) writes(fields map[string]string, file string) page {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if _, given := fields["id"]; !given {
		fields["id"] = b.want(http.StatusOK, newCampaignPage, "Preview campaign").hidden(b.t, "id")
	}
	for name, value := range fields {
		values := []string{value}
		if name == "group" { // several may be chosen
			values = strings.Split(value, ",")
		}
		for _, one := range values {
			if err := form.WriteField(name, one); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	name := ""
	if file != "" {
		name = "recipients.csv"
	}
	part, err := form.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write([]byte(file))
	}
	if err == nil {
		err = form.Close()
	}
	r, requestErr := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+newCampaignPage, &body)
	if err != nil || requestErr != nil {
		b.t.Fatal(err, requestErr)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.read(r)
}

// drafted writes a campaign and returns the path of its draft.
func (b *browsed) drafted() string {
	b.t.Helper()
	p := b.writes(map[string]string{"sender_id": b.ready.SenderID, "message": "Dear {first_name|friend}, our shop opens at eight."}, "Phone,First name\n0240000001,Ama\n0200000001,Kwame ₵\n024,Nobody\n")
	b.leadsTo(p, "/app/"+demoTenant+"/campaign-drafts/")
	return p.Header.Get("Location")
}

// sendForm checks that the page of a draft contains the texts, and returns the form that sends the draft.
func (b *browsed) sendForm(here string, texts ...string) url.Values {
	b.t.Helper()
	p := b.want(http.StatusOK, here, texts...)
	return url.Values{"id": {p.hidden(b.t, "id")}, "digest": {p.hidden(b.t, "digest")}, "credits": {p.hidden(b.t, "credits")}, "reason": {"our new shop"}}
}

// gets waits until a handset of the simulator has a text, and returns all of its texts.
func (b *browsed) gets(number, text string) (all []string) {
	b.t.Helper()
	clocktest.Await(b.t, number+" gets "+text, func() bool {
		all = nil
		for _, m := range b.sim.local.Messages(number) {
			all = append(all, m.Text)
		}
		return strings.Contains(strings.Join(all, "\n"), text)
	})
	return all
}

// A person writes a campaign with fields, checks the texts and the price, and sends it. The campaign is sent once, even if the form
// arrives several times.
func TestCampaignPages_fromFileToHandsets(t *testing.T) {
	eachBatching(t, func(t *testing.T, b *browsed) {
		file := "Phone,First name,Due\n0240000001,Ama,GHS 12.50\n0200000001,Kwame,₵7\n0240000099,,3\n024,Nobody,1\n"
		fields := map[string]string{"sender_id": b.ready.SenderID, "message": "Dear {first_name},\r\nyou owe {due}.", "numbers": "", "group": "", "at": ""}
		p := b.writes(fields, file)
		b.leadsTo(p, "/app/"+demoTenant+"/campaign-drafts/")
		here := p.Header.Get("Location")
		if again := b.writes(fields, file).Header.Get("Location"); again != here {
			t.Errorf("the form that is sent again leads to %s, not to %s", again, here)
		}
		form := b.sendForm(here, "Send to 2 recipients", "Dear Ama,\nyou owe GHS 12.50.", "Dear Kwame,\nyou owe ₵7.", "transactional: sent at any hour", "2 SMS credits", "gsm7", "ucs2", "1 recipients get no text", "998")
		b.want(http.StatusOK, newCampaignPage, "Drafts", "Dear {first_name}")

		other := url.Values{"id": form["id"], "digest": form["digest"], "credits": {"1"}}
		if p := b.do(http.MethodPost, here+"/send", other); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, "has changed since this page was shown") {
			t.Errorf("another price than was shown is answered %d", p.StatusCode)
		}
		for range 3 {
			b.leadsTo(b.do(http.MethodPost, here+"/send", form), here)
		}
		b.want(http.StatusOK, here, "Campaign sent", "Part 1 of 2")
		if all := b.gets("233240000001", "Dear Ama,\nyou owe GHS 12.50."); len(all) != 1 {
			t.Errorf("the texts of a handset: %q", all)
		}
		b.gets("233200000001", "Dear Kwame,\nyou owe ₵7.")
		if all := b.gets("233240000099", ""); len(all) != 0 {
			t.Errorf("a recipient without a value got %q", all)
		}
		b.want(http.StatusOK, "/app/"+demoTenant+"/statement?balance=sms", "998")
	})
}

// A person chooses several contact groups. A number that is in two of them gets one text. The form keeps the choice if a field is
// wrong.
func TestCampaignPages_severalGroups(t *testing.T) {
	eachBatching(t, func(t *testing.T, b *browsed) {
		by := idempotency.Caller{Tenant: demoTenant}
		var ids []string
		for name, numbers := range map[string][]contacts.NewContact{"Shops": {{Phone: "0240000001", FirstName: "Ama"}, {Phone: "0200000001", FirstName: "Kwame"}},
			"Farms": {{Phone: "0240000001", FirstName: "Ama"}, {Phone: "0240000002", FirstName: "Esi"}}} {
			g, _, err := b.contacts.AddGroup(t.Context(), by, name, "")
			if err == nil {
				_, _, err = b.contacts.AddContacts(t.Context(), by, g.ID, numbers)
			}
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, g.ID)
		}
		b.want(http.StatusOK, newCampaignPage, "Shops (2)", "Farms (2)", "A number in several groups gets one text")
		fields := func(message string) map[string]string {
			return map[string]string{"sender_id": b.ready.SenderID, "message": message, "group": strings.Join(ids, ",")}
		}
		p := b.writes(fields("Dear {nobody}"), "")
		for _, id := range ids {
			if !strings.Contains(p.text, `<option value="`+id+`" selected`) {
				t.Errorf("the form of a wrong text has not kept the group %s", id)
			}
		}
		p = b.writes(fields("Akwaaba {first_name}"), "")
		form := b.sendForm(p.Header.Get("Location"), "Send to 3 recipients", "Repeated numbers", "3 SMS credits")
		b.leadsTo(b.do(http.MethodPost, p.Header.Get("Location")+"/send", form), p.Header.Get("Location"))
		for number, name := range map[string]string{"233240000001": "Ama", "233200000001": "Kwame", "233240000002": "Esi"} {
			if all := b.gets(number, "Akwaaba "+name); len(all) != 1 {
				t.Errorf("the texts of %s: %q", name, all)
			}
		}
	})
}

// A campaign that another person must approve waits, and nobody can change it meanwhile.
func TestCampaignPages_approval(t *testing.T) {
	eachBatching(t, func(t *testing.T, b *browsed) {
		admin := b.enlists("admin@demo.example", demoTenant, roles.Admin)
		b.ordered("/app/"+demoTenant+"/policy", "kind", "campaign.send", "amount", "0", "approvers", "1")
		b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"2"}})
		p := b.writes(map[string]string{"sender_id": b.ready.SenderID, "message": "Akwaaba", "numbers": "0240000001, 0200000001"}, "")
		here := p.Header.Get("Location")
		form := b.sendForm(here, "Request approval")
		b.leadsTo(b.do(http.MethodPost, here+"/send", form), here)
		p = b.want(http.StatusOK, here, "Awaiting approval", "Show request")
		if strings.Contains(p.text, "Change text") {
			t.Error("a requested campaign can be changed")
		}
		b.leadsTo(b.do(http.MethodPost, here+"/text", url.Values{"sender_id": {b.ready.SenderID}, "message": {"Other"}}), here)
		b.leadsTo(b.do(http.MethodPost, here+"/discard", nil), newCampaignPage)
		request := "/app/" + demoTenant + "/acts/" + form.Get("id")
		b.want(http.StatusOK, request, "Send texts from AdomStores to 2 recipients", "Akwaaba")
		b.http.Jar = held{b.http.Jar.Cookies(mustParse(t, b.base))[0].Name: {Name: b.http.Jar.Cookies(mustParse(t, b.base))[0].Name, Value: admin.Token}}
		b.post(http.StatusSeeOther, request+"/approve", "digest", b.want(http.StatusOK, request, "Approve and apply", "Akwaaba").hidden(t, "digest"))
		b.gets("233240000001", "Akwaaba")
		b.leadsTo(b.do(http.MethodGet, here, nil), "/app/"+demoTenant+"/messages/")
	})
}

// A refusal names the bad field, and its page shows the entered values again.
func TestCampaignPages_refusals(t *testing.T) {
	eachBatching(t, func(t *testing.T, b *browsed) {
		for _, bad := range []struct {
			message, numbers, file, at, want string
		}{
			{"Hi {name}", "0240000001", "", "", "has the field {name}, which no recipient has"},
			{"Hi", "nobody", "", "", "none of the 1 is"},
			{"Hi", "", "", "", "must have at least one valid number"},
			{"Hi", "", "%PDF-1.7", "", "is a PDF"},
			{"Hi", "0240000001", "", "2020-01-01T10:00", "must be a time in the next 90 days"},
			{"Hi", "0240000001", "", "soon", "must be a date and a time"},
		} {
			p := b.writes(map[string]string{"sender_id": b.ready.SenderID, "message": bad.message, "numbers": bad.numbers, "at": bad.at}, bad.file)
			if p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, bad.want) || !strings.Contains(p.text, bad.message) {
				t.Errorf("%+v is answered %d: %s", bad, p.StatusCode, p.text)
			}
		}
	})
}

// passes moves the server's clock for longer than a session lasts.
func (b *browsed) passes(by time.Duration) {
	b.t.Helper()
	for ; by > 0; by -= 5 * time.Hour {
		b.moves(min(by, 5*time.Hour))
		b.forget()
		b.signIn(b.nextLink())
	}
}

// The pages of a promotional campaign of Saturday 21:30 show the time at which it will start. It waits until then. If it is stopped
// while it waits, its credits are returned.
func TestCampaignPages_promotionalWaits(t *testing.T) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			b := browse(t, func(c *config.Server) {
				c.Storage = freshStorage(t, e)
				if err := c.SMSHours.UnmarshalText([]byte("mon-sat 08:00-19:00")); err != nil {
					t.Fatal(err)
				}
			})
			b.signIn(b.nextLink())
			if err := b.db.Write(t.Context(), func(tx *db.Tx) error {
				_, err := b.senders.SetClass(tx, demoTenant, b.ready.SenderID, senderid.Promotional)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			now := b.clock.Now().UTC()
			saturday := time.Date(now.Year(), now.Month(), now.Day()+int(time.Saturday-now.Weekday()), 21, 30, 0, 0, time.UTC)
			if saturday.Before(now) {
				saturday = saturday.AddDate(0, 0, 7)
			}
			b.passes(saturday.Sub(now))
			clocktest.Await(t, "the class of the sender ID is known", func() bool {
				return strings.Contains(b.get(newCampaignPage).text, "AdomStores (promotional)")
			})
			monday := saturday.AddDate(0, 0, 2).Format("2 Jan")
			var sent []string
			for _, text := range []string{"Kenkey at half price", "Banku at half price"} {
				here := b.writes(map[string]string{"sender_id": b.ready.SenderID, "message": text, "numbers": "0240000001"}, "").Header.Get("Location")
				form := b.sendForm(here, "promotional: sent in these hours: mon-sat 08:00-19:00", monday, "08:00")
				b.leadsTo(b.do(http.MethodPost, here+"/send", form), here)
				to := b.do(http.MethodGet, here, nil).Header.Get("Location")
				b.want(http.StatusOK, to, "Begins", monday, "08:00", "Stop campaign")
				sent = append(sent, to)
			}
			stop := sent[1] + "/stop"
			b.post(http.StatusSeeOther, stop, "id", b.want(http.StatusOK, stop).hidden(t, "id"), "reason", "the wrong price")
			b.until(sent[1], "Stopped")
			b.want(http.StatusOK, "/app/"+demoTenant+"/statement?balance=sms", "999")
			if all := b.sim.local.Messages("233240000001"); len(all) != 0 {
				t.Errorf("texts on Saturday night: %v", all)
			}
			b.passes(34*time.Hour + 31*time.Minute)
			if all := b.gets("233240000001", "Kenkey"); len(all) != 1 {
				t.Errorf("the texts of Monday: %q", all)
			}
		})
	}
}
