package config

import "testing"

// The limit of a provider is read in the form in which it is written. No other form is accepted.
func TestProviderLimit_text(t *testing.T) {
	var l ProviderLimit
	if err := l.UnmarshalText([]byte("paystack:disburse_wallet:MTN:1.00-5000.00")); err != nil || l != (ProviderLimit{"paystack", "disburse_wallet", "MTN", 100, 500_000}) {
		t.Errorf("%+v, %v", l, err)
	}
	if l.String() != "paystack:disburse_wallet:MTN:1.00-5000.00" {
		t.Errorf("written as %s", l)
	}
	for _, text := range []string{"", "paystack", "paystack:disburse_wallet:MTN", "paystack:disburse_wallet:MTN:1", "paystack:disburse_wallet:MTN:5-1",
		"paystack:disburse_wallet:MTN:-1-5", ":disburse_wallet:MTN:1-5", "paystack:::1-5", "paystack:disburse_wallet:MTN:1-0", "paystack:x:MTN:a-b"} {
		if l.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is %+v", text, l)
		}
	}
}
