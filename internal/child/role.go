package child

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// variable holds the role of a child and its arguments.
const variable = "TRIBUTARY_CHILD"

// heedFile is the child's end of a pipe, which it closes once SIGTERM ends its role and not the process.
const heedFile = 3

// order is what a child is told.
type order struct {
	Role string
	Args json.RawMessage
}

// Role is what a program does as a child. ctx ends at SIGTERM; an error is printed and makes the exit code 1.
type Role func(ctx context.Context, args json.RawMessage) error

// Main plays the role that this process was started for, and exits; in a process that is nobody's child it does nothing. It is the first
// thing that main or TestMain calls.
func Main(roles map[string]Role) {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	if err := play(roles, text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(roles map[string]Role, text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("read the orders of a child from %s: %w", variable, err)
	}
	role := roles[o.Role]
	if role == nil {
		return fmt.Errorf("this program has no role %q", o.Role)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := os.NewFile(heedFile, "heeds SIGTERM").Close(); err != nil {
		return fmt.Errorf("tell the parent of a child that it can be stopped: %w", err)
	}
	return role(ctx, o.Args)
}

// As is a Role with typed arguments.
func As[A any](f func(ctx context.Context, args A) error) Role {
	return func(ctx context.Context, raw json.RawMessage) error {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return fmt.Errorf("read the arguments of a child: %w", err)
		}
		return f(ctx, args)
	}
}
