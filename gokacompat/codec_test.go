package gokacompat_test

import (
	"strings"
	"testing"

	"github.com/lovoo/goka/codec"

	"github.com/tributary-io/tributary/gokacompat"
	"github.com/tributary-io/tributary/serde"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestCodecsAndSerdes(t *testing.T) {
	s := gokacompat.Serde(new(codec.Int64))
	data, err := s.Append([]byte("x"), int64(42))
	if err != nil || string(data) != "x42" {
		t.Errorf("Append: %q, %v", data, err)
	}
	if v, err := s.Decode([]byte("42")); err != nil || v != int64(42) {
		t.Errorf("Decode: %v, %v", v, err)
	}
	if _, err := s.Append(nil, "text"); err == nil {
		t.Error("a value of another type was encoded")
	}
	if _, err := s.Decode([]byte("text")); err == nil {
		t.Error("text was decoded as a number")
	}

	typed := gokacompat.TypedSerde[string](new(codec.Int64))
	if _, err := typed.Decode([]byte("1")); err == nil || !contains(err.Error(), "gives a int64") {
		t.Errorf("a codec of another type: %v", err)
	}

	c := gokacompat.Codec(serde.Int64)
	data, err = c.Encode(int64(1))
	if err != nil || string(data) != "\x00\x00\x00\x00\x00\x00\x00\x01" {
		t.Errorf("Encode: %q, %v", data, err)
	}
	if v, err := c.Decode(data); err != nil || v != int64(1) {
		t.Errorf("Decode: %v, %v", v, err)
	}
	if _, err := c.Encode(1); err == nil {
		t.Error("an int was encoded by a serde of int64")
	}
	if data, err := gokacompat.Codec(serde.String).Encode(""); err != nil || data == nil {
		t.Errorf("the empty string is %v, %v: goka would take it for a delete", data, err)
	}
	if serde.Check(gokacompat.Serde(nil)) == nil {
		t.Error("a nil codec is no mistake")
	}
}
