package testreport

import (
	"fmt"
	"strings"
)

// Failure is a test that failed, or a package that did (Test is empty then), and why.
type Failure struct {
	Package, Test string
	// Said is what the test said by Error and Fatal. Where it said nothing so, it is its panic, or the end of its output.
	Said string
}

// output is what a test, or a package by itself, has printed.
type output struct {
	all    strings.Builder
	errors strings.Builder // what came of Error and Fatal, without the rest, such as the logs of what was tested
	nested bool            // a subtest of it failed
}

func (o *output) add(e event) {
	o.all.WriteString(e.Output)
	if e.OutputType == "error" || e.OutputType == "error-continue" {
		o.errors.WriteString(e.Output)
	}
}

// Bounds of what is repeated of a failure, so that many, or one with much to say, don't push one another out of sight.
const (
	saidLines = 20
	saidWidth = 1000 // bytes
)

// failed notes a failure. A test that failed since subtests did has nothing to add to what they said.
func (r *Report) failed(pkg, test string, o *output) {
	if i := strings.LastIndexByte(test, '/'); i >= 0 {
		r.packages[pkg].output(test[:i]).nested = true
	}
	said := o.errors.String()
	if said == "" && o.nested {
		return
	}
	if said == "" {
		said = lastWords(o.all.String())
	}
	r.Failures = append(r.Failures, Failure{pkg, test, firstLines(said)})
}

// lastWords are a panic and what follows it, or else the last lines.
func lastWords(output string) string {
	lines := strings.SplitAfter(strings.TrimRight(output, "\n"), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.Join(lines[i:], "")
		}
	}
	return strings.Join(lines[max(0, len(lines)-saidLines):], "")
}

// firstLines cuts what is long, and says so.
func firstLines(said string) string {
	var kept []string
	for line := range strings.Lines(said) {
		if len(kept) == saidLines {
			kept = append(kept, "[…]")
			break
		}
		line = strings.TrimSpace(line)
		if len(line) > saidWidth {
			line = strings.ToValidUTF8(line[:saidWidth], "") + " […]"
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// writeFailures repeats what failed and why: above, it may be anywhere in long output.
func (r *Report) writeFailures() {
	if len(r.Failures) > 0 {
		fmt.Fprintf(r.out, "\nFailed:\n")
	}
	for _, f := range r.Failures {
		fmt.Fprintf(r.out, "  %s:\n%s", strings.TrimSpace(f.Package+" "+f.Test), indent(f.Said))
	}
}
