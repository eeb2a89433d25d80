package object

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestClientsAreSharedForAWhile: stores of one place that are opened soon after each other have one client, and later ones see what has changed.
func TestClientsAreSharedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clients Clients[int]
		made := 0
		get := func(key string) int {
			client, err := clients.Get(key, func() (int, error) { made++; return made, nil })
			if err != nil {
				t.Fatal(err)
			}
			return client
		}
		if a, b, again := get("a"), get("b"), get("a"); a != 1 || b != 2 || again != 1 {
			t.Errorf("a has client %d and then %d, b has %d", a, again, b)
		}
		time.Sleep(clientAge)
		if a := get("a"); a != 3 || len(clients.kept) != 1 {
			t.Errorf("after a while a has client %d, and %d are kept", a, len(clients.kept))
		}
	})
}

// TestClientsThatFailAreNotKept has a client that could not be made be made at the next time.
func TestClientsThatFailAreNotKept(t *testing.T) {
	var clients Clients[string]
	no := errors.New("no credentials")
	if _, err := clients.Get("a", func() (string, error) { return "", no }); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	if client, err := clients.Get("a", func() (string, error) { return "made", nil }); client != "made" || err != nil {
		t.Errorf("got %q, %v", client, err)
	}
}
