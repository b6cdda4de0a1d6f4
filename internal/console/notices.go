package console

import (
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
)

// choiceWords name the choices, in the order of the form.
var choiceWords = []page.Option{{Value: string(notice.AtOnce), Text: "At once"}, {Value: string(notice.Daily), Text: "Once a day"}, {Value: string(notice.Never), Text: "Never"}}

// noticesForm is the form of when the visitor is notified of each topic.
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

// ownNotices shows when the visitor is notified.
func ownNotices(v *Visit) (Answer, error) {
	f, err := v.noticesForm()
	return v.noticesAnswer(f, ""), err
}

func (v *Visit) noticesAnswer(f page.Form, done string) Answer {
	return Answer{Title: "Your notices", Body: noticesPage(f, v.Who.Person.Email, v.console.Notices.Enabled(), done)}
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
	if err != nil && !problem.Is(err, problem.Invalid) {
		return Answer{}, err
	}
	f, formErr := v.noticesForm()
	if err != nil {
		a := v.noticesAnswer(Faulty(f, err), "")
		a.Wrong = true
		return a, formErr
	}
	return v.noticesAnswer(f, "Your choices were saved."), formErr
}

// testNotice sends a test message to the visitor.
func testNotice(v *Visit) (Answer, error) {
	if err := v.console.Notices.SendTest(v.Ctx, v.Who.Person); err != nil {
		return Answer{}, err
	}
	f, err := v.noticesForm()
	return v.noticesAnswer(f, "A test notice is on its way to "+v.Who.Person.Email+"."), err
}
