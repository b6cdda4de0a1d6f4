package postgres

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/makola/makola/internal/db/engine"
)

// Columns are sent to PostgreSQL in its binary format for arrays, which this file encodes. The driver's own encoder
// grows its buffers by a quarter at a time and drops them after each statement. That was half of all garbage of a
// busy server. Here the size is known in advance.

// frameSize estimates the bytes of a statement in a message, without its arrays.
const frameSize = 256

// An array is a column that is sent as an argument of a statement.
type array struct {
	*engine.Column
	room int // bytes of this array; in the first array of a statement: bytes of all its arrays
}

// arrayCodec encodes our arrays and leaves all other values to the driver.
type arrayCodec struct{ *pgtype.ArrayCodec }

// useArrays registers arrayCodec for the array types of a connection.
func useArrays(m *pgtype.Map) {
	for _, oid := range []uint32{pgtype.TextArrayOID, pgtype.Int8ArrayOID, pgtype.ByteaArrayOID} {
		if t, ok := m.TypeForOID(oid); ok {
			if driver, ok := t.Codec.(*pgtype.ArrayCodec); ok {
				m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: arrayCodec{driver}})
			}
		}
	}
}

// PlanEncode implements pgtype.Codec.
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(*array); ok && format == pgtype.BinaryFormatCode {
		return arrayPlan{element: c.ElementType.OID}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

type arrayPlan struct{ element uint32 }

// Encode implements pgtype.EncodePlan.
func (p arrayPlan) Encode(value any, buf []byte) ([]byte, error) {
	a := value.(*array)
	buf = slices.Grow(buf, a.room)
	n := length(a.Column)
	if n == 0 {
		buf = binary.BigEndian.AppendUint32(buf, 0) // number of dimensions
		buf = binary.BigEndian.AppendUint32(buf, 0)
		return binary.BigEndian.AppendUint32(buf, p.element), nil
	}
	buf = binary.BigEndian.AppendUint32(buf, 1) // number of dimensions
	buf = binary.BigEndian.AppendUint32(buf, 1) // the array may contain NULLs
	buf = binary.BigEndian.AppendUint32(buf, p.element)
	buf = binary.BigEndian.AppendUint32(buf, uint32(n)) // a set fits in memory, so its length fits in 32 bits
	buf = binary.BigEndian.AppendUint32(buf, 1)         // index of the first element
	return appendElements(buf, a.Column), nil
}

func length(c *engine.Column) int {
	return len(c.Texts) + len(c.Ints) + len(c.Blobs) + len(c.NullTexts) + len(c.NullInts)
}

// appendElements appends the length and the bytes of each element, or the mark of NULL.
func appendElements(buf []byte, c *engine.Column) []byte {
	for _, s := range c.Texts {
		buf = appendElement(buf, s)
	}
	for _, n := range c.Ints {
		buf = appendInt(buf, n)
	}
	for _, b := range c.Blobs {
		if b == nil {
			buf = appendNull(buf)
			continue
		}
		buf = appendElement(buf, b)
	}
	for _, s := range c.NullTexts {
		if s == nil {
			buf = appendNull(buf)
			continue
		}
		buf = appendElement(buf, *s)
	}
	for _, n := range c.NullInts {
		if n == nil {
			buf = appendNull(buf)
			continue
		}
		buf = appendInt(buf, *n)
	}
	return buf
}

func appendElement[T string | []byte](buf []byte, v T) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(v))) // the server rejects a text that is too long
	return append(buf, v...)
}

func appendInt(buf []byte, n int64) []byte {
	buf = binary.BigEndian.AppendUint32(buf, 8)
	return binary.BigEndian.AppendUint64(buf, uint64(n)) // two's complement, as the server expects
}

func appendNull(buf []byte) []byte { return append(buf, 0xff, 0xff, 0xff, 0xff) }

// size returns an upper estimate of the bytes that the column takes.
func size(c *engine.Column) int {
	n := 20 + 12*length(c)
	for _, s := range c.Texts {
		n += len(s)
	}
	for _, b := range c.Blobs {
		n += len(b)
	}
	for _, s := range c.NullTexts {
		if s != nil {
			n += len(*s)
		}
	}
	return n
}

// makeRoom sets the sizes of a statement's arrays. The first array gets the sum of all sizes.
func makeRoom(args []any) {
	var first *array
	for _, arg := range args {
		a, ok := arg.(*array)
		if !ok {
			continue
		}
		a.room = size(a.Column)
		if first == nil {
			first = a
			continue
		}
		first.room += a.room
	}
}

// roomOf estimates the bytes of the statements in a message to the server.
func roomOf(statements []*engine.Statement) int {
	n := 0
	for _, st := range statements {
		n += frameSize
		for _, arg := range st.Args {
			if a, ok := arg.(*array); ok {
				n += a.room
				break // the first array has the sum of all
			}
		}
	}
	return n
}

// A room is a message that is never sent. Encoding it reserves space in the buffer for the messages that follow.
type room int

// Frontend implements pgproto3.FrontendMessage.
func (room) Frontend() {}

// Decode implements pgproto3.Message.
func (room) Decode([]byte) error { return nil }

// Encode implements pgproto3.Message.
func (r room) Encode(buf []byte) ([]byte, error) { return slices.Grow(buf, int(r)), nil }

var _ pgproto3.FrontendMessage = room(0)
