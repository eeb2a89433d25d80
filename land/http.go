package land

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// idleClients is how long a client may keep a connection without using it. Tests shorten it.
var idleClients = 2 * time.Minute

// serve serves HTTP until ctx ends. Requests that are under way get a moment to end.
func serve(ctx context.Context, addr string, h http.Handler, log *slog.Logger) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("serve metrics and health: %w", err)
	}
	log.Info("serving metrics and health", "address", l.Addr().String())
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleClients, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(wait) != nil {
			server.Close() // connections that clients keep open
		}
		err = <-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve metrics and health: %w", err)
}
