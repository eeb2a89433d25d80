package protorows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tributary-io/tributary/lake/columns/wire"
)

// Text is a schema as a registry holds it: the text of a .proto file, and of those that it imports, by the names that it imports them by.
type Text struct {
	Schema  string
	Imports map[string]string
}

// Source gives the schemas that producers have written with. It must be safe for concurrent use. wire.ErrUnknownSchema (wrapped) says that there
// is none; any other error says that the registry can't be asked now.
type Source func(key wire.Key) (Text, error)

// fileName is the registered schema's among its imports.
const fileName = "the registered schema.proto"

// known holds files that serializers take for granted.
var known = map[string]string{
	"confluent/type/decimal.proto": `syntax = "proto3"; package confluent.type; message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }`,
	"confluent/meta.proto": `syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }`,
	"google/type/date.proto": `syntax = "proto3"; package google.type; message Date { int32 year = 1; int32 month = 2; int32 day = 3; }`,
}

// file is a compiled schema with the messages that were asked for.
type file struct {
	desc protoreflect.FileDescriptor

	mu       sync.Mutex
	messages map[string]protoreflect.MessageDescriptor // by their indexes, as they are on the wire
}

func compile(t Text) (*file, error) {
	texts := maps.Clone(known)
	maps.Copy(texts, t.Imports)
	texts[fileName] = t.Schema
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(texts)})}
	files, err := c.Compile(context.Background(), fileName)
	if err != nil {
		return nil, fmt.Errorf("the Protobuf schema doesn't compile: %w", err)
	}
	return &file{desc: files[0], messages: map[string]protoreflect.MessageDescriptor{}}, nil
}

var errIndexes = errors.New("the message indexes behind the schema id are damaged: it was not written by a Protobuf serializer")

// maxIndexes is deeper than anyone nests messages.
const maxIndexes = 32

// message takes the message indexes off and returns the message that they lead to: how many there are and the indexes themselves, as signed
// varints, and a single zero for the first message of the file.
func (f *file) message(data []byte) (m protoreflect.MessageDescriptor, body []byte, err error) {
	count, n := binary.Varint(data)
	if n <= 0 || count < 0 || count > maxIndexes {
		return nil, nil, errIndexes
	}
	path := []int64{0}
	at := n
	if count > 0 {
		path = path[:0]
	}
	for range count {
		i, n := binary.Varint(data[at:])
		if n <= 0 {
			return nil, nil, errIndexes
		}
		path, at = append(path, i), at+n
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m = f.messages[string(data[:at])]; m == nil {
		if m, err = f.find(path); err != nil {
			return nil, nil, err
		}
		f.messages[string(data[:at])] = m
	}
	return m, data[at:], nil
}

func (f *file) find(path []int64) (m protoreflect.MessageDescriptor, err error) {
	in := f.desc.Messages()
	for _, i := range path {
		if i < 0 || i >= int64(in.Len()) {
			return nil, fmt.Errorf("the schema has no message with the indexes %v", path)
		}
		m = in.Get(int(i))
		in = m.Messages()
	}
	return m, nil
}
