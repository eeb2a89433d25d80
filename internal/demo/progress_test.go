package demo

import "testing"

func TestConsoleAt(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080/console/", "[::]:8080": "http://localhost:8080/console/", "0.0.0.0:1": "http://localhost:1/console/", "[::1]:2": "http://[::1]:2/console/",
	} {
		if got := consoleAt(addr); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
