package engine

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clientLogger passes the Kafka client's errors and warnings on, one level lower: what matters of them the engine says itself.
type clientLogger struct{ to *slog.Logger }

func (l clientLogger) Level() kgo.LogLevel {
	if l.to.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelWarn
	}
	return kgo.LogLevelError
}

func (l clientLogger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	at := slog.LevelDebug
	if level == kgo.LogLevelError {
		at = slog.LevelWarn
	}
	l.to.Log(context.Background(), at, "kafka client: "+msg, keyvals...)
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
