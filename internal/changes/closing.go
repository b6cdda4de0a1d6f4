package changes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// KindDayStatement stores closing balances of statements. KindDayException explains a part of a difference.
// KindCloseDay closes a day, and KindReopenDay reopens the last closed day. KindAccountCode sets the accountant's
// code of an account.
const (
	KindDayStatement = "day.statement"
	KindDayException = "day.exception"
	KindCloseDay     = "day.close"
	KindReopenDay    = "day.reopen"
	KindAccountCode  = "journal.code"
)

// The payloads of the kinds about days. The digest covers their members in this order, so they never change.
type (
	dayStatement struct {
		Mode string            `json:"mode"`
		Day  closing.Day       `json:"day"`
		List []closing.Balance `json:"list"`
	}
	dayException struct {
		Mode    string        `json:"mode"`
		Day     closing.Day   `json:"day"`
		Account string        `json:"account"`
		Amount  money.Pesewas `json:"pesewas"`
		Text    string        `json:"text"`
	}
	dayReopen struct {
		Mode     string      `json:"mode"`
		Day      closing.Day `json:"day"`
		Revision int64       `json:"revision"`
	}
	accountCode struct {
		Account string `json:"account"`
		Code    string `json:"code"`
		Was     string `json:"was"`
	}
)

// MaxBalances is the longest list of balances in one request, in characters.
const MaxBalances = 8000

// mostBalances is the maximum number of balances in one request.
const mostBalances = 200

var dayField = Field{Name: "day", Label: "Day", Hint: "In Accra, such as 2026-11-27.", Max: 10, Required: true}

// closingKinds are the kinds about the days of the books.
func (a *Changes) closingKinds() []Kind {
	rule := Rule{Make: roles.ChangeTreasury, Check: roles.ApproveMoney}
	light := rule
	light.Light = true
	return []Kind{
		written(a, KindDayStatement, "Closing balances of statements", light, func(tx *db.Tx, request Request, p dayStatement) ([]audit.Change, error) {
			var list []audit.Change
			for _, one := range p.List {
				list = append(list, audit.Change{What: string(one.Account) + " on " + p.Day.String(), After: assetOf(p.Mode).Text(int64(one.Amount))})
			}
			return list, a.Closing.SetTheirs(tx, assetOf(p.Mode), p.Day, p.List, request.RequesterName)
		}).by(a.lookDayStatement, modeField, dayField,
			Field{Name: "balances", Label: "Balances", Hint: "Enter an account and its closing balance in cedis, such as bank/gcb-main=12500.00. Separate several by spaces.", Max: MaxBalances, Required: true}).showing(a.checkDayStatement),
		written(a, KindDayException, "Exception of a day", light, a.doDayException).by(a.lookDayException, modeField, dayField,
			Field{Name: "account", Label: "Account", Hint: "Such as bank/gcb-main.", Max: 120, Required: true}, Field{Name: "way", Label: "The statement has", Options: []string{"more", "less"}, Max: 4, Required: true},
			amountField, Field{Name: "text", Label: "Explanation", Hint: "Such as a cheque that the bank has not paid yet.", Max: 300, Required: true}).showing(a.checkDayException),
		{Name: KindCloseDay, Title: "Close of a day", Rule: rule, Look: a.lookCloseDay, Check: a.checkCloseDay, Apply: a.doCloseDay, Fields: []Field{modeField, dayField}},
		written(a, KindReopenDay, "Reopening of a day", rule, func(tx *db.Tx, request Request, p dayReopen) ([]audit.Change, error) {
			return []audit.Change{{What: "day " + p.Day.String(), Before: "closed", After: "open"}}, a.Closing.Reopen(tx, assetOf(p.Mode), p.Day, p.Revision, request.ID, request.Reason, request.RequesterName)
		}).by(a.lookReopenDay, modeField, dayField).showing(a.checkReopenDay),
		written(a, KindAccountCode, "Code of an account", light, a.doAccountCode).by(a.lookAccountCode,
			Field{Name: "account", Label: "Account", Hint: "Enter an account of the ledger, such as bank/gcb-main, or a class of accounts, such as wallet:*.", Max: 120, Required: true},
			Field{Name: "accountant_code", Label: "Accountant's code", Hint: "Leave empty for the account's own name.", Max: 40}).showing(a.checkAccountCode),
	}
}

// dayOf reads the money and the day of a request about an open day.
func (a *Changes) dayOf(ctx context.Context, v Values) (ledger.Asset, closing.Day, error) {
	day, err := closing.ParseDay("day", v["day"])
	asset := assetOf(v["mode"])
	if err == nil {
		err = a.Closing.CheckOpen(ctx, asset, day)
	}
	return asset, day, err
}

func (a *Changes) lookDayStatement(ctx context.Context, o Order) (Draft, error) {
	asset, day, err := a.dayOf(ctx, o.Values)
	if err != nil {
		return Draft{}, err
	}
	p := dayStatement{Mode: o.Values["mode"], Day: day}
	var texts []string
	for _, word := range strings.Fields(o.Values["balances"]) {
		name, text, _ := strings.Cut(word, "=")
		if text == "" {
			continue // an account of the form without a balance
		}
		amount, err := Values{"balances": text}.amount("balances")
		if err != nil {
			return Draft{}, problem.Field("balances", "must have the form bank/gcb-main=12500.00, and is "+word)
		}
		id := ledger.AccountID(name)
		if err := closing.CheckGiven("balances", id); err != nil {
			return Draft{}, err
		}
		if slices.ContainsFunc(p.List, func(b closing.Balance) bool { return b.Account == id }) {
			return Draft{}, problem.Field("balances", "name "+name+" twice")
		}
		p.List = append(p.List, closing.Balance{Account: id, Amount: amount})
	}
	if len(p.List) == 0 || len(p.List) > mostBalances {
		return Draft{}, problem.Field("balances", fmt.Sprintf("are required, such as bank/gcb-main=12500.00, at most %d", mostBalances))
	}
	slices.SortFunc(p.List, func(a, b closing.Balance) int { return cmp.Compare(a.Account, b.Account) })
	for _, one := range p.List {
		texts = append(texts, fmt.Sprintf("%s of %s", asset.Text(int64(one.Amount)), one.Account))
	}
	return Draft{Sentence: fmt.Sprintf("Store the closing balances of the statements of %s: %s", day, strings.Join(texts, ", ")), Payload: p}, nil
}

// checkDayStatement returns the balances of our books next to the balances of the statements.
func (a *Changes) checkDayStatement(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[dayStatement](r)
	if err != nil {
		return nil, err
	}
	f, err := a.Closing.Figures(ctx, assetOf(p.Mode), p.Day)
	if err != nil {
		return nil, err
	}
	var list []Fact
	for _, one := range p.List {
		n := slices.IndexFunc(f.Accounts, func(of closing.Account) bool { return of.ID == one.Account })
		if n < 0 {
			list = append(list, warning("Our books have no balance of "+string(one.Account)+"."))
			continue
		}
		list = append(list, Fact{Name: string(one.Account) + " by our books", Value: f.Asset.Text(int64(f.Accounts[n].Closing))})
	}
	return list, nil
}

func (a *Changes) lookDayException(ctx context.Context, o Order) (Draft, error) {
	asset, day, err := a.dayOf(ctx, o.Values)
	if err != nil {
		return Draft{}, err
	}
	if err := closing.CheckGiven("account", ledger.AccountID(o.Values["account"])); err != nil {
		return Draft{}, err
	}
	amount, err := o.Values.amount(amountField.Name)
	if err == nil && amount <= 0 {
		err = problem.Field("amount", "must be above zero")
	}
	if err != nil {
		return Draft{}, err
	}
	text := strings.TrimSpace(o.Values["text"])
	if text == "" || utf8.RuneCountInString(text) > 300 {
		return Draft{}, problem.Field("text", "is required, with at most 300 characters")
	}
	size := amount
	if o.Values["way"] == "less" {
		amount = -amount
	}
	sentence := fmt.Sprintf("Explain that the statement of %s has %s %s than our books on %s: %s", o.Values["account"], asset.Text(int64(size)), o.Values["way"], day, text)
	return Draft{Amount: size, Sentence: sentence, Payload: dayException{Mode: o.Values["mode"], Day: day, Account: o.Values["account"], Amount: amount, Text: text}}, nil
}

// checkDayException returns the part of the difference that remains unexplained.
func (a *Changes) checkDayException(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[dayException](r)
	if err != nil {
		return nil, err
	}
	f, err := a.Closing.Figures(ctx, assetOf(p.Mode), p.Day)
	for _, of := range f.Accounts {
		if string(of.ID) == p.Account && of.Theirs != nil {
			now := of.Unexplained()
			return becomes("Unexplained", f.Asset.Text(int64(now)), f.Asset.Text(int64(now-p.Amount))), err
		}
	}
	return []Fact{warning("No statement of " + p.Account + " was given for this day.")}, err
}

func (a *Changes) doDayException(tx *db.Tx, request Request, p dayException) ([]audit.Change, error) {
	x := closing.Exception{ID: request.ID, Account: ledger.AccountID(p.Account), Amount: p.Amount, Text: p.Text, Actor: request.RequesterName}
	return []audit.Change{{What: "exception of " + p.Account + " on " + p.Day.String(), After: assetOf(p.Mode).Text(int64(p.Amount)) + ": " + p.Text}}, a.Closing.AddException(tx, assetOf(p.Mode), p.Day, x)
}

func (a *Changes) lookCloseDay(ctx context.Context, o Order) (Draft, error) {
	day, err := closing.ParseDay("day", o.Values["day"])
	if err != nil {
		return Draft{}, err
	}
	f, err := a.Closing.Figures(ctx, assetOf(o.Values["mode"]), day)
	if err == nil {
		err = a.Closing.Closable(f)
	}
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Close %s for %s money, with %d accounts", day, o.Values["mode"], len(f.Accounts))
	return Draft{Sentence: sentence, Payload: f.Sign()}, nil
}

// signable reads the day of a request again, and refuses it if its figures have changed since the request.
func (a *Changes) signable(ctx context.Context, r Request) (closing.Figures, error) {
	p, err := payloadOf[closing.Signed](r)
	if err != nil {
		return closing.Figures{}, err
	}
	f, err := a.Closing.Figures(ctx, ledger.Asset(p.Asset), p.Day)
	if err == nil {
		err = a.Closing.Closable(f)
	}
	if err == nil && !f.Sign().Same(p) {
		err = errChanged("The figures of the day")
	}
	return f, err
}

// checkCloseDay returns each account, and warns of missing statements, unexplained differences, late movements and a shortfall.
func (a *Changes) checkCloseDay(ctx context.Context, r Request) ([]Fact, error) {
	f, err := a.signable(ctx, r)
	if err != nil {
		return nil, err
	}
	text := func(n money.Pesewas) string { return f.Asset.Text(int64(n)) }
	list := []Fact{{Name: "Owed to customers", Value: text(f.Funds.Owed)}, {Name: "Held", Value: text(f.Funds.Held)}}
	if f.Last.Revision == 0 {
		list = append(list, warning("This is the first day that is closed. Its opening balances are those of our books."))
	}
	if s := f.Funds.Surplus(); s < 0 {
		list = append(list, warning("We hold "+text(-s)+" less than we owe to customers."))
	}
	for _, of := range f.Accounts {
		value := fmt.Sprintf("opening %s, in %s, out %s, closing %s", text(of.Opening), text(of.In), text(of.Out), text(of.Closing))
		if of.Theirs != nil {
			value += ", by the statement " + text(*of.Theirs)
		}
		list = append(list, Fact{Name: string(of.ID), Value: value})
		if of.Theirs == nil {
			list = append(list, warning("No statement of "+string(of.ID)+" was given."))
		}
		if n := of.Unexplained(); n != 0 {
			list = append(list, warning(fmt.Sprintf("%s: %s of the difference are unexplained.", of.ID, text(n))))
		}
		if of.Late != 0 {
			list = append(list, warning(fmt.Sprintf("%s: %s have dates in days that are already closed.", of.ID, text(of.Late))))
		}
	}
	return list, nil
}

// doCloseDay closes the day if its figures have not changed since they were signed. The same transaction ends
// the request.
func (a *Changes) doCloseDay(ctx context.Context, request *Request, finish Finish) error {
	f, err := a.signable(ctx, *request)
	if err != nil {
		return err
	}
	return a.Store.Apply(ctx, *request, func(tx *db.Tx) error {
		if err := a.Closing.Close(tx, f, request.ID); err != nil {
			return err
		}
		return finish(tx, []audit.Change{{What: "day " + f.Day.String(), Before: "open", After: "closed"}})
	})
}

func (a *Changes) lookReopenDay(ctx context.Context, o Order) (Draft, error) {
	day, err := closing.ParseDay("day", o.Values["day"])
	if err != nil {
		return Draft{}, err
	}
	last, err := a.Closing.LastClosed(ctx, assetOf(o.Values["mode"]))
	if err == nil {
		err = closing.CheckReopen(last, day)
	}
	return Draft{Sentence: fmt.Sprintf("Open %s for %s money again", day, o.Values["mode"]), Payload: dayReopen{o.Values["mode"], day, last.Revision}}, err
}

// checkReopenDay returns when the day was closed.
func (a *Changes) checkReopenDay(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[dayReopen](r)
	if err != nil {
		return nil, err
	}
	last, err := a.Closing.LastClosed(ctx, assetOf(p.Mode))
	if err == nil && (last.Day != p.Day || last.Revision != p.Revision) {
		err = errChanged("The day")
	}
	return []Fact{{Name: "Closed", Value: at(last.At)}, {Name: "Times closed", Value: fmt.Sprint(last.Revision)}}, err
}

func (a *Changes) lookAccountCode(ctx context.Context, o Order) (Draft, error) {
	c := closing.Code{Account: ledger.AccountID(o.Values["account"]), Code: strings.TrimSpace(o.Values["accountant_code"])}
	if err := closing.CheckCode(c); err != nil {
		return Draft{}, err
	}
	codes, err := a.Closing.Codes(ctx)
	was := codes[c.Account]
	sentence := fmt.Sprintf("Give %s the accountant's code %s; it is %s", c.Account, cmp.Or(c.Code, "none"), cmp.Or(was, "none"))
	return Draft{Sentence: sentence, Payload: accountCode{string(c.Account), c.Code, was}}, err
}

// checkAccountCode returns the code before and after.
func (a *Changes) checkAccountCode(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[accountCode](r)
	if err != nil {
		return nil, err
	}
	codes, err := a.Closing.Codes(ctx)
	if err == nil && codes[ledger.AccountID(p.Account)] != p.Was {
		err = errChanged("The code")
	}
	return becomes("Code", cmp.Or(p.Was, "none"), cmp.Or(p.Code, "none")), err
}

func (a *Changes) doAccountCode(tx *db.Tx, request Request, p accountCode) ([]audit.Change, error) {
	was, err := a.Closing.SetCode(tx, closing.Code{Account: ledger.AccountID(p.Account), Code: p.Code}, request.RequesterName)
	if err == nil && was != p.Was {
		err = errChanged("The code")
	}
	return []audit.Change{{What: "code of " + p.Account, Before: was, After: p.Code}}, err
}
