package golden

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Outcome is the verdict on one scenario.
type Outcome string

// The outcomes. A Quirk is a scenario in which the library differs from Kafka Streams on purpose: in the listed sections only.
const (
	Passed      Outcome = "passed"
	Failed      Outcome = "failed"
	Unsupported Outcome = "unsupported"
	Quirk       Outcome = "quirk"
)

// Verdict says how one scenario went.
type Verdict struct {
	Name    string  `json:"name"`
	Path    string  `json:"path,omitempty"`
	Outcome Outcome `json:"outcome"` // over the semantics sections
	// Groups has an outcome for each group of sections.
	Groups map[Group]Outcome `json:"groups"`
	// Differences holds the first difference of every section that differs.
	Differences []Difference `json:"differences,omitempty"`
	// Reason says why the scenario is unsupported, or why it differs on purpose.
	Reason string `json:"reason,omitempty"`
	Doc    string `json:"doc,omitempty"` // page that documents a difference on purpose
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (v Verdict) all(o Outcome, err error) Verdict {
	for _, g := range Groups {
		v.Groups[g] = o
	}
	v.Outcome, v.Reason = o, err.Error()
	return v
}

// Report sums up verdicts.
type Report struct {
	Passed      int       `json:"passed"`
	Failed      int       `json:"failed"`
	Unsupported int       `json:"unsupported"`
	Quirks      int       `json:"quirks"` // differences on purpose, among the passed
	Scenarios   []Verdict `json:"scenarios"`
	// Sections counts outcomes by group.
	Sections map[Group]map[Outcome]int `json:"sections"`
}

// NewReport counts.
func NewReport(verdicts []Verdict) *Report {
	r := &Report{Scenarios: verdicts, Sections: map[Group]map[Outcome]int{}}
	for _, g := range Groups {
		r.Sections[g] = map[Outcome]int{}
	}
	for _, v := range verdicts {
		for _, g := range Groups {
			r.Sections[g][v.Groups[g]]++
		}
	}
	s := r.Sections[Semantics]
	r.Quirks = s[Quirk]
	r.Passed, r.Failed, r.Unsupported = s[Passed]+s[Quirk], s[Failed], s[Unsupported]
	return r
}

// AllPassed reports whether every scenario passed in every section, or differs on purpose.
func (r *Report) AllPassed() bool {
	for _, g := range Groups {
		if r.Sections[g][Failed]+r.Sections[g][Unsupported] > 0 {
			return false
		}
	}
	return true
}

// Print writes a line for each failing scenario and section, one for each group of sections, and the sum.
func (r *Report) Print(w io.Writer) {
	for _, v := range r.Scenarios {
		r.printScenario(w, v)
	}
	for _, g := range Groups {
		s := r.Sections[g]
		line := fmt.Sprintf("%s: %d passed, %d failed, %d unsupported", g, s[Passed]+s[Quirk], s[Failed], s[Unsupported])
		if s[Quirk] > 0 {
			line += fmt.Sprintf(" (%d of the passed differ on purpose)", s[Quirk])
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "golden: %d passed, %d failed, %d unsupported\n", r.Passed, r.Failed, r.Unsupported)
}

func (r *Report) printScenario(w io.Writer, v Verdict) {
	if len(v.Differences) == 0 && v.Outcome != Passed {
		fmt.Fprintf(w, "%s %s: %s\n", mark[v.Outcome], v.Name, v.Reason)
	}
	for _, d := range v.Differences {
		outcome := v.Groups[d.Group]
		fmt.Fprintf(w, "%s %s %s", mark[outcome], v.Name, d)
		if outcome == Quirk {
			fmt.Fprintf(w, " (on purpose: %s; see %s)", v.Reason, v.Doc)
		}
		fmt.Fprintln(w)
	}
}

var mark = map[Outcome]string{Failed: "FAIL", Unsupported: "UNSUPPORTED", Quirk: "quirk"}

// WriteJSON writes the report to a file.
func (r *Report) WriteJSON(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
