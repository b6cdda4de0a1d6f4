package book

import (
	"slices"
	"testing"
)

// TestOneWebhookIDInBothLives: the same final word has the same id, and a later word
// another one behind it.
func TestOneWebhookIDInBothLives(t *testing.T) {
	pay := Payment{Kind: KindCollection, ProviderReference: "be17a522-ebdd-4c91-85ad-420e0612762a"}
	ids := []string{eventID(pay, "failed", true), eventID(pay, "success", true), eventID(pay, "success", false)}
	if again := eventID(pay, "failed", true); again != ids[0] {
		t.Errorf("%s and %s", again, ids[0])
	}
	if ids[0] == ids[1] || ids[1] == ids[2] || !slices.IsSorted([]string{ids[0], ids[2]}) || !slices.IsSorted([]string{ids[1], ids[2]}) {
		t.Errorf("%v", ids)
	}
	pay.ProviderReference = "be17a522-ebdd-4c91-85ad-420e0612762b"
	if eventID(pay, "failed", true) == ids[0] {
		t.Error("two payments have one id")
	}
}
