package land

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// toldAddress takes the address that a server's log tells.
type toldAddress struct{ told chan string }

func (a toldAddress) Write(line []byte) (int, error) {
	if _, rest, ok := bytes.Cut(line, []byte("address=")); ok {
		a.told <- string(bytes.TrimSpace(rest))
	}
	return len(line), nil
}

// TestIdleClientsLoseTheirConnection, which would be a file for each of them else, for as long as they please.
func TestIdleClientsLoseTheirConnection(t *testing.T) {
	defer func(before time.Duration) { idleClients = before }(idleClients)
	idleClients = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := toldAddress{make(chan string, 1)}, make(chan error, 1)
	go func() {
		ended <- serve(ctx, "127.0.0.1:0", http.NotFoundHandler(), slog.New(slog.NewTextHandler(told, nil)))
	}()
	conn, err := net.Dial("tcp", <-told.told)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 404")) {
		t.Errorf("the connection is still open, or was closed with %v after %q", err, answer)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
