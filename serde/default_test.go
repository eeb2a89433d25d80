package serde_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/serde"
)

func TestDefaultByExactType(t *testing.T) {
	found(t, "o-1")
	found(t, []byte("o-1"))
	found(t, int16(1))
	found(t, int32(1))
	found(t, int64(1))
	found(t, 1)
	found(t, float32(1))
	found(t, 1.0)
	found(t, true)
	found(t, uuid.UUID{})
	found(t, time.Time{})

	type orderID string
	absent[orderID](t)
	absent[*orderID](t)
	absent[any](t)
	absent[error](t)
	absent[struct{}](t)
	absent[uint64](t)
	absent[**string](t)
	absent[[]string](t)
}

// found checks T and *T, and that both write the same bytes.
func found[T any](t *testing.T, v T) {
	t.Helper()
	s, ok := serde.Default[T]()
	if !ok {
		t.Fatalf("no default serde for %T", v)
	}
	p, ok := serde.Default[*T]()
	if !ok {
		t.Fatalf("no default serde for *%T", v)
	}
	a, err := s.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Append(nil, &v)
	if err != nil || string(a) != string(b) {
		t.Errorf("%T is %x, its pointer %x, %v", v, a, b, err)
	}
	if serde.Aliases(s) != serde.Aliases(p) {
		t.Errorf("%T and its pointer differ in aliasing", v)
	}
}

func absent[T any](t *testing.T) {
	t.Helper()
	if s, ok := serde.Default[T](); ok || s != nil {
		var v T
		t.Errorf("%T has the default serde %T", v, s)
	}
}

func TestPtr(t *testing.T) {
	s := serde.Ptr(serde.Int64)
	if _, err := s.Append(nil, nil); err == nil {
		t.Error("a nil was encoded")
	} else if n := (*serde.NullError)(nil); !errors.As(err, &n) {
		t.Errorf("error %v, want a NullError", err)
	}
	if v, err := s.Decode([]byte{1}); err == nil || v != nil {
		t.Errorf("one byte gave %v, %v", v, err)
	}
	v, err := s.Decode([]byte{0, 0, 0, 0, 0, 0, 0, 9})
	if err != nil || *v != 9 {
		t.Errorf("got %v, %v", v, err)
	}

	c := serde.NewCodec(s)
	out, null, err := c.Encode([]byte("x"), nil, false)
	if string(out) != "x" || !null || err != nil {
		t.Errorf("a codec encodes nil as %q, null %v, %v", out, null, err)
	}
	if v, null, err := c.DecodeNull(nil); v != nil || !null || err != nil {
		t.Errorf("a codec decodes null as %v, null %v, %v", v, null, err)
	}
}

// topicNote writes the topic that it is bound to behind each value.
type topicNote struct{ topic string }

func (s topicNote) Append(dst []byte, v string) ([]byte, error) {
	return append(append(dst, v...), s.topic...), nil
}

func (s topicNote) Decode(data []byte) (string, error) {
	return strings.TrimSuffix(string(data), s.topic), nil
}

func (s topicNote) ForTopic(topic string, isKey bool) serde.Serde[string] {
	if isKey {
		return topicNote{"@" + topic + "-key"}
	}
	return topicNote{"@" + topic + "-value"}
}

func TestPtrBindsWhatItLifts(t *testing.T) {
	s := serde.Bind(serde.Ptr[string](topicNote{}), "orders", true)
	v := "o-1"
	if b, err := s.Append(nil, &v); string(b) != "o-1@orders-key" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	if serde.Bind(serde.String, "orders", true) != serde.String {
		t.Error("a serde that isn't bound to topics is bound to itself")
	}
}

func TestPtrPassesChecksAndPreparationOn(t *testing.T) {
	reg := serde.NewMemoryRegistry()
	defer reg.Close()
	if serde.Check(serde.Ptr(serde.Avro[string](reg, `"long"`))) == nil {
		t.Error("a mistake is hidden by the pointer")
	}
	s := serde.Bind(serde.Ptr(serde.Avro[string](reg, `"string"`)), "orders", false)
	if err := serde.Prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if id, err := reg.Lookup(t.Context(), "orders-value", `"string"`); id != 1 || err != nil {
		t.Errorf("registered as %d, %v", id, err)
	}
	if serde.Prepare(t.Context(), serde.String) != nil || serde.Check(serde.String) != nil {
		t.Error("String needs nothing")
	}
}

func TestFunc(t *testing.T) {
	type orderID string
	s := serde.Func(
		func(dst []byte, v orderID) ([]byte, error) { return append(dst, v...), nil },
		func(data []byte) (orderID, error) { return orderID(data), nil })
	wire(t, s, "o-1", "6f2d31")
	if !serde.Aliases(s) {
		t.Error("functions that nobody knows may alias")
	}
}

type retriable bool

func (retriable) Error() string     { return "registry" }
func (r retriable) Retriable() bool { return bool(r) }

func TestRetriable(t *testing.T) {
	if !serde.Retriable(errors.Join(errors.New("decode"), retriable(true))) {
		t.Error("a retriable error in the chain makes the whole retriable")
	}
	if serde.Retriable(retriable(false)) || serde.Retriable(errors.New("x")) || serde.Retriable(nil) {
		t.Error("nothing else is retriable")
	}
}

func TestHeadersAreShownAsText(t *testing.T) {
	if got := (serde.Header{Key: "reason", Value: []byte("late\n")}).String(); got != `reason="late\n"` {
		t.Errorf("shown as %s", got)
	}
}
