package kafkaflags

import (
	"fmt"
	"log/slog"
)

// secret is a text that no formatting shows, not even as a field of something else: fmt doesn't follow a pointer that far down.
type secret struct{ text *string }

func newSecret(text string) secret {
	if text == "" {
		return secret{}
	}
	return secret{&text}
}

func (s secret) given() bool { return s.text != nil }

const hidden = "(hidden)"

// String is empty without a secret, so that a flag of this type shows no default.
func (s secret) String() string {
	if !s.given() {
		return ""
	}
	return hidden
}

// Format implements fmt.Formatter: whatever the verb, nothing is shown.
func (s secret) Format(w fmt.State, _ rune) { fmt.Fprint(w, s.String()) }

// LogValue implements slog.LogValuer.
func (s secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler.
func (s secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Set implements pflag.Value.
func (s *secret) Set(text string) error {
	*s = newSecret(text)
	return nil
}

// Type implements pflag.Value.
func (s *secret) Type() string { return "string" }
