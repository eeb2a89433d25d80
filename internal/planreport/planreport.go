package planreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// Describe writes a topology as Kafka Streams' describe() does, and the topics that are read, written and made for it.
func Describe(w io.Writer, plan *topology.Plan) {
	fmt.Fprint(w, plan.Describe())
	list := func(what string, topics []string) {
		if len(topics) > 0 {
			fmt.Fprintf(w, "%s\n   %s\n", what, strings.Join(topics, "\n   "))
		}
	}
	list("Reads:", plan.Sources())
	list("Writes:", plan.Sinks())
	list("The engine creates:", plan.InternalTopics())
	list("Not named, so a change of the topology may rename them:", plan.GeneratedNames())
}

// Explain writes what is durable in a topology: stores, internal topics and lake sinks, where their contents come from, and whether their
// names are given.
func Explain(w io.Writer, p *plansafety.Plan) {
	fmt.Fprintf(w, "Application %s, %d sub-topologies, hash %s\n", p.Application, len(p.Subtopologies), p.Hash)
	generated := 0
	line := func(thing, name string, isGenerated bool, facts ...string) {
		if isGenerated {
			generated++
			name += "  (generated name)"
		}
		facts = slices.DeleteFunc(facts, func(f string) bool { return f == "" || strings.HasSuffix(f, ": ") })
		fmt.Fprintf(w, "%s %s\n    %s\n", thing, name, strings.Join(facts, "\n    "))
	}
	for _, s := range p.Stores {
		where := "restored from " + s.Changelog
		if s.Changelog == "" {
			where = "without a changelog: lost with its directory"
		}
		line("store", s.Name, s.Generated, fmt.Sprintf("%s in sub-topology %d", s.Kind, s.Subtopology),
			"contents: "+strings.Join(s.Origins, ", "), "keys: "+s.Key, "values: "+s.Value, where)
	}
	for _, t := range p.Topics {
		line("topic", t.Name, t.Generated, t.Kind, "records: "+strings.Join(t.Origins, ", "), "keys: "+t.Key, "values: "+t.Value, "partitions: "+t.Width.String())
	}
	for _, l := range p.Lakes {
		line("lake sink", l.Name, l.Generated, l.Table, "progress kept for: "+strings.Join(l.Inputs, ", "))
	}
	switch {
	case p.StrictNames:
		fmt.Fprintln(w, "Strict names: Build refuses generated names for anything durable.")
	case generated > 0:
		fmt.Fprintf(w, "%d durable names are generated, and shift when an operator is inserted before them: give names, and build with topology.StrictNames to keep it so.\n", generated)
	default:
		fmt.Fprintln(w, "Everything durable is named. Build with topology.StrictNames to keep it so.")
	}
}

// Diff writes what becomes of state from one version of a topology to the next, and tells whether anything durable is lost.
func Diff(w io.Writer, before, after *plansafety.Plan, asJSON bool) (loses bool, err error) {
	report := plansafety.Compare(before, after)
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		err = enc.Encode(report)
	} else {
		_, err = fmt.Fprint(w, report)
	}
	return report.Loses(), err
}

// ACLs writes the commands of kafka-acls.sh that give rights. reach is what each has behind it to find the cluster.
func ACLs(w io.Writer, all []engine.ACL, principal, reach string) {
	for _, a := range all {
		fmt.Fprintf(w, "# %s\n%s%s\n", a.Why, a.Command(principal), reach)
	}
}

// LakeResets are what a reset may do with lake tables, by the names that commands have for it.
var LakeResets = map[string]engine.LakeReset{"refuse": engine.RefuseLake, "keep": engine.KeepLake, "truncate": engine.TruncateLake}

// Reset writes what a reset does, or has done, and passes its error on; where that asks what becomes of tables, with the flag that says it.
func Reset(w io.Writer, report *engine.ResetReport, err error, tablesFlag string) error {
	if refused := new(engine.ResetRefusedError); errors.As(err, &refused) && slices.ContainsFunc(refused.Reasons, func(r string) bool { return strings.HasPrefix(r, "table ") }) {
		err = fmt.Errorf("%w\n--%s keep or --%[2]s truncate says what becomes of tables", err, tablesFlag)
	}
	if report != nil {
		fmt.Fprint(w, strings.TrimRight(report.String(), "\n")+"\n")
	}
	if err == nil && !report.Done {
		fmt.Fprintln(w, "Nothing was changed: give --execute to do it.")
	}
	return err
}
