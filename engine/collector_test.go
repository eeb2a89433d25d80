package engine

import "testing"

// Empty is not null: an empty key or value that was the first thing a task sent in a transaction was written as null, which a compacted
// topic refuses, or takes for a delete.
func TestEmptyBytesAreNotNull(t *testing.T) {
	c := &collector{}
	if c.copy([]byte{}) == nil {
		t.Error("an empty value has become null")
	}
	if c.copy(nil) != nil {
		t.Error("a null has become a value")
	}
	if got := c.copy([]byte("x")); string(got) != "x" || c.copy([]byte{}) == nil {
		t.Errorf("got %q", got)
	}
}
