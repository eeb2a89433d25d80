package protorows

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tributary-io/tributary/lake/columns/avrorows"
)

// value is a message, or a field's value. It implements avrorows.Value.
type value struct {
	message protoreflect.Message // of a message; nil for others
	field   protoreflect.FieldDescriptor
	v       protoreflect.Value
	element bool // of a list or a map, whose descriptor is the field's
}

// of makes a value of a field's.
func of(field protoreflect.FieldDescriptor, v protoreflect.Value, element bool) value {
	out := value{field: field, v: v, element: element}
	whole := !element && (field.IsList() || field.IsMap())
	if !whole && (field.Kind() == protoreflect.MessageKind || field.Kind() == protoreflect.GroupKind) {
		out.message = v.Message()
		if wrapped := wrapped(out.message); wrapped != nil {
			return of(wrapped, out.message.Get(wrapped), false)
		}
	}
	return out
}

// wrapped is the field of google.protobuf.StringValue and its like.
func wrapped(m protoreflect.Message) protoreflect.FieldDescriptor {
	name, ok := strings.CutPrefix(string(m.Descriptor().FullName()), "google.protobuf.")
	if !ok || !strings.HasSuffix(name, "Value") || name == "Value" || name == "ListValue" {
		return nil
	}
	return m.Descriptor().Fields().ByName("value")
}

// get reads a number of a well-known message.
func get(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

func (v value) Kind() avrorows.ValueKind {
	if v.message != nil {
		switch v.message.Descriptor().FullName() {
		case "google.protobuf.Timestamp":
			return avrorows.InstantValue
		case "google.protobuf.Duration":
			return avrorows.IntValue
		case "google.type.Date", "confluent.type.Decimal":
			return avrorows.TextValue
		}
		return avrorows.ObjectValue
	}
	if !v.element {
		if v.field.IsList() {
			return avrorows.ListValue
		}
		if v.field.IsMap() {
			return avrorows.ObjectValue
		}
	}
	switch v.field.Kind() {
	case protoreflect.BoolKind:
		return avrorows.BoolValue
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return avrorows.FloatValue
	case protoreflect.StringKind:
		return avrorows.TextValue
	case protoreflect.BytesKind:
		return avrorows.BytesValue
	case protoreflect.EnumKind:
		if v.field.Enum().Values().ByNumber(v.v.Enum()) == nil {
			return avrorows.IntValue // proto3 keeps numbers that the schema has no name for
		}
		return avrorows.TextValue
	}
	return avrorows.IntValue
}

func (v value) Bool() bool { return v.v.Bool() }

func (v value) Int() (int64, bool) {
	if v.message != nil { // a duration
		seconds, nanos := get(v.message, "seconds").Int(), get(v.message, "nanos").Int()
		if seconds > math.MaxInt64/1_000_000-1 || seconds < math.MinInt64/1_000_000+1 {
			return 0, false
		}
		return seconds*1_000_000 + nanos/1000, true
	}
	switch x := v.v.Interface().(type) {
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case uint32:
		return int64(x), true
	case uint64:
		return int64(x), x <= math.MaxInt64
	case protoreflect.EnumNumber:
		return int64(x), true
	case float32, float64:
		f := v.v.Float()
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	return 0, false
}

func (v value) Float() (float64, bool) {
	switch v.field.Kind() {
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return v.v.Float(), true
	}
	n, ok := v.Int()
	return float64(n), ok
}

func (v value) AppendText(dst []byte) ([]byte, error) {
	if v.message != nil {
		switch v.message.Descriptor().FullName() {
		case "google.type.Date":
			year, month, day := get(v.message, "year").Int(), get(v.message, "month").Int(), get(v.message, "day").Int()
			return fmt.Appendf(dst, "%04d-%02d-%02d", year, month, day), nil
		case "confluent.type.Decimal":
			return appendDecimal(dst, get(v.message, "value").Bytes(), get(v.message, "scale").Int())
		}
	}
	switch v.field.Kind() {
	case protoreflect.StringKind:
		return append(dst, v.v.String()...), nil
	case protoreflect.EnumKind:
		if name := v.field.Enum().Values().ByNumber(v.v.Enum()); name != nil {
			return append(dst, name.Name()...), nil
		}
	case protoreflect.FloatKind:
		return strconv.AppendFloat(dst, v.v.Float(), 'f', -1, 32), nil
	case protoreflect.DoubleKind:
		return strconv.AppendFloat(dst, v.v.Float(), 'f', -1, 64), nil
	}
	if u, ok := v.v.Interface().(uint64); ok {
		return strconv.AppendUint(dst, u, 10), nil
	}
	n, _ := v.Int()
	return strconv.AppendInt(dst, n, 10), nil
}

// appendDecimal writes the digits of an unscaled number in two's complement, big endian.
func appendDecimal(dst, unscaled []byte, scale int64) ([]byte, error) {
	const most = 100
	if len(unscaled) > most || scale < -most || scale > most {
		return nil, fmt.Errorf("a decimal of %d bytes and scale %d", len(unscaled), scale)
	}
	n := new(big.Int).SetBytes(unscaled)
	if len(unscaled) > 0 && unscaled[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(unscaled))*8))
	}
	return fmt.Appendf(dst, "%se%d", n, -scale), nil
}

func (v value) Bytes() []byte { return v.v.Bytes() }

func (v value) Instant() (int64, int32) {
	return get(v.message, "seconds").Int(), int32(get(v.message, "nanos").Int())
}

func (v value) Items(yield func(value) error) error {
	list := v.v.List()
	for i := range list.Len() {
		if err := yield(of(v.field, list.Get(i), true)); err != nil {
			return err
		}
	}
	return nil
}

func (v value) Entries(yield func(key []byte, v value) (bool, error)) (err error) {
	var name [64]byte
	if v.message == nil { // a map
		v.v.Map().Range(func(k protoreflect.MapKey, item protoreflect.Value) bool {
			_, err = yield(append(name[:0], k.String()...), of(v.field.MapValue(), item, true))
			return err == nil
		})
		return err
	}
	fields := v.message.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !v.message.Has(f) {
			continue
		}
		member := of(f, v.message.Get(f), false)
		taken, err := yield(append(name[:0], f.Name()...), member)
		if err == nil && !taken && f.JSONName() != string(f.Name()) {
			_, err = yield(append(name[:0], f.JSONName()...), member)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
