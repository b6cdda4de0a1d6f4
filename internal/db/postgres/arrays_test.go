package postgres

import (
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/makola/makola/internal/db/engine"
)

// The driver can read the arrays that this package writes.
func TestArrays_readByDriver(t *testing.T) {
	text, empty, n, least := "Akosua \x7f \u20b5", "", int64(7), int64(-1)<<63
	for name, c := range map[string]struct {
		oid  uint32
		in   engine.Column
		want any
	}{
		"texts":       {pgtype.TextArrayOID, engine.Column{Texts: []string{text, empty, "b"}}, []string{text, empty, "b"}},
		"integers":    {pgtype.Int8ArrayOID, engine.Column{Ints: []int64{0, n, least}}, []int64{0, n, least}},
		"bytes":       {pgtype.ByteaArrayOID, engine.Column{Blobs: [][]byte{{1, 0, 2}, nil, {}}}, [][]byte{{1, 0, 2}, nil, {}}},
		"no texts":    {pgtype.TextArrayOID, engine.Column{Texts: []string{}}, []string{}},
		"nothing":     {pgtype.Int8ArrayOID, engine.Column{}, []int64{}},
		"NULL texts":  {pgtype.TextArrayOID, engine.Column{NullTexts: []*string{nil, &text, &empty}}, []*string{nil, &text, &empty}},
		"NULL or not": {pgtype.Int8ArrayOID, engine.Column{NullInts: []*int64{&n, nil, &least}}, []*int64{&n, nil, &least}},
	} {
		ours, driver := pgtype.NewMap(), pgtype.NewMap()
		useArrays(ours)
		args := []any{&array{Column: &c.in}, "another argument", &array{Column: &c.in}}
		makeRoom(args)
		before := []byte("before")
		wire, err := ours.Encode(c.oid, pgtype.BinaryFormatCode, args[0], before)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wire = wire[len(before):]
		got := reflect.New(reflect.TypeOf(c.want))
		if err := driver.Scan(c.oid, pgtype.BinaryFormatCode, wire, got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), c.want) {
			t.Errorf("%s: the driver reads %v (%v), want %v", name, got.Elem(), err, c.want)
		}
		if size := size(&c.in); len(wire) > size || args[0].(*array).room != 2*size || args[2].(*array).room != size {
			t.Errorf("%s: %d bytes, where %d were expected; there is room for %d", name, len(wire), size, args[0].(*array).room)
		}
	}
}
