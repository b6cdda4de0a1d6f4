package changes

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
)

// selected are the exceptions of a request, as the requester saw them. The digest covers its members in this order, so they never
// change.
type selected struct {
	IDs    []string      `json:"ids"`
	Sum    money.Pesewas `json:"pesewas"`
	Digest string        `json:"digest"` // hash of the exceptions and the versions of their lines
}

// exceptionKinds are the kinds of exceptions as texts.
func exceptionKinds() (list []string) {
	for _, k := range reconcile.Kinds() {
		list = append(list, string(k))
	}
	return list
}

// The names of the fields for an account's wallet and for an exception.
const (
	FieldWallet    = "wallet"
	FieldException = "exception"
)

// Fields of exceptions.
var (
	exceptionField = Field{Name: FieldException, Label: "Exception", Hint: "Enter the id of one exception.", Max: 36, Required: true}
	oneField       = Field{Name: FieldException, Label: "Exception", Hint: "Enter the id of one exception. Leave empty to choose several by the fields below.", Max: 36}
	sourceField    = Field{Name: "source", Label: "Account of the statements", Hint: "Such as live/mtn/collection.", Max: 60}
	kindField      = Field{Name: "kind", Label: "Difference", Options: exceptionKinds(), Max: 12}
	mostField      = Field{Name: "most", Label: "Largest amount in cedis", Hint: "Exceptions of larger amounts stay open.", Max: 20}
	walletField    = Field{Name: FieldWallet, Label: "Account", Hint: "Enter the id of the account that has the wallet.", Max: 64}
)

// lookSelected drafts a change of one exception, or of all exceptions that the fields select. verb begins the
// sentence.
func (a *Changes) lookSelected(verb string, check func(ctx context.Context, list []reconcile.Exception) error) func(ctx context.Context, o Order) (Draft, error) {
	return func(ctx context.Context, o Order) (Draft, error) {
		if o.Values["exception"] == "" && verb == "Book the fee of" {
			o.Values["kind"] = string(reconcile.FeeOff)
		}
		n, err := a.selectExceptions(ctx, o.Values, "")
		if err == nil && check != nil {
			err = check(ctx, n.List)
		}
		if err != nil {
			return Draft{}, err
		}
		return draftSelected(n, verb), nil
	}
}

func draftSelected(n reconcile.Selection, verb string) Draft {
	sentence := fmt.Sprintf("%s %d exceptions, %s in all", verb, len(n.List), cedis(n.Sum))
	if len(n.List) == 1 {
		sentence = fmt.Sprintf("%s an exception of %s: %s", verb, cedis(n.Sum), strings.TrimSuffix(n.List[0].Reason, "."))
	}
	return Draft{Sentence: sentence, Amount: n.Sum, Payload: selectedOf(n), Barred: n.Uploaders()}
}

func selectedOf(n reconcile.Selection) selected {
	p := selected{Sum: n.Sum, Digest: n.Digest}
	for _, e := range n.List {
		p.IDs = append(p.IDs, e.ID)
	}
	return p
}

// cedis formats an amount in the money of its statement, live or test.
func cedis(amount money.Pesewas) string {
	if amount < 0 {
		return "−" + cedis(-amount)
	}
	return "GHS " + money.Grouped(amount.String())
}

// selectExceptions finds one exception, or all exceptions that the fields select. It returns only exceptions that are
// open or in suspense.
func (a *Changes) selectExceptions(ctx context.Context, v Values, ending reconcile.Ending) (reconcile.Selection, error) {
	if id := v["exception"]; id != "" {
		if ending == reconcile.EndedSuspend {
			return a.Reconcile.Suspended(ctx, []string{id})
		}
		return a.Reconcile.Selected(ctx, []string{id})
	}
	most, err := v.amount("most")
	var bad problem.Fields
	bad.Merge(err)
	for _, name := range []string{"source", "kind"} {
		if v[name] == "" {
			bad.Add(name, "is required, unless you name one exception")
		}
	}
	if err := bad.Err(); err != nil {
		return reconcile.Selection{}, err
	}
	return a.Reconcile.Select(ctx, reconcile.Filter{Source: v["source"], Kind: reconcile.Kind(v["kind"]), Most: most, Ending: ending})
}

// checkSelected returns the statement files, their row counts and the people who imported them. For a single
// exception it adds the payment and the provider's last answer.
func (a *Changes) checkSelected(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[selected](r)
	if err != nil {
		return nil, err
	}
	_, list, err := a.exceptionsAsSeen(ctx, p.IDs, p.Digest)
	return list, err
}

// exceptionsAsSeen reads exceptions again, and returns their facts. It refuses exceptions that have changed since their
// digest.
func (a *Changes) exceptionsAsSeen(ctx context.Context, ids []string, digest string) (reconcile.Selection, []Fact, error) {
	n, err := a.Reconcile.Selected(ctx, ids)
	if err != nil {
		return n, nil, err
	}
	list, err := a.selectedFacts(ctx, n, digest)
	return n, list, err
}

// selectedFacts returns the facts of a selection. It refuses a selection that has changed since its digest.
func (a *Changes) selectedFacts(ctx context.Context, n reconcile.Selection, digest string) ([]Fact, error) {
	if n.Digest != digest {
		return nil, errChanged("An exception")
	}
	var delta money.Pesewas
	for _, e := range n.List {
		delta += e.Delta
	}
	list := []Fact{{Name: "Exceptions", Value: strconv.Itoa(len(n.List))}, {Name: "Sum", Value: cedis(n.Sum)}, {Name: "Statements minus our books", Value: cedis(delta)}}
	list = append(list, fileFacts(n)...)
	if len(n.List) > 1 {
		return append(list, lineFacts(n)...), nil
	}
	e := n.List[0]
	list = append(list, Fact{Name: "Account", Value: titleOf(e.Source)}, Fact{Name: "Difference", Value: e.Reason})
	if e.Payment == "" {
		return list, nil
	}
	found, err := a.Payments.ByIDs(ctx, []string{e.Payment})
	pay := found[e.Payment]
	list = append(list, Fact{Name: "Payment", Value: reference(pay), Of: ofPayment(pay.ID)}, Fact{Name: "Provider's last answer", Value: lastAnswer(pay)})
	return list, err
}

// lineFacts lists each exception of a selection with its amount, time, line and reason.
func lineFacts(n reconcile.Selection) (list []Fact) {
	rows := map[string]string{}
	for _, f := range n.Files {
		if f.Line != "" {
			rows[f.Line] = fmt.Sprintf(", %s, row %d", f.Name, f.Row)
		}
	}
	for i, e := range n.List {
		one := Fact{Name: fmt.Sprintf("Exception %d", i+1), Value: fmt.Sprintf("%s, %s%s: %s", cedis(e.Amount), e.At.UTC().Format("2 Jan 2006 15:04"), rows[e.Line], e.Reason)}
		if e.Payment != "" {
			one.Of = ofPayment(e.Payment)
		}
		list = append(list, one)
	}
	return list
}

// maxFiles is the maximum number of files that the facts name.
const maxFiles = 5

// fileFacts names the files and the people who imported them.
func fileFacts(n reconcile.Selection) (list []Fact) {
	seen := map[string]bool{}
	for _, f := range n.Files {
		value := f.Name + ", imported by " + f.UploaderName
		if len(n.List) == 1 && f.Row > 0 {
			value = fmt.Sprintf("%s, row %d, imported by %s", f.Name, f.Row, f.UploaderName)
		}
		if seen[value] {
			continue
		}
		if seen[value] = true; len(list) == maxFiles {
			return append(list, Fact{Name: "File", Value: "and others"})
		}
		list = append(list, Fact{Name: "File", Value: value})
	}
	return list
}

// titleOf names the account of statements with an id.
func titleOf(source string) string {
	s, err := reconcile.ParseSource(source)
	if err != nil {
		return source
	}
	return s.Title()
}

// lastAnswer returns the final status that the provider reported last, in the words of the exception's page.
func lastAnswer(p book.Payment) string {
	switch {
	case p.Status.Open():
		return "not final"
	case p.ProviderState().String() == string(book.StatusSuccess):
		return "paid"
	}
	return "not paid"
}
