package payments

import (
	"reflect"
	"strconv"
	"testing"
	"time"
)

// TestAPackedPaymentIsWhole: a field that pack forgot would be lost between two
// questions.
func TestAPackedPaymentIsWhole(t *testing.T) {
	var full Payment
	fill(t, reflect.ValueOf(&full).Elem(), 1)
	for _, p := range []Payment{full, {}} {
		if got := *pack(&p).unpack(); got != p {
			t.Errorf("got  %+v\nwant %+v", got, p)
		}
	}
}

// fill gives each field below v a value of its own.
func fill(t *testing.T, v reflect.Value, n int) int {
	t.Helper()
	if _, ok := v.Interface().(time.Time); ok {
		v.Set(reflect.ValueOf(morning.Add(time.Duration(n) * time.Microsecond)))
		return n + 1
	}
	switch v.Kind() { //nolint:exhaustive // any other is a new kind of field
	case reflect.Struct:
		for i := range v.NumField() {
			n = fill(t, v.Field(i), n)
		}
		return n
	case reflect.String:
		v.SetString("text " + strconv.Itoa(n))
	case reflect.Int, reflect.Int64:
		v.SetInt(-int64(n) << 20)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a field is a %s, which fill cannot make", v.Type())
	}
	return n + 1
}
