package leaks

import (
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// A goroutine that takes longer to end than goleak waits is none that leaks; one that doesn't end is.
func TestSlowEndsAreNoLeaks(t *testing.T) {
	end := make(chan struct{})
	go func() { <-end }()
	if err := find(0, nil); err == nil {
		t.Error("a goroutine that runs was not found")
	}
	time.AfterFunc(time.Second, func() { close(end) })
	if err := Find(); err != nil {
		t.Errorf("a goroutine that ends in a second: %v", err)
	}
}
