package book

import "testing"

// A final status has the same event id before and after a restore, whatever the customer received before. The id of
// success sorts after that of failed, because only success can follow another final status.
func TestEventID_sameAfterRestore(t *testing.T) {
	pay := Payment{Kind: KindCollection, ProviderReference: "be17a522-ebdd-4c91-85ad-420e0612762a"}
	failed, success := eventID(pay, StatusFailed), eventID(pay, StatusSuccess)
	pay.Status = StatusFailed // the customer received this before the restore
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
