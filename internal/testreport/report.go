package testreport

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Report collects the outcome of a test run.
type Report struct {
	Passed, Failed int
	Skips          []Skip
	Failures       []Failure

	packages map[string]*pkg
	builds   map[string]*strings.Builder // output of failed builds, by import path
	out      io.Writer
}

// Skip is a test that didn't run.
type Skip struct {
	Package, Test, Reason string
}

// pkg is a package whose tests are running.
type pkg struct {
	passed, failed, skipped int
	running                 map[string]*output // by test; "" is the package's own
}

// event is a line of `go test -json` (see `go doc test2json`).
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output
	Test        string
	Elapsed     float64
	Output      string
	OutputType  string
	FailedBuild string
}

// New makes a report that writes to out as packages end.
func New(out io.Writer) *Report {
	return &Report{packages: make(map[string]*pkg), builds: make(map[string]*strings.Builder), out: out}
}

// Read takes events until the end of in. Lines that are no events (a tool's own messages) are passed on.
func (r *Report) Read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprintf(r.out, "%s", line)
			} else {
				r.add(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
	}
}

func (r *Report) add(e event) {
	switch e.Action {
	case "build-output":
		r.build(e.ImportPath).WriteString(e.Output)
		return
	case "build-fail":
		return // told of when the package that needs it fails
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &pkg{running: make(map[string]*output)}
		r.packages[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.output(e.Test).add(e)
	case "run":
		p.output(e.Test)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.packageEnded(e, p)
		} else {
			r.testEnded(e, p)
		}
	}
}

func (r *Report) build(path string) *strings.Builder {
	if r.builds[path] == nil {
		r.builds[path] = &strings.Builder{}
	}
	return r.builds[path]
}

func (p *pkg) output(test string) *output {
	if p.running[test] == nil {
		p.running[test] = &output{}
	}
	return p.running[test]
}

func (r *Report) testEnded(e event, p *pkg) {
	output := p.output(e.Test)
	delete(p.running, e.Test)
	switch e.Action {
	case "pass":
		if !strings.Contains(e.Test, "/") {
			p.passed++
			r.Passed++
		}
	case "fail":
		p.failed++
		r.Failed++
		r.failed(e.Package, e.Test, output)
		fmt.Fprintf(r.out, "--- FAIL: %s %s\n%s", e.Package, e.Test, indent(output.all.String()))
	case "skip":
		p.skipped++
		r.Skips = append(r.Skips, Skip{e.Package, e.Test, reason(output.all.String())})
	}
}

func (r *Report) packageEnded(e event, p *pkg) {
	delete(r.packages, e.Package)
	if e.Action == "fail" {
		r.packageFailed(e, p)
		return
	}
	if p.passed+p.skipped == 0 {
		return // no tests
	}
	fmt.Fprintf(r.out, "ok    %-60s %6.1fs  %s\n", e.Package, e.Elapsed, p.counts())
}

// packageFailed tells what the failed tests haven't: a build that failed, a panic, a timeout, tests that never ended.
func (r *Report) packageFailed(e event, p *pkg) {
	var unfinished []string
	for test := range p.running {
		if test != "" {
			unfinished = append(unfinished, test)
		}
	}
	if p.failed == 0 || len(unfinished) > 0 {
		p.failed++
		r.Failed++
		own := p.output("")
		if b := r.builds[e.FailedBuild]; b != nil {
			own.all.WriteString(b.String())
		}
		for _, test := range slices.Sorted(slices.Values(unfinished)) {
			r.failed(e.Package, test+" (not ended)", p.running[test])
			fmt.Fprintf(r.out, "--- NOT ENDED: %s %s\n%s", e.Package, test, indent(p.running[test].all.String()))
		}
		if len(unfinished) == 0 {
			r.failed(e.Package, "", own)
		}
		fmt.Fprint(r.out, indent(own.all.String()))
	}
	fmt.Fprintf(r.out, "FAIL  %-60s %6.1fs  %s\n", e.Package, e.Elapsed, p.counts())
}

func (p *pkg) counts() string {
	s := fmt.Sprintf("%d passed", p.passed)
	if p.failed > 0 {
		s += fmt.Sprintf(", %d failed", p.failed)
	}
	if p.skipped > 0 {
		s += fmt.Sprintf(", %d skipped", p.skipped)
	}
	return s
}

// Summary writes every skipped test with its reason, what failed and why, and the last line.
func (r *Report) Summary() {
	for path := range r.packages { // go test ended without a word on these
		r.Failed++
		r.Failures = append(r.Failures, Failure{Package: path, Said: "go test ended in the middle of it"})
	}
	if len(r.Skips) > 0 {
		fmt.Fprintf(r.out, "\nNot run:\n")
	}
	for _, s := range r.Skips {
		fmt.Fprintf(r.out, "  %s %s: %s\n", s.Package, s.Test, s.Reason)
	}
	r.writeFailures()
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", r.Passed, r.Failed, len(r.Skips))
}

// reason finds what a test said when it was skipped: the last line that the testing package marks with file and line.
func reason(output string) string {
	said := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			if _, text, ok = strings.Cut(text, ": "); ok {
				said = text
				continue
			}
		}
		if said != "" && line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
			said += " " + line // the reason goes on
		}
	}
	if said == "" {
		return "no reason given"
	}
	return said
}

func indent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("    " + line)
	}
	if s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}
