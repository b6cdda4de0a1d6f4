package reconcile

import (
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/sheet"
)

// Field is one value of a statement's line. Values are stored and never change.
type Field string

// The fields.
const (
	FieldID         Field = "id"         // the provider's own id of the movement
	FieldReference  Field = "reference"  // our ProviderReference
	FieldSettlement Field = "settlement" // id that the movements of one settlement share
	FieldDate       Field = "date"
	FieldStatus     Field = "status"
	FieldType       Field = "type"
	FieldFrom       Field = "from"
	FieldTo         Field = "to"
	FieldAmount     Field = "amount"
	FieldCurrency   Field = "currency"
	FieldDebit      Field = "debit"
	FieldCredit     Field = "credit"
	FieldFee        Field = "fee"
	FieldBalance    Field = "balance"
	FieldText       Field = "text"
)

// Fields returns the fields in the order in which pages show them.
func Fields() []Field {
	return []Field{FieldDate, FieldID, FieldReference, FieldSettlement, FieldStatus, FieldType, FieldFrom, FieldTo, FieldAmount, FieldCurrency, FieldDebit, FieldCredit,
		FieldFee, FieldBalance, FieldText}
}

// Sign is the way in which amounts of a statement show their direction. Values are stored and never change.
type Sign string

// The signs.
const (
	SignIn      Sign = "in"      // one amount; a positive one came in
	SignOut     Sign = "out"     // one amount; a positive one went out
	SignBalance Sign = "balance" // one amount without a sign: the direction follows from the balance
	SignColumns Sign = "columns" // two columns
)

// Profile describes the statements of one kind of source. Columns and words are proposals: a person confirms them with the first
// file of a source.
type Profile struct {
	Name     string // stored; never renamed
	Title    string
	Provider string // provider that has the money; empty: a bank
	Columns  []column
	Required []Field       // a row with all of these fields is the heading
	Lag      time.Duration // time from a movement until a statement must contain it
	Minor    bool          // amounts are whole pesewas
	Net      bool          // amounts are less the provider's fees, which have no column
}

// column has the headings of a field. A heading that occurs several times is the one after the column of another
// field.
type column struct {
	field    Field
	headings []string
	after    Field
}

// Profiles returns the known kinds of statements.
func Profiles() []Profile { return slices.Clone(profiles) }

// ProfileOf returns a profile by its name.
func ProfileOf(name string) (Profile, bool) {
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return profiles[i], true
}

var profiles = []Profile{
	// The portal's file has 28 columns, and Currency six times (two reconciliation programs of other countries agree; not seen from Ghana).
	{Name: "mtn", Title: "MTN MoMo portal", Provider: "mtn", Lag: 24 * time.Hour, Required: []Field{FieldID, FieldReference, FieldDate, FieldStatus, FieldAmount},
		Columns: []column{
			{field: FieldID, headings: []string{"Id", "Identifiant"}},
			{field: FieldReference, headings: []string{"External Transaction Id"}},
			{field: FieldDate, headings: []string{"Date"}},
			{field: FieldStatus, headings: []string{"Status", "Statut"}},
			{field: FieldType, headings: []string{"Type"}},
			{field: FieldFrom, headings: []string{"From", "De"}},
			{field: FieldTo, headings: []string{"To", "À"}},
			{field: FieldAmount, headings: []string{"Amount", "Montant"}},
			{field: FieldCurrency, headings: []string{"Currency", "Devise"}, after: FieldAmount},
			{field: FieldFee, headings: []string{"Fee", "Frais"}},
			{field: FieldBalance, headings: []string{"Balance", "Solde"}},
			{field: FieldText, headings: []string{"Note/Message", "Information"}},
		}},
	// No file of Hubtel was seen: these headings follow the names of its interface.
	{Name: "hubtel", Title: "Hubtel", Provider: "hubtel", Lag: 24 * time.Hour, Required: []Field{FieldID, FieldReference, FieldDate, FieldAmount},
		Columns: []column{
			{field: FieldID, headings: []string{"Transaction ID", "TransactionId"}},
			{field: FieldReference, headings: []string{"Client Reference", "ClientReference"}},
			{field: FieldSettlement, headings: []string{"Settlement ID", "SettlementId"}},
			{field: FieldDate, headings: []string{"Date", "Transaction Date"}},
			{field: FieldStatus, headings: []string{"Status"}},
			{field: FieldType, headings: []string{"Transaction Type", "Type"}},
			{field: FieldFrom, headings: []string{"Customer Number", "CustomerNumber", "Customer Msisdn"}},
			{field: FieldTo, headings: []string{"Recipient"}},
			{field: FieldAmount, headings: []string{"Amount"}},
			{field: FieldCurrency, headings: []string{"Currency", "Currency Code"}},
			{field: FieldFee, headings: []string{"Charges", "Fees"}},
			{field: FieldBalance, headings: []string{"Balance", "Balance After"}},
			{field: FieldText, headings: []string{"Description"}},
		}},
	// The columns that pawaPay documents. The file has other columns that we have not seen. Its Transaction ID is our id. A fee is
	// a separate row with the same id. The file has no balance, so it cannot show that a payment is missing.
	{Name: "pawapay", Title: "pawaPay", Provider: "pawapay", Lag: 24 * time.Hour, Required: []Field{FieldReference, FieldDate, FieldAmount, FieldType},
		Columns: []column{
			{field: FieldDate, headings: []string{"Creation Date (UTC)", "Creation Date"}},
			{field: FieldReference, headings: []string{"Transaction ID"}},
			{field: FieldFrom, headings: []string{"MSISDN"}},
			{field: FieldAmount, headings: []string{"Amount"}},
			{field: FieldCurrency, headings: []string{"Currency"}},
			{field: FieldType, headings: []string{"Type"}},
		}},
	// The members of Paystack's balance ledger, as its interface documents them. model_row is Paystack's id of the transaction, transfer or
	// refund. The headings of its CSV exports are not published.
	{Name: "paystack", Title: "Paystack balance ledger", Provider: "paystack", Lag: 24 * time.Hour, Minor: true, Net: true, Required: []Field{FieldID, FieldReference, FieldDate, FieldAmount, FieldBalance},
		Columns: []column{
			{field: FieldID, headings: []string{"id"}},
			{field: FieldReference, headings: []string{"model_row"}},
			{field: FieldDate, headings: []string{"createdAt"}},
			{field: FieldType, headings: []string{"model_responsible"}},
			{field: FieldAmount, headings: []string{"difference"}},
			{field: FieldCurrency, headings: []string{"currency"}},
			{field: FieldBalance, headings: []string{"balance"}},
			{field: FieldText, headings: []string{"reason"}},
		}},
	// The headings are those of banks in the region. No public file of a Ghanaian bank was found.
	{Name: "bank", Title: "Bank statement", Lag: 72 * time.Hour, Required: []Field{FieldDate},
		Columns: []column{
			{field: FieldDate, headings: []string{"Transaction Date", "Trans Date", "TransDate", "Txn Date", "Date", "Posted Date", "Post Date", "Value Date"}},
			{field: FieldSettlement, headings: []string{"Reference", "Ref", "Reference No", "Trans Ref", "Chq No"}},
			{field: FieldText, headings: []string{"Description", "Narration", "Remarks", "Details", "Particulars"}},
			{field: FieldDebit, headings: []string{"Debit", "Debit Amount", "Withdrawals", "Withdrawal", "DR"}},
			{field: FieldCredit, headings: []string{"Credit", "Credit Amount", "Deposits", "Deposit", "CR"}},
			{field: FieldAmount, headings: []string{"Amount"}},
			{field: FieldBalance, headings: []string{"Balance", "Closing Balance", "Running Balance", "Ledger Balance"}},
			{field: FieldCurrency, headings: []string{"Currency"}},
		}},
}

// Status is the state of a movement at its provider. Values are stored and never change.
type Status string

// The states of lines. A reversal is a movement of its own, in the other direction.
const (
	StatusSuccess Status = "success"
	StatusFailed  Status = "failed"
	StatusPending Status = "pending"
)

// statuses are the words of the status column.
var statuses = map[string]Status{
	"": StatusSuccess, "successful": StatusSuccess, "success": StatusSuccess, "completed": StatusSuccess, "complete": StatusSuccess, "paid": StatusSuccess, "settled": StatusSuccess,
	"réussi": StatusSuccess, "reussi": StatusSuccess, "reversed": StatusSuccess, "posted": StatusSuccess,
	"failed": StatusFailed, "unpaid": StatusFailed, "rejected": StatusFailed, "declined": StatusFailed, "cancelled": StatusFailed, "canceled": StatusFailed, "expired": StatusFailed,
	"échoué": StatusFailed, "echoue": StatusFailed,
	"pending": StatusPending, "processing": StatusPending, "in progress": StatusPending, "initiated": StatusPending, "en attente": StatusPending,
}

// isReversal reports whether the words of a type mean a reversal.
func isReversal(kind string) bool { return strings.Contains(strings.ToLower(kind), "revers") }

// isFee reports whether the words of a type mean a fee. The line of a fee names the payment that it was charged for, and is no movement of it.
func isFee(kind string) bool { return containsFold(kind, "fee") }

// Layout is how the files of a source are read. It is stored with the source once a person has confirmed it.
type Layout struct {
	Headings []string      `json:"headings"` // headings in the form of sheet.Heading
	Columns  map[Field]int `json:"columns"`  // from 0
	Dates    DateOrder     `json:"dates,omitempty"`
	Sign     Sign          `json:"sign,omitempty"`
	Fees     Fees          `json:"fees,omitempty"` // proved by balances; empty: not known yet
}

// Fees is the way in which the fees of a statement change its balance. Values are stored and never change.
type Fees string

// The readings of fees. Without proof the reading is apart.
const (
	FeesApart  Fees = "apart"  // in addition to the amount
	FeesWithin Fees = "within" // the amounts include the fees
)

// headingsOf returns the headings of a row in the form in which they are compared, without empty ones at its end.
func headingsOf(cells []sheet.Cell) []string {
	list := make([]string, len(cells))
	for i, cell := range cells {
		list[i] = sheet.Heading(cell.Text)
	}
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// isHeading reports whether cells are a heading, as headingsOf returns it. It ends at the first cell that differs.
func isHeading(cells []sheet.Cell, headings []string) bool {
	for i, cell := range cells {
		if text := sheet.Heading(cell.Text); i < len(headings) && text != headings[i] || i >= len(headings) && text != "" {
			return false
		}
	}
	return len(cells) >= len(headings)
}

// propose finds the columns of a heading. ok is false if the row is no heading of the profile.
func (p Profile) propose(headings []string) (columns map[Field]int, ok bool) {
	columns = map[Field]int{}
	for _, c := range p.Columns {
		from := 0
		if after, is := columns[c.after]; is {
			from = after + 1
		}
		if place := c.find(headings, from); place >= 0 {
			columns[c.field] = place
		}
	}
	for _, field := range p.Required {
		if _, has := columns[field]; !has {
			return nil, false
		}
	}
	_, amount := columns[FieldAmount]
	_, debit := columns[FieldDebit]
	_, credit := columns[FieldCredit]
	return columns, amount || debit && credit
}

// find returns the first column from a place on that has one of the headings, by the order of the headings.
func (c column) find(headings []string, from int) int {
	for _, heading := range c.headings {
		for i := from; i < len(headings); i++ {
			if headings[i] == sheet.Heading(heading) {
				return i
			}
		}
	}
	return -1
}
