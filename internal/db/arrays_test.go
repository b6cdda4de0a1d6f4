package db

import (
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// TestTheDriverReadsTheArraysThatWeWrite lets the driver read what we write.
func TestTheDriverReadsTheArraysThatWeWrite(t *testing.T) {
	text, empty, n, least := "Akosua \x7f \u20b5", "", int64(7), int64(-1)<<63
	for name, c := range map[string]struct {
		oid  uint32
		in   columnData
		want any
	}{
		"texts":       {pgtype.TextArrayOID, columnData{texts: []string{text, empty, "b"}}, []string{text, empty, "b"}},
		"integers":    {pgtype.Int8ArrayOID, columnData{ints: []int64{0, n, least}}, []int64{0, n, least}},
		"bytes":       {pgtype.ByteaArrayOID, columnData{blobs: [][]byte{{1, 0, 2}, nil, {}}}, [][]byte{{1, 0, 2}, nil, {}}},
		"no texts":    {pgtype.TextArrayOID, columnData{texts: []string{}}, []string{}},
		"nothing":     {pgtype.Int8ArrayOID, columnData{}, []int64{}},
		"NULL texts":  {pgtype.TextArrayOID, columnData{nullTexts: []*string{nil, &text, &empty}}, []*string{nil, &text, &empty}},
		"NULL or not": {pgtype.Int8ArrayOID, columnData{nullInts: []*int64{&n, nil, &least}}, []*int64{&n, nil, &least}},
	} {
		ours, driver := pgtype.NewMap(), pgtype.NewMap()
		useArrays(ours)
		args := []any{&array{columnData: &c.in}, "another argument", &array{columnData: &c.in}}
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
		if size := c.in.size(); len(wire) > size || args[0].(*array).room != 2*size || args[2].(*array).room != size {
			t.Errorf("%s: %d bytes, where %d were expected; there is room for %d", name, len(wire), size, args[0].(*array).room)
		}
	}
}

// TestArraysNeedTypes holds with every way of asking that tells the driver what the server expects.
func TestArraysNeedTypes(t *testing.T) {
	url := emptyURL(t)
	for mode, works := range map[string]bool{
		"cache_statement": true, "cache_describe": true, "describe_exec": true, "exec": false, "simple_protocol": false,
	} {
		d, err := Open(t.Context(), Options{URL: url + "&default_query_exec_mode=" + mode})
		if !works {
			if err == nil || !strings.Contains(err.Error(), "default_query_exec_mode") {
				t.Errorf("%s: %v", mode, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		var got int64
		err = d.Read(t.Context(), func(tx *Tx) error {
			_, err := tx.One(`SELECT CAST(sum(value) AS BIGINT) FROM ints($1)`, []any{[]int64{3, 4}}, &got)
			return err
		})
		if err != nil || got != 7 {
			t.Errorf("%s: %d, %v", mode, got, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
