package plan

import (
	"fmt"
	"strings"
)

// ProblemKind tells what sort of mistake a Problem is. Kafka Streams throws a TopologyException for the first, an
// IllegalArgumentException or NullPointerException for the second.
type ProblemKind int

// The kinds of problems.
const (
	// TopologyProblem: the parts don't fit together, such as a name used twice or an unknown parent.
	TopologyProblem ProblemKind = iota
	// InvalidArgument: one part is wrong in itself, such as a nil function or a window of no size.
	InvalidArgument
)

func (k ProblemKind) String() string {
	if k == InvalidArgument {
		return "invalid argument"
	}
	return "topology"
}

// Problem is one thing that is wrong with a topology.
type Problem struct {
	Kind ProblemKind
	// Node names the node, store or operator that the problem was found at; empty for the topology as a whole.
	Node string
	// Message says what is wrong and what to do.
	Message string
	// Err is the cause, if another error was.
	Err error
}

func (p Problem) Error() string {
	msg := p.Message
	if p.Err != nil {
		if msg != "" {
			msg += ": "
		}
		msg += p.Err.Error()
	}
	if p.Node == "" {
		return msg
	}
	return p.Node + ": " + msg
}

// Unwrap returns the cause.
func (p Problem) Unwrap() error { return p.Err }

// BuildError holds everything that is wrong with a topology, in the order in which it was found.
type BuildError struct {
	ApplicationID string
	Problems      []Problem
}

func (e *BuildError) Error() string {
	if len(e.Problems) == 1 {
		return fmt.Sprintf("topology %s: %v", e.ApplicationID, e.Problems[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "topology %s has %d problems:", e.ApplicationID, len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  - ")
		b.WriteString(p.Error())
	}
	return b.String()
}

// Unwrap returns the problems, so that errors.As and errors.Is find their causes.
func (e *BuildError) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}
