package book

import "testing"

// A final word has one id in both lives of a database, whatever the customer was told before it, and a success, which alone can
// follow another word, sorts behind.
func TestOneWebhookIDInBothLives(t *testing.T) {
	pay := Payment{Kind: KindCollection, ProviderReference: "be17a522-ebdd-4c91-85ad-420e0612762a"}
	failed, success := eventID(pay, StatusFailed), eventID(pay, StatusSuccess)
	pay.Status = StatusFailed // another life has heard the provider's first word
	if again := eventID(pay, StatusSuccess); again != success {
		t.Errorf("%s and %s", again, success)
	}
	if failed >= success {
		t.Errorf("%s is not before %s", failed, success)
	}
	pay.ProviderReference = "be17a522-ebdd-4c91-85ad-420e0612762b"
	if eventID(pay, StatusFailed) == failed {
		t.Error("two payments have one id")
	}
}
