package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/tributary-io/tributary/internal/pyenv"
)

//go:embed peer.py
var peerProgram string

//go:embed requirements.txt
var peerRequirements string

// findPeer makes delta-rs's environment. Where it can't be had, the benchmark says so and goes on alone.
func findPeer(ctx context.Context) (python string) {
	python, err := pyenv.Python(ctx, "lake-bench", peerRequirements)
	if err != nil {
		say("NO COMPARISON: delta-rs can't be had here: %v", err)
		return ""
	}
	return python
}

// peer runs delta-rs once.
func (s *session) peer(ctx context.Context, part, dir string, rows, commits int) error {
	if s.python == "" {
		return nil
	}
	r, err := run(ctx, s.python, "-c", peerProgram, "--part", part, "--dir", dir, "--input", s.input, "--schema", eventSchema,
		"--rows", fmt.Sprint(rows), "--commits", fmt.Sprint(commits))
	if err != nil {
		return fmt.Errorf("%s, delta-rs: %w", part, err)
	}
	s.report.add(part, peerName, r)
	return nil
}
