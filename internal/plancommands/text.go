package plancommands

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// describe writes a topology as Kafka Streams' describe() does, and the topics that are read, written and made for it.
func describe(w io.Writer, plan *topology.Plan) {
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

// explain writes what is durable in a topology: stores, internal topics and lake sinks, where their contents come from, and whether their
// names are given.
func explain(w io.Writer, p *plansafety.Plan) {
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
			"contents: "+strings.Join(s.Origins, ", "), "keys: "+plansafety.SerdeWords(s.Key), "values: "+plansafety.SerdeWords(s.Value), where)
	}
	for _, t := range p.Topics {
		line("topic", t.Name, t.Generated, t.Kind, "records: "+strings.Join(t.Origins, ", "), "keys: "+plansafety.SerdeWords(t.Key), "values: "+plansafety.SerdeWords(t.Value), "partitions: "+t.Width.String())
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

// diff writes what becomes of state from one version of a topology to the next, and tells whether anything durable is lost.
func diff(w io.Writer, before, after *plansafety.Plan, asJSON bool) (loses bool, err error) {
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
