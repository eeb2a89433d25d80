package plansafety

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Plan is what is to be compared of a topology, as plain data. Its JSON form is stable: docs/format/plan-json.md. Lists are sorted by
// name, and fields that are empty are left out, so that files of equal plans are equal.
type Plan struct {
	// Format is always "tributary-plan". Version is that of the writer, OldestReader the oldest version that can read what it wrote.
	Format       string `json:"format"`
	Version      int    `json:"version"`
	OldestReader int    `json:"oldest_reader"`

	Application string `json:"application"`
	// Hash is topology.Plan's: instances with equal hashes can share all tasks.
	Hash string `json:"hash"`
	// StrictNames says that the plan was built with topology.StrictNames, so that nothing durable has a generated name.
	StrictNames   bool          `json:"strict_names"`
	Subtopologies []Subtopology `json:"subtopologies"`
	Stores        []Store       `json:"stores,omitempty"`
	Topics        []Topic       `json:"internal_topics,omitempty"`
	Lakes         []Lake        `json:"lake_sinks,omitempty"`
	Outputs       []string      `json:"outputs,omitempty"` // the user's topics that are written
}

// Subtopology is the unit that becomes tasks.
type Subtopology struct {
	ID     int      `json:"id"`
	Global bool     `json:"global,omitempty"`
	Inputs []string `json:"inputs"` // topics, internal ones by their full names; "pattern:" and a regular expression
	Nodes  []string `json:"nodes"`
}

// Store is a state store.
type Store struct {
	Name        string `json:"name"`
	Generated   bool   `json:"generated_name,omitempty"`
	Kind        string `json:"kind"`
	Subtopology int    `json:"subtopology"`
	Global      bool   `json:"global,omitempty"`
	// Changelog is the topic that it is restored from, empty without logging; SourceTopic says that this is an input of the topology.
	Changelog   string `json:"changelog,omitempty"`
	SourceTopic bool   `json:"changelog_is_source,omitempty"`
	Key         string `json:"key_serde,omitempty"`
	Value       string `json:"value_serde,omitempty"`
	// Origins are the topics of the user, or patterns, that its contents come from, through whatever internal topics. Path is how: the
	// operators from the sources to the store, without numbers.
	Origins []string `json:"origins"`
	Path    []string `json:"path"`
	Width   Width    `json:"partitions"`

	InMemory         bool  `json:"in_memory,omitempty"`
	MaxEntries       int   `json:"max_entries,omitempty"`
	RetentionMs      int64 `json:"retention_ms,omitempty"`
	WindowSizeMs     int64 `json:"window_size_ms,omitempty"`
	HistoryMs        int64 `json:"history_ms,omitempty"`
	GraceMs          int64 `json:"grace_ms,omitempty"`
	RetainDuplicates bool  `json:"retain_duplicates,omitempty"`
}

// Topic is an internal topic other than a changelog, which is told with its store.
type Topic struct {
	Name      string            `json:"name"`
	Generated bool              `json:"generated_name,omitempty"`
	Kind      string            `json:"kind"` // "repartition" or "lake"
	Key       string            `json:"key_serde,omitempty"`
	Value     string            `json:"value_serde,omitempty"`
	Origins   []string          `json:"origins"`
	Path      []string          `json:"path"`
	Width     Width             `json:"partitions"`
	Config    map[string]string `json:"config,omitempty"`
}

// Lake is a lake sink.
type Lake struct {
	Name      string   `json:"name"`
	Generated bool     `json:"generated_name,omitempty"`
	Table     string   `json:"table"`
	Inputs    []string `json:"inputs"` // the topics that the table's progress is kept for
	Origins   []string `json:"origins"`
}

// Width is what decides the number of partitions: a number that the topology asks for, or the topics of the user with the most. It
// says nothing about how many these have.
type Width struct {
	Fixed  int32    `json:"fixed,omitempty"`
	Follow []string `json:"follow,omitempty"`
}

const (
	formatName    = "tributary-plan"
	formatVersion = 1
	oldestReader  = 1
)

// Write writes p as indented JSON that ends in a newline.
func (p *Plan) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return fmt.Errorf("write plan of %s: %w", p.Application, err)
	}
	return nil
}

// Read reads what Write has written, by this version or another one that says that this one understands it. Fields that it doesn't know
// are left out.
func Read(r io.Reader) (*Plan, error) {
	var p Plan
	if err := json.NewDecoder(r).Decode(&p); err != nil {
		return nil, fmt.Errorf("not a saved plan: %w", err)
	}
	switch {
	case p.Format != formatName:
		return nil, fmt.Errorf("not a saved plan: its format is %q, not %q; save one with tributary explain --json, or plansafety.Snapshot", p.Format, formatName)
	case p.OldestReader > formatVersion:
		return nil, fmt.Errorf("the plan was saved by a later version (format %d, readable from %d on; this is %d): use that version to compare it",
			p.Version, p.OldestReader, formatVersion)
	case p.Version < 1 || p.Application == "":
		return nil, errors.New("not a saved plan: it has no version or no application")
	}
	return &p, nil
}

// ReadFile reads a plan from a file.
func ReadFile(path string) (*Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	defer f.Close()
	p, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
