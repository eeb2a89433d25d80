package engine

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/simnet"
)

// simCounts counts what was simulated: which steps were struck, what became of requests, and what the engine made of it.
type simCounts struct {
	mu    sync.Mutex
	other map[string]int
	steps map[step]*[simBlows]int // times that a process was struck there
	fates map[kmsg.Key]*[simFates]int
	said  map[string]int // the engine's warnings
}

// simFates are the columns of a request's row: simnet's fates, and being held up.
const (
	simHeld  = int(simnet.Late) + 1
	simFates = simHeld + 1
)

func newSimCounts() *simCounts {
	return &simCounts{other: map[string]int{}, steps: map[step]*[simBlows]int{}, fates: map[kmsg.Key]*[simFates]int{}, said: map[string]int{}}
}

func (c *simCounts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.other[what]++
}

func (c *simCounts) struck(s step, b blow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steps[s] == nil {
		c.steps[s] = new([simBlows]int)
	}
	c.steps[s][b]++
}

func (c *simCounts) fate(key kmsg.Key, fate int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fates[key] == nil {
		c.fates[key] = new([simFates]int)
	}
	c.fates[key][fate]++
}

// simNews is how messages begin that are no warnings, and counted all the same.
var simNews = []string{"a commit failed", "a standby takes over", "checkpoint kept", "checkpoint taken over"}

// hear counts a message of the engine's log, with the outcome that it names.
func (c *simCounts) hear(r slog.Record) {
	if r.Level < slog.LevelWarn && !slices.ContainsFunc(simNews, func(begins string) bool { return strings.HasPrefix(r.Message, begins) }) {
		return
	}
	what := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "outcome" {
			what += " (" + a.Value.String() + ")"
		}
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said[what]++
}

// String is the table that a run ends with.
func (c *simCounts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	total := 0
	b.WriteString("steps: the process died, its producer fenced, thrown out of the group, stalled\n")
	for _, s := range simStepsToStrikeAt {
		row := c.steps[s]
		if row == nil {
			row = new([simBlows]int)
		}
		fmt.Fprintf(&b, "%9d %9d %9d %9d %s\n", row[dies], row[fenced], row[thrown], row[stalls], s)
		total += row[dies] + row[fenced] + row[thrown] + row[stalls]
	}
	b.WriteString("requests: lost, answer lost, killed before, killed after, late, held up\n")
	for _, key := range simKeys {
		row := c.fates[key]
		if row == nil {
			row = new([simFates]int)
		}
		fmt.Fprintf(&b, "%9d %9d %9d %9d %9d %9d %s\n", row[simnet.LoseRequest], row[simnet.LoseAnswer], row[simnet.Kill], row[simnet.KillAfter], row[simnet.Late], row[simHeld], key.Name())
		total += row[simnet.LoseRequest] + row[simnet.LoseAnswer] + row[simnet.Kill] + row[simnet.KillAfter] + row[simnet.Late]
	}
	for _, part := range []struct {
		title string
		n     map[string]int
	}{{"otherwise", c.other}, {"the engine said", c.said}} {
		fmt.Fprintln(&b, part.title)
		for _, what := range slices.Sorted(maps.Keys(part.n)) {
			fmt.Fprintf(&b, "%9d %s\n", part.n[what], what)
		}
	}
	fmt.Fprintf(&b, "%9d times a step or a request of the cycle was struck", total)
	return b.String()
}
