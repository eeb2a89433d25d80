package engine

import (
	"slices"
	"testing"
)

// What was taken with a mail that ends the engine is not lost: runners that have just been opened must be closed.
func TestMailboxPutsBackInFront(t *testing.T) {
	m := newMailbox()
	for _, mail := range []any{1, 2, 3} {
		m.put(mail)
	}
	mails := m.take()
	m.put(4)
	m.putBack(mails[1:])
	if got := m.take(); !slices.Equal(got, []any{2, 3, 4}) {
		t.Errorf("got %v", got)
	}
}
