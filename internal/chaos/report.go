package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/engine"
)

// Report is what came of a run.
type Report struct {
	Seed      uint64
	Setup     Setup
	Duration  time.Duration
	Guarantee engine.Guarantee
	// Events counts what happened, by kind.
	Events map[string]int
	// Records were read from the topics of orders and payments; Duplicates of them were repeated events.
	Records, Duplicates int64
	// Settled is how long it took, with everything well again, until all was processed, the closing records included.
	Settled time.Duration
	Books   []Book
	// Failures are instances that ended with an error, or not at all, and weather that could not be made.
	Failures []error
}

func (r *Report) weather(w *weather) {
	r.Events = w.counts
	for _, err := range w.errs {
		if err != nil {
			r.Failures = append(r.Failures, err)
		}
	}
}

func (r *Report) model(m *model) { r.Records, r.Duplicates = m.records, m.duplicates }

// Happened is the number of events.
func (r *Report) Happened() (n int) {
	for _, c := range r.Events {
		n += c
	}
	return n
}

// Sums adds up the books.
func (r *Report) Sums() (lost, doubled, wrong int64) {
	for _, b := range r.Books {
		lost, doubled, wrong = lost+b.Lost, doubled+b.Doubled, wrong+b.Wrong
	}
	return lost, doubled, wrong
}

// String is the report for people.
func (r *Report) String() string {
	var b strings.Builder
	lost, doubled, wrong := r.Sums()
	fmt.Fprintf(&b, "seed %d, %v, %v: %d records (%d repeated), %d events, settled in %v: %d lost, %d doubled, %d wrong, %d failures\n",
		r.Seed, r.Setup, r.Duration, r.Records, r.Duplicates, r.Happened(), r.Settled.Round(100*time.Millisecond), lost, doubled, wrong, len(r.Failures))
	for _, name := range slices.Sorted(maps.Keys(r.Events)) {
		fmt.Fprintf(&b, "  %3d %s\n", r.Events[name], name)
	}
	for i := range r.Books {
		fmt.Fprintf(&b, "  %s\n", r.Books[i].String())
		for _, d := range r.Books[i].First {
			fmt.Fprintf(&b, "      %s\n", d)
		}
	}
	for _, err := range r.Failures {
		fmt.Fprintf(&b, "  FAILED: %v\n", err)
	}
	return b.String()
}
