package task

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/processors"
)

func TestPanicsAreShortAndTheirStackIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	b := newBench(t, func(c *Config) {
		c.Handlers.Processing = processors.DeadLetterOnError("dead")
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}, nil, "a")
	b.add(t, "a", 0, "boom1", "boom2", "boom3")
	b.drain(t)
	if len(b.sent) != 3 {
		t.Fatalf("%d dead letters", len(b.sent))
	}
	for _, h := range b.sent[2].Headers {
		switch h.Key {
		case processors.HeaderErrorMessage:
			if !regexp.MustCompile(`^node NODE: panic: boom \(task_test\.go:\d+\)$`).Match(h.Value) {
				t.Errorf("message %q", h.Value)
			}
		case processors.HeaderErrorStacktrace:
			if s := string(h.Value); !strings.Contains(s, "task_test.go:") || strings.Contains(s, "errors.go") || strings.Contains(s, "gopanic") {
				t.Errorf("the stack has no line of the function, or others' frames:\n%s", s)
			}
		}
	}
	if n := strings.Count(log.String(), "stack="); n != 1 {
		t.Errorf("the stack was logged %d times:\n%s", n, &log)
	}
}

func TestStackOfAFatalPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	b := newBench(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }, nil, "a")
	b.add(t, "a", 0, "boom1")
	if _, err := b.Process(); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	if n := strings.Count(log.String(), "stack="); n != 1 {
		t.Errorf("the stack was logged %d times:\n%s", n, &log)
	}
}
