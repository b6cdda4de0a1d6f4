package console

import (
	"strings"

	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
)

// choiceWords name the choices, in the order of the form.
var choiceWords = []page.Option{{Value: string(notice.AtOnce), Text: "At once"}, {Value: string(notice.Daily), Text: "Once a day"}, {Value: string(notice.Never), Text: "Never"}}

// noticesForm returns the form with the choice of a time for each topic's notices.
func (v *Visit) noticesForm() (page.Form, error) {
	f := page.Form{ID: "notices", Action: "/account/notices", Submit: "Save choices"}
	list, err := v.console.Notices.Choices(v.Ctx, v.Who)
	for _, c := range list {
		field := page.Field{Name: string(c.Topic), Label: c.Title, Hint: c.Means + ".", Value: string(c.Choice), Options: choiceWords}
		if c.Kept {
			field.Options = choiceWords[:2]
			field.Hint += " An owner cannot choose never."
		}
		f.Fields = append(f.Fields, field)
	}
	return f, err
}

// noticeInputs are the fields of the form.
func noticeInputs() (list []Input) {
	for _, t := range notice.Topics() {
		list = append(list, Input{string(t), 20})
	}
	return list
}

// noticesView is the page of the visitor's own notices.
type noticesView struct {
	lead, done string
	enabled    bool
	choices    page.Form
	phone      *page.Form // nil: no notices by SMS
	tests      []noticeTest
}

// noticeTest is a button that sends a test notice.
type noticeTest struct {
	channel notice.Channel
	text    string
}

// ownNotices shows when and where the visitor is notified.
func ownNotices(v *Visit) (Answer, error) { return v.noticesAnswer(nil, "") }

// noticesAnswer shows the page after an action, or with the errors of a form.
func (v *Visit) noticesAnswer(fault error, done string) (Answer, error) {
	f, err := v.noticesForm()
	if err != nil {
		return Answer{}, err
	}
	n := v.console.Notices
	view := noticesView{lead: "Choose when you are notified.", done: done, enabled: n.Enabled(), choices: f}
	for _, c := range n.Channels() {
		switch c {
		case notice.Email:
			view.lead = "Choose when you are notified by mail to " + page.Visible(v.Who.Person.Email) + "."
			view.tests = append(view.tests, noticeTest{c, "Send test mail"})
		case notice.SMS:
			if view.phone, err = v.phoneForm(); err != nil {
				return Answer{}, err
			}
			if view.phone.Fields[0].Value != "" {
				view.tests = append(view.tests, noticeTest{c, "Send test SMS"})
			}
		}
	}
	a := Answer{Title: "Your notices"}
	if fault != nil {
		a.Wrong = true
		if _, of := problem.From(fault).Fields["number"]; of && view.phone != nil {
			*view.phone = Faulty(*view.phone, fault)
		} else {
			view.choices = Faulty(view.choices, fault)
		}
	}
	a.Body = noticesPage(view)
	return a, nil
}

// phoneForm is the form of the visitor's number for notices.
func (v *Visit) phoneForm() (*page.Form, error) {
	number, err := v.console.Notices.Phone(v.Ctx, v.Who.Person.ID)
	return &page.Form{ID: "phone", Action: "/account/notices/phone", Submit: "Save number", Fields: []page.Field{
		{Name: "number", Label: "Phone number", Value: number, Type: "tel", Hint: "Leave empty to receive no SMS. Saving needs a recent code of your authenticator app, where you have one."}}}, err
}

// chooseNotices stores the choices of the visitor.
func chooseNotices(v *Visit) (Answer, error) {
	choices := map[notice.Topic]notice.Choice{}
	for _, t := range notice.Topics() {
		if v.R.PostForm.Has(string(t)) {
			choices[t] = notice.Choice(v.R.PostFormValue(string(t)))
		}
	}
	err := v.console.Notices.Choose(v.Ctx, v.Who, choices)
	if problem.Is(err, problem.Invalid) {
		return v.noticesAnswer(err, "")
	}
	if err != nil {
		return Answer{}, err
	}
	return v.noticesAnswer(nil, "Your choices were saved.")
}

// setPhone stores the number of the visitor.
func setPhone(v *Visit) (Answer, error) {
	err := v.console.Notices.SetPhone(v.Ctx, v.Who, strings.TrimSpace(v.R.PostFormValue("number")), v.from().String())
	if problem.Is(err, problem.Invalid) {
		return v.noticesAnswer(err, "")
	}
	if err != nil {
		return Answer{}, err
	}
	return v.noticesAnswer(nil, "Your phone number was saved.")
}

// testNotice sends a test message to the visitor.
func testNotice(v *Visit) (Answer, error) {
	c := notice.Channel(v.R.PostFormValue("channel"))
	if c != notice.SMS {
		c = notice.Email
	}
	err := v.console.Notices.SendTest(v.Ctx, v.Who.Person, c)
	if problem.Is(err, problem.Invalid) {
		return v.noticesAnswer(err, "")
	}
	if err != nil {
		return Answer{}, err
	}
	return v.noticesAnswer(nil, "A test notice is on its way to you.")
}
