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

// sentences explain each code and give the next step. A test requires a sentence for every code.
var sentences = map[string]string{
	ReasonDeclined:       "The payer declined the request. Ask the payer and send a new request.",
	ReasonExpired:        "The payer did not approve the request in time. Ask the payer to watch for the prompt and send a new request.",
	ReasonFunds:          "The payer's wallet has too little money. Send a new request once the payer has added money.",
	ReasonPIN:            "The payer entered a wrong PIN. Send a new request.",
	ReasonPayerNotFound:  "The payer's number has no mobile money wallet. Check the number and the network.",
	ReasonPayeeNotFound:  "The recipient's number or account does not exist. Check the number and the network.",
	ReasonLimit:          "The wallet has reached its limit. Try a smaller amount, or try another day.",
	ReasonBarred:         "The network has barred the wallet. Its holder can ask the network why.",
	ReasonRefused:        "The provider refused the payment and gave no reason. Try again later with a new reference.",
	ReasonUnavailable:    "The provider could not be reached, and nothing was sent. Try again later with a new reference.",
	ReasonInvalidRequest: "The provider rejected the request as invalid. Check the number, the amount and the network.",
	ReasonFloat:          "The operator's account at the provider has too little money. Try again later with a new reference.",
	ReasonSetup:          "The operator has not set up this service at the provider. Contact the operator.",
	ReasonOfferGone:      "The package is no longer offered to this number. Fetch the list of packages again.",
	ReasonReversed:       "The provider reversed the payment. Contact the operator if you did not expect it.",
	ReasonMismatch:       "The provider's response does not match the payment. The operator checks it.",
	ReasonResolved:       "The provider did not report the outcome. The operator decided it from the provider's statement.",
	ReasonNotApproved:    "People of the account did not approve the payout. Nothing was sent.",
	ReasonUnknown:        "The provider reported a failure without an explanation.",
}

// Sentence returns the explanation of a reason code. It returns a general sentence for an unknown code, and "" for an
// empty one.
func Sentence(reason string) string {
	if reason == "" {
		return ""
	}
	if s, ok := sentences[reason]; ok {
		return s
	}
	return sentences[ReasonUnknown]
}

// Declined reports whether the payer refused or let the prompt expire. The status of the collection is then
// "declined".
func Declined(reason string) bool {
	return reason == ReasonDeclined || reason == ReasonExpired
}

// Invalid reports whether the number or account does not exist or the request is malformed. The status of the
// collection is then "invalid".
func Invalid(reason string) bool {
	return reason == ReasonPayerNotFound || reason == ReasonPayeeNotFound || reason == ReasonInvalidRequest
}
