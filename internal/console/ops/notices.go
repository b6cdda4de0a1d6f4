package ops

import (
	"fmt"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/page"
)

// noticesShown is the number of messages on a page.
const noticesShown = 50

// channelWords name the channels.
var channelWords = map[notice.Channel]string{notice.Email: "E-mail", notice.SMS: "SMS", notice.Hook: "Hook"}

// noticeBadges are the states of messages.
var noticeBadges = map[notice.State]page.Badge{
	notice.Pending: {Tone: page.Open, Word: "Waiting"}, notice.Sent: {Tone: page.Good, Word: "Delivered"}, notice.Failed: {Tone: page.Bad, Word: "Failed"},
}

// noticeColumns are the columns of the list of messages.
func noticeColumns() []console.Column[notice.Message] {
	type message = notice.Message
	return []console.Column[message]{
		console.Time("Time", "", func(m message) time.Time { return m.MadeAt }),
		console.Text("Subject", "", func(m message) string { return m.Title }),
		console.Text("To", "", func(m message) string { return m.Address }),
		console.Text("Channel", "", func(m message) string { return channelWords[m.Channel] }).Laid(console.Minor),
		console.Text("Topic", "", func(m message) string { title, _ := m.Topic.Title(); return title }).Laid(console.Minor),
		console.Shown("Status", func(m message) templ.Component { return page.Mark(noticeBadges[m.State]) }),
		console.Text("Last error", "", func(m message) string { return m.Error }).Laid(console.Minor),
	}
}

// noticeList shows the messages that were sent to people, with a red line for each channel that fails. It has no bodies.
func (ps *Pages) noticeList(v *console.Visit) (console.Answer, error) {
	health, err := ps.Notices.Health(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	list, err := ps.Notices.Messages(v.Ctx, v.Param("before"), noticesShown+1)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Notices", Lead: "Messages that this server sent to people, for 90 days.",
		Actions: []page.Link{{Href: "/account/notices", Text: "Your notices"}}, Empty: page.Empty{Title: "No notices yet", Text: "Messages to people appear here."}}
	if len(list) > noticesShown {
		list = list[:noticesShown]
		l.Next = v.Query("before", list[noticesShown-1].ID)
	}
	l.Grid = console.Grid(noticeColumns(), list, nil)
	notes := ps.channelNotes(health)
	if slices.Contains(ps.Notices.Channels(), notice.Hook) {
		notes = append(notes, page.ActionButton("/ops/notices/test", "Send test notice to the hook", "quiet"))
	}
	return console.Answer{Title: l.Title, Body: page.Join(append(notes, page.Listing(l))...)}, nil
}

// testHook sends a test notice to the hook.
func (ps *Pages) testHook(v *console.Visit) (console.Answer, error) {
	return console.Answer{To: "/ops/notices"}, ps.Notices.SendTest(v.Ctx, v.Who.Person, notice.Hook)
}

// channelNotes warn if nobody is notified, and name failing channels.
func (ps *Pages) channelNotes(health []notice.Health) (notes []templ.Component) {
	if !ps.Notices.Enabled() {
		return []templ.Component{page.Note(page.Bad, "Nobody is notified", "No mail server is configured. People see requests and problems only on these pages.")}
	}
	for _, h := range health {
		if h.Fails() {
			notes = append(notes, page.Note(page.Bad, channelWords[h.Channel]+" fails", fmt.Sprintf("%s wait, the oldest since %s. The last answer: %s", page.Count(h.Waiting), page.When(h.Oldest), h.Error)))
		}
	}
	return notes
}
