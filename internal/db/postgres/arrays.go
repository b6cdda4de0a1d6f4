package postgres

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/makola/makola/internal/db/engine"
)

// Columns travel to PostgreSQL in its binary form of arrays, which this file writes itself. The driver's own encoder
// grows its buffers by a quarter at a time and drops them after each statement, which was half of all garbage of a
// busy server. Here the size is known before.

// frameSize estimates the bytes of a statement in a message without its arrays.
const frameSize = 256

// An array is a column as an argument of a statement.
type array struct {
	*engine.Column
	room int // bytes of this array; of the first in a statement: of all of them
}

// arrayCodec writes an array of ours and leaves everything else to the driver.
type arrayCodec struct{ *pgtype.ArrayCodec }

// useArrays registers the array types at a connection.
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
		buf = binary.BigEndian.AppendUint32(buf, 0) // dimensions
		buf = binary.BigEndian.AppendUint32(buf, 0)
		return binary.BigEndian.AppendUint32(buf, p.element), nil
	}
	buf = binary.BigEndian.AppendUint32(buf, 1) // dimensions
	buf = binary.BigEndian.AppendUint32(buf, 1) // with NULLs, perhaps
	buf = binary.BigEndian.AppendUint32(buf, p.element)
	buf = binary.BigEndian.AppendUint32(buf, uint32(n)) // a set is in memory
	buf = binary.BigEndian.AppendUint32(buf, 1)         // the first index
	return appendElements(buf, a.Column), nil
}

func length(c *engine.Column) int {
	return len(c.Texts) + len(c.Ints) + len(c.Blobs) + len(c.NullTexts) + len(c.NullInts)
}

// appendElements appends each element behind its length; one without is NULL.
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
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(v))) // the text is in memory, and the server refuses one that is too long
	return append(buf, v...)
}

func appendInt(buf []byte, n int64) []byte {
	buf = binary.BigEndian.AppendUint32(buf, 8)
	return binary.BigEndian.AppendUint64(buf, uint64(n)) // two's complement, as the server has it
}

func appendNull(buf []byte) []byte { return append(buf, 0xff, 0xff, 0xff, 0xff) }

// size is how many bytes the column takes, or a few more.
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

// makeRoom returns the bytes of a statement's arrays.
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
				break // the first row stands for all
			}
		}
	}
	return n
}

// A room is a message that is never sent: it makes room for those that follow it.
type room int

// Frontend implements pgproto3.FrontendMessage.
func (room) Frontend() {}

// Decode implements pgproto3.Message.
func (room) Decode([]byte) error { return nil }

// Encode implements pgproto3.Message.
func (r room) Encode(buf []byte) ([]byte, error) { return slices.Grow(buf, int(r)), nil }

var _ pgproto3.FrontendMessage = room(0)
