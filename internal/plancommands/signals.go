package plancommands

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameRequest is how long after a first signal another one is the same request: timeout(1), terminals and supervisors signal a process by itself
// and again with its group, within moments.
const sameRequest = time.Second

// UntilInterrupted is the context of a command line: it ends with the first interrupt or SIGTERM, so that the command closes in good order. One
// that comes more than a second later ends the process at once. stop gives the signals back.
func UntilInterrupted() (ctx context.Context, stop context.CancelFunc) {
	return untilInterrupted(sameRequest)
}

func untilInterrupted(sameRequest time.Duration) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameRequest, stop) })
	return ctx, stop
}
