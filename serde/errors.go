package serde

import (
	"errors"
	"fmt"
)

// LengthError says that data has a length which its type can't have.
type LengthError struct {
	Type      string // the Go type
	Want, Got int    // in bytes
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("%s takes %d bytes, got %d: the topic is written with another serializer", e.Type, e.Want, e.Got)
}

// Retriable reports whether err says nothing about the record: the same bytes may well decode, or the same value encode, a
// little later. A schema registry that is down or refuses the credentials is retriable; a schema id that the registry doesn't
// know is not. A record that met a retriable error must be tried again, never skipped and never dead-lettered.
//
// An error takes part by having a method Retriable() bool, anywhere in its chain. All others are not retriable.
func Retriable(err error) bool {
	var r interface{ Retriable() bool }
	return errors.As(err, &r) && r.Retriable()
}

// RangeError says that a number is beyond what its Go type holds on this platform.
type RangeError struct {
	Type string // the Go type
}

func (e *RangeError) Error() string {
	return "number is out of range for " + e.Type + " on this platform: declare an int64"
}
