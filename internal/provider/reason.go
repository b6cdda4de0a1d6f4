package provider

// The stable reason codes. Customers see them next to a failed payment, so a released code keeps its meaning.
const (
	ReasonDeclined       = "declined_by_payer"
	ReasonExpired        = "prompt_expired"
	ReasonFunds          = "insufficient_funds"
	ReasonPIN            = "wrong_pin"
	ReasonPayerNotFound  = "payer_not_found"
	ReasonPayeeNotFound  = "payee_not_found"
	ReasonLimit          = "limit_reached"
	ReasonBarred         = "account_barred"
	ReasonRefused        = "provider_refused"
	ReasonUnavailable    = "provider_unavailable"
	ReasonInvalidRequest = "invalid_request"
	ReasonFloat          = "service_float_low"
	ReasonSetup          = "service_not_set_up"
	ReasonOfferGone      = "offer_gone"
	ReasonReversed       = "reversed_by_provider"
	ReasonMismatch       = "answer_mismatch"
	ReasonResolved       = "resolved_by_operator"
	ReasonNotApproved    = "not_approved"
	ReasonUnknown        = "unknown_error"
)

// sentences explain each code in plain words, and who can act on it. A test requires one for every code.
var sentences = map[string]string{
	ReasonDeclined:       "The payer declined the request. Ask the payer and send a new request.",
	ReasonExpired:        "The payer did not approve the request in time. Ask the payer to watch for the prompt and send a new request.",
	ReasonFunds:          "The payer does not have enough money in the wallet. The payer has to add money before a new request.",
	ReasonPIN:            "The payer entered a wrong PIN. The payer can try again with a new request.",
	ReasonPayerNotFound:  "The payer's number has no mobile money wallet. Check the number and the network.",
	ReasonPayeeNotFound:  "The recipient's number or account does not exist. Check the number and the network.",
	ReasonLimit:          "The wallet has reached its limit. Try a smaller amount or another day.",
	ReasonBarred:         "The wallet is barred. Its holder has to ask the network.",
	ReasonRefused:        "The provider refused the payment without a better reason. Try again later with a new reference.",
	ReasonUnavailable:    "The provider could not be reached. Nothing was sent; try again later with a new reference.",
	ReasonInvalidRequest: "The provider says that the request is not valid. Check the number, the amount and the network.",
	ReasonFloat:          "The service is short of funds at the provider and has been told. Try again later with a new reference.",
	ReasonSetup:          "This service is not set up at the provider. The operator has been told.",
	ReasonOfferGone:      "The package is no longer offered to this number. Fetch the packages again.",
	ReasonReversed:       "The provider reversed the payment. The operator has been told.",
	ReasonMismatch:       "The provider's answer does not match the payment. The operator has been told.",
	ReasonResolved:       "The provider could not say what became of the payment. The operator ended it by the provider's statement.",
	ReasonNotApproved:    "The account's own people did not approve the payout. Nothing was sent.",
	ReasonUnknown:        "The provider reported a failure that it did not explain.",
}

// Sentence explains a reason code in plain words. An unknown code gets a neutral sentence, an empty one none.
func Sentence(reason string) string {
	if reason == "" {
		return ""
	}
	if s, ok := sentences[reason]; ok {
		return s
	}
	return sentences[ReasonUnknown]
}

// Declined reports whether the payer refused or let the prompt expire: the
// collection then reads "declined".
func Declined(reason string) bool {
	return reason == ReasonDeclined || reason == ReasonExpired
}

// Invalid reports whether the number or account does not exist or the request
// is malformed: the collection then reads "invalid".
func Invalid(reason string) bool {
	return reason == ReasonPayerNotFound || reason == ReasonPayeeNotFound || reason == ReasonInvalidRequest
}
