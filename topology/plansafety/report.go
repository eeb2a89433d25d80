package plansafety

import (
	"fmt"
	"strings"
)

// Status says what becomes of a durable thing.
type Status string

// The statuses.
const (
	Kept          Status = "kept"           // the same, under the same name
	New           Status = "new"            // begins empty, or at the source's start
	Renamed       Status = "renamed"        // the same shape is elsewhere under another name, without what the old one held
	Orphaned      Status = "orphaned"       // nothing uses it any more
	Repartitioned Status = "re-partitioned" // its keys are spread by another number of partitions
	Changed       Status = "changed"        // the same name, another declaration
	Uncertain     Status = "uncertain"      // the same generated name, but perhaps of another operator
)

// Thing says what sort of durable thing a change is about.
type Thing string

// The things that are compared.
const (
	TheApplication Thing = "application"
	AStore         Thing = "store"
	ATopic         Thing = "internal topic"
	ALake          Thing = "lake sink"
	AnInput        Thing = "input"
	AnOutput       Thing = "output"
)

// Change is what becomes of one durable thing.
type Change struct {
	Thing  Thing  `json:"thing"`
	Status Status `json:"status"`
	// Old is its name in the old plan, empty if it is new; New that in the new plan, empty if it is gone.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// Loses says that state, records in flight or progress would be lost, mixed up or counted twice if nothing is done.
	Loses       bool     `json:"loses,omitempty"`
	Differences []string `json:"differences,omitempty"`
	Advice      string   `json:"advice,omitempty"`
}

// Report is the outcome of Compare.
type Report struct {
	Application string   `json:"application"`
	Changes     []Change `json:"changes"`
	// SameHash says that instances of both versions can share all tasks while one replaces the other.
	SameHash bool `json:"same_hash"`
}

// Loses tells whether any change loses something.
func (r *Report) Loses() bool {
	for i := range r.Changes {
		if r.Changes[i].Loses {
			return true
		}
	}
	return false
}

// Of gives the change of a thing by its old or new name, for tests; ok is false if there is none.
func (r *Report) Of(thing Thing, name string) (c Change, ok bool) {
	for _, c := range r.Changes {
		if c.Thing == thing && (c.Old == name || c.New == name) {
			return c, true
		}
	}
	return Change{}, false
}

// String writes the report for people: a line for each thing, with what differs and what to do below it, and a summary at the end.
func (r *Report) String() string {
	var b strings.Builder
	losing := 0
	for i := range r.Changes {
		c := &r.Changes[i]
		mark := " "
		if c.Loses {
			mark = "!"
			losing++
		}
		fmt.Fprintf(&b, "%s %-14s %-14s %s\n", mark, c.Status, c.Thing, c.Names())
		for _, d := range c.Differences {
			fmt.Fprintf(&b, "      %s\n", d)
		}
		if c.Advice != "" {
			fmt.Fprintf(&b, "      -> %s\n", c.Advice)
		}
	}
	switch {
	case losing > 0:
		fmt.Fprintf(&b, "%d of %d lose state, records or progress (marked !) if nothing is done.\n", losing, len(r.Changes))
	case r.SameHash:
		b.WriteString("Nothing differs: instances of both versions share all tasks.\n")
	default:
		b.WriteString("Nothing durable is lost. The versions differ: while one replaces the other, they share only the tasks of sub-topologies that are equal.\n")
	}
	return b.String()
}

// Names are the thing's names: one, or two with an arrow between them where they differ.
func (c *Change) Names() string {
	switch {
	case c.Old == "":
		return c.New
	case c.New == "" || c.Old == c.New:
		return c.Old
	}
	return c.Old + " -> " + c.New
}
