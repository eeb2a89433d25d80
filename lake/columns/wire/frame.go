package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

// Header holds the key of a value's schema where it is not in front of the value.
const Header = "__value_schema_id"

const (
	magicID   = 0
	magicGUID = 1
	idLen     = 5
	guidLen   = 17
)

// Key names a schema in a registry: by its id, or by its GUID.
type Key struct {
	ID     uint32
	GUID   [16]byte
	ByGUID bool
}

func (k Key) String() string {
	if k.ByGUID {
		return string(columns.AppendUUID(nil, &k.GUID))
	}
	return fmt.Sprintf("id %d", k.ID)
}

// Frame is a value taken apart.
type Frame struct {
	Key  Key
	Body []byte // the value itself; with the key in front it may start with more of the frame
	// InHeader says that the key came in a header, and Tail is what that has behind the key.
	InHeader bool
	Tail     []byte
}

// Split takes the schema's key off a value. The error says what isn't as it should be.
func Split(data []byte, headers []sink.Header) (f Frame, err error) {
	for i := range headers {
		if headers[i].Key == Header {
			f.Body, f.InHeader = data, true
			f.Key, f.Tail, err = headerKey(headers[i].Value)
			return f, err
		}
	}
	switch {
	case len(data) == 0:
		return f, errors.New("the value is empty: one with a schema id has at least 5 bytes")
	case data[0] != magicID:
		return f, fmt.Errorf("the value starts with byte 0x%02x, not with 0x00 and a schema id: it was not written by a serializer for the schema registry", data[0])
	case len(data) < idLen:
		return f, fmt.Errorf("the value has %d bytes, too few for 0x00 and a schema id of 4", len(data))
	}
	f.Key.ID, f.Body = binary.BigEndian.Uint32(data[1:idLen]), data[idLen:]
	return f, nil
}

func headerKey(v []byte) (k Key, tail []byte, err error) {
	switch {
	case len(v) >= idLen && v[0] == magicID:
		k.ID = binary.BigEndian.Uint32(v[1:])
		return k, v[idLen:], nil
	case len(v) >= guidLen && v[0] == magicGUID:
		k.ByGUID = true
		copy(k.GUID[:], v[1:])
		return k, v[guidLen:], nil
	}
	return k, nil, fmt.Errorf("header %s has %d bytes, neither 0x00 and a schema id of 4 nor 0x01 and a GUID of 16", Header, len(v))
}
