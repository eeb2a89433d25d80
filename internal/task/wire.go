package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
)

// node is a node of the plan made for this task.
type node struct {
	spec     *plan.Node
	instance processors.Instance
	source   processors.Source // of source nodes
	drops    drops
	// preparations are the start-up steps of its serdes that are still to be done.
	preparations []func(context.Context) error
}

// wire makes the nodes, children first, since a node calls its children directly, and the input queues.
func (t *Task) wire() error {
	var specs []*plan.Node
	for _, sub := range t.cfg.Subtopologies {
		specs = append(specs, sub.Nodes...)
	}
	made := make(map[string]*node, len(specs))
	t.nodes = make([]*node, len(specs))
	for i, spec := range slices.Backward(specs) {
		n, err := t.make(spec, made)
		if err != nil {
			return fmt.Errorf("node %s: %w", spec.Name, err)
		}
		made[spec.Name], t.nodes[i] = n, n
	}
	for _, tp := range t.cfg.Inputs {
		if err := t.addQueue(tp); err != nil {
			return err
		}
	}
	return nil
}

func (t *Task) make(spec *plan.Node, made map[string]*node) (*node, error) {
	n := &node{spec: spec}
	rt := newRuntime(t, n)
	children := make([]processors.Child, len(spec.Children))
	for i, c := range spec.Children {
		child := made[c.Name]
		if child == nil {
			return nil, fmt.Errorf("internal: child %s is not part of the task", c.Name)
		}
		children[i] = processors.Child{Name: c.Name, Next: child.instance.Next}
	}
	var err error
	if spec.Kind == plan.SourceNode {
		n.source, err = spec.Source.NewSource(rt, children)
	} else {
		n.instance, err = spec.Supplier.New(rt, children)
	}
	return n, err
}

func (t *Task) addQueue(tp TopicPartition) error {
	n, err := t.sourceOf(tp.Topic)
	if err != nil {
		return err
	}
	if n == nil {
		return fmt.Errorf("internal: no source node reads topic %s", tp.Topic)
	}
	q := newQueue(tp, n, n.source.NewHead(tp.Topic))
	t.queues = append(t.queues, q)
	t.byTP[tp] = q
	return nil
}

// sourceOf finds the source that reads a topic: one that names it, or else the first whose pattern matches. In the driver mode of the harness
// all topics of a pattern are one input, which has the pattern's name and, as in Kafka Streams' driver, belongs to the last source that has it.
func (t *Task) sourceOf(topic string) (found *node, err error) {
	for _, n := range t.nodes {
		if n.spec.Kind == plan.SourceNode && (slices.Contains(n.spec.Topics, topic) || n.spec.Pattern == topic) {
			found = n
		}
	}
	if found != nil {
		return found, nil
	}
	for _, n := range t.nodes {
		if n.spec.Kind != plan.SourceNode || n.spec.Pattern == "" {
			continue
		}
		re, err := plan.CompilePattern(n.spec.Pattern)
		if err != nil {
			return nil, fmt.Errorf("node %s: pattern %q: %w", n.spec.Name, n.spec.Pattern, err)
		}
		if re.MatchString(topic) {
			return n, nil
		}
	}
	return nil, nil
}

// init runs the node's Init; a panic in it is an error.
func (n *node) init() (err error) {
	defer recoverTo(&err)
	return n.instance.Init()
}

// close runs the node's Close; a panic in it is an error.
func (n *node) close() (err error) {
	defer recoverTo(&err)
	return n.instance.Close()
}
