package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
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
	// Position is the "file.go:line" of the user's call that it was found at; empty if it is unknown.
	Position string
	// Message says what is wrong and what to do.
	Message string
	// Err is the cause, if another error was.
	Err error
	// Missing are the serdes whose absence it is about. Build tells of each once: whatever else needs it follows from that.
	Missing []MissingSerde
}

// MissingSerde is an unknown serde of a key or a value.
type MissingSerde struct {
	What string // "key" or "value"
	Type reflect.Type
}

func (p Problem) Error() string {
	msg := p.Message
	if p.Err != nil {
		if msg != "" {
			msg += ": "
		}
		msg += p.Err.Error()
	}
	if p.Node != "" {
		msg = p.Node + ": " + msg
	}
	if p.Position != "" {
		msg = p.Position + ": " + msg
	}
	return msg
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

// UnknownSerdes is the error of an operator that would have to make bytes of keys or values without knowing how.
type UnknownSerdes struct {
	Missing []MissingSerde
	Text    string
}

func (e *UnknownSerdes) Error() string { return e.Text }

// MissingIn tells what err is about, if it is an *UnknownSerdes.
func MissingIn(err error) []MissingSerde {
	var u *UnknownSerdes
	if errors.As(err, &u) {
		return u.Missing
	}
	return nil
}

// withoutConsequences leaves out problems about nothing but serdes that an earlier problem misses, too, and tells there which other lines need them.
func withoutConsequences(problems []Problem) []Problem {
	var out []Problem
	first := make(map[MissingSerde]int)
	also := make(map[int][]string)
	for _, p := range problems {
		cause, known := -1, len(p.Missing) > 0
		for _, m := range p.Missing {
			i, told := first[m]
			if known = known && told; told {
				cause = i
			}
		}
		if known {
			if p.Position != out[cause].Position && p.Position != "" && !slices.Contains(also[cause], p.Position) {
				also[cause] = append(also[cause], p.Position)
			}
			continue
		}
		for _, m := range p.Missing {
			if _, told := first[m]; !told {
				first[m] = len(out)
			}
		}
		out = append(out, p)
	}
	for i, positions := range also {
		if out[i].Err != nil { // what is unknown; a serde that is nil is a mistake at one place
			out[i].Err = fmt.Errorf("%w (needed by %s, too)", out[i].Err, strings.Join(positions, ", "))
		}
	}
	return out
}
