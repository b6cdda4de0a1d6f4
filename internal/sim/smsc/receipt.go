package smsc

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"
	"github.com/makola/makola/internal/sim"
)

// receipt is one delivery report to be sent, or a text from a handset to the client.
type receipt struct {
	id        uint64
	to, from  string // of the message: the handset and the sender ID
	submitted int64  // microseconds since 1970
	verdict   *verdict
	text      []byte // not nil: this is no receipt but a handset's message, or a part of one, in UCS-2
	part      bool   // text begins with the header that joins the parts
	tries     uint8
	odd       bool
}

// verdict is the outcome in a receipt: the status in its text, message_state, and the network's error code.
type verdict struct {
	word  string
	state byte
	code  string
}

// The verdicts, by the reason of the failure.
var (
	verdictDelivered = &verdict{"DELIVRD", data.SM_STATE_DELIVERED, "000"}
	verdictFailed    = &verdict{"UNDELIV", data.SM_STATE_UNDELIVERABLE, "005"}
	verdicts         = map[sim.Reason]*verdict{
		sim.Expired:       {"EXPIRED", data.SM_STATE_EXPIRED, "034"},
		sim.NotRegistered: {"UNDELIV", data.SM_STATE_UNDELIVERABLE, "001"},
		sim.Barred:        {"REJECTD", data.SM_STATE_REJECTED, "013"},
		sim.Declined:      {"REJECTD", data.SM_STATE_REJECTED, "020"},
		sim.NoWord:        {"UNKNOWN", data.SM_STATE_INVALID, "000"},
	}
)

// verdictOf returns the outcome in the receipt of a plan.
func verdictOf(p sim.Plan) *verdict {
	if p.Then == sim.Success {
		return verdictDelivered
	}
	if v, ok := verdicts[p.Reason]; ok {
		return v
	}
	return verdictFailed
}

// maxReceipts is the maximum number of receipts that wait for an absent client. Beyond it the oldest are dropped, as
// operators do after some days.
const maxReceipts = 1_000_000

// receiptQueue is a queue of receipts.
type receiptQueue struct {
	list  []receipt
	head  int
	limit int
}

func (q *receiptQueue) len() int { return len(q.list) - q.head }

// push adds receipts and returns how many of the oldest it dropped.
func (q *receiptQueue) push(receipts ...receipt) (dropped int64) {
	q.list = append(q.list, receipts...)
	for q.len() > q.limit {
		q.pop()
		dropped++
	}
	return dropped
}

func (q *receiptQueue) pop() receipt {
	r := q.list[q.head]
	q.list[q.head] = receipt{}
	q.head++
	switch {
	case q.head == len(q.list):
		q.list, q.head = q.list[:0], 0
	case q.head > 1024 && q.head > len(q.list)/2:
		q.list = slices.Delete(q.list, 0, q.head)
		q.head = 0
	}
	return r
}

// unpop returns receipts to the front of the queue, in the order in which they were sent.
func (q *receiptQueue) unpop(owed map[int32]receipt) {
	if len(owed) == 0 {
		return
	}
	list := make([]receipt, 0, len(owed)+q.len())
	for _, sequence := range slices.Sorted(maps.Keys(owed)) {
		list = append(list, owed[sequence])
	}
	q.list, q.head = append(list, q.list[q.head:]...), 0
}

// writeID formats a message's id.
func writeID(id uint64, form IDForm) string {
	switch form {
	case IDHex:
		return strings.ToUpper(strconv.FormatUint(id, 16))
	case IDDecimal:
		return strconv.FormatUint(id, 10)
	default:
		return "MC-" + strings.ToUpper(strconv.FormatUint(id, 36))
	}
}

// receiptTime is the time format in a receipt.
const receiptTime = "0601021504"

// fill sets the fields of the deliver_sm of a receipt.
func (r receipt) fill(d *pdu.DeliverSM, o *Options, now time.Time) {
	clear(d.OptionalParameters)
	setAddress(&d.SourceAddr, r.to)
	setAddress(&d.DestAddr, r.from)
	d.ServiceType = ""
	if r.text != nil {
		if d.EsmClass = 0; r.part {
			d.EsmClass = data.SM_UDH_GSM
		}
		_ = d.Message.SetMessageDataWithEncoding(r.text, data.UCS2)
		return
	}
	d.EsmClass = data.SM_SMSC_DLV_RCPT_TYPE
	id := writeID(r.id, o.ReceiptIDs)
	_ = d.Message.SetMessageDataWithEncoding(r.receiptText(id, now), data.GSM7BIT) // the text is always short enough
	if r.odd {
		d.ServiceType = "OVERLONG-SERVICE-TYPE"
	}
	if !o.BareReceipts && !r.odd {
		d.RegisterOptionalParam(pdu.Field{Tag: pdu.TagReceiptedMessageID, Data: append([]byte(id), 0)})
		d.RegisterOptionalParam(pdu.Field{Tag: pdu.TagMessageStateOption, Data: []byte{r.verdict.state}})
	}
}

// receiptText returns the text of a receipt (appendix B of the specification). An odd receipt imitates real message
// centres: other spellings, impossible dates, and a message text that looks like a receipt.
func (r receipt) receiptText(id string, now time.Time) []byte {
	if r.odd {
		return []byte("Id:" + strings.ToLower(id) + " Sub:1 Dlvrd:1 Submit Date:20260230250000 Done Date:0000000000 Stat:" +
			strings.ToLower(r.verdict.word) + " Err:" + strings.TrimLeft(r.verdict.code, "0") + " Text:id:1 stat:UNDELIV err:099")
	}
	count := "000"
	if r.verdict == verdictDelivered {
		count = "001"
	}
	text := make([]byte, 0, 160)
	text = append(append(text, "id:"...), id...)
	text = append(append(text, " sub:001 dlvrd:"...), count...)
	text = time.UnixMicro(r.submitted).UTC().AppendFormat(append(text, " submit date:"...), receiptTime)
	text = now.AppendFormat(append(text, " done date:"...), receiptTime)
	text = append(append(text, " stat:"...), r.verdict.word...)
	text = append(append(text, " err:"...), r.verdict.code...)
	return append(text, " text:"...)
}

// setAddress sets a number as international, and any other address as alphanumeric.
func setAddress(a *pdu.Address, address string) {
	ton, npi := data.GSM_TON_INTERNATIONAL, data.GSM_NPI_E164
	if strings.Trim(address, "0123456789") != "" {
		ton, npi = data.GSM_TON_ALPHANUMERIC, data.GSM_NPI_UNKNOWN
	}
	a.SetTon(ton)
	a.SetNpi(npi)
	_ = a.SetAddress(address) // the address was received in a unit, so it fits
}
