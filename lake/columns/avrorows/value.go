package avrorows

// ValueKind is what a value of another format is, before the declared schema says what it becomes.
type ValueKind uint8

// The kinds of values. Numbers without a fraction are IntValue where the format can tell; InstantValue is a point in time that the format
// has a type of its own for.
const (
	NullValue ValueKind = iota
	BoolValue
	IntValue
	FloatValue
	TextValue
	BytesValue
	InstantValue
	ListValue
	ObjectValue // a record, or a map
)

var valueKinds = [...]string{NullValue: "null", BoolValue: "a boolean", IntValue: "an integer", FloatValue: "a number", TextValue: "a text",
	BytesValue: "bytes", InstantValue: "an instant", ListValue: "a list", ObjectValue: "an object"}

func (k ValueKind) String() string { return valueKinds[k] }

// Value is a value of another format, such as JSON or Protobuf, as a Transcoder asks for it. Methods other than Kind are called only
// where they make sense for the kind.
type Value[V any] interface {
	Kind() ValueKind
	Bool() bool
	// Int is an IntValue's or FloatValue's number; ok is false where it has a fraction or is out of range.
	Int() (n int64, ok bool)
	Float() (f float64, ok bool) // ok is false where it is out of range
	// AppendText appends a TextValue's text, or the digits of a number, without losing any.
	AppendText(dst []byte) ([]byte, error)
	Bytes() []byte
	Instant() (seconds int64, nanos int32)
	// Items calls yield for each element of a ListValue, and returns its error.
	Items(yield func(V) error) error
	// Entries calls yield for each member of an ObjectValue, and returns its error. key is only valid during the call. taken says that the
	// schema has a field of the name: a format whose members have two names tries the other one where it is false.
	Entries(yield func(key []byte, v V) (taken bool, err error)) error
}
