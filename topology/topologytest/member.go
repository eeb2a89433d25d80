package topologytest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// member is a running task with its stores.
type member struct {
	d    *Driver
	id   task.ID
	subs []*plan.Subtopology
	task *task.Task
	// inputs are the partitions that it reads.
	inputs []*partition
	db     *state.DB // nil without stores
	// stores are those of db, and logged how many changelog records of each are in the open transaction.
	stores []memberStore
	logged []int64
	// sealed is the generation of the stores that is being committed.
	sealed *state.Generation
	// progress is what the operators have committed of theirs, the driver's.
	progress *[]task.Mark
	// sinks are topics that were written to, a few: they are found here without a map.
	sinks [4]*topic
}

// memberStore is a store of the member's.
type memberStore struct {
	name      string
	plan      *plan.Store
	changelog *partition // nil without one
}

// start makes all tasks, restores their stores, and hands them what they have not read.
func (d *Driver) start() error {
	d.makeTables()
	if len(d.plan.Globals) > 0 {
		m, err := d.newMember(task.ID{Subtopology: -1}, d.plan.Globals, d.partitionsOf(d.plan.Globals))
		if err != nil {
			return err
		}
		d.global = m
	}
	for _, t := range d.assignment() {
		m, err := d.newMember(t.id, t.subs, t.inputs)
		if err != nil {
			return err
		}
		d.tasks = append(d.tasks, m)
	}
	d.gathers = d.mayGather()
	return d.catchUp()
}

// assigned is a task to be made.
type assigned struct {
	id     task.ID
	subs   []*plan.Subtopology
	inputs []task.TopicPartition
}

// assignment lists the tasks: one for everything in the driver mode, else one for each sub-topology and partition.
func (d *Driver) assignment() []assigned {
	if !d.partitioned() {
		inputs := d.partitionsOf(d.plan.Subtopologies)
		if len(inputs) == 0 {
			return nil
		}
		return []assigned{{task.ID{}, d.plan.Subtopologies, inputs}}
	}
	var all []assigned
	for _, sub := range d.plan.Subtopologies {
		subs := []*plan.Subtopology{sub}
		byPartition := map[int32][]task.TopicPartition{}
		tasks := int32(0)
		for _, tp := range d.partitionsOf(subs) {
			byPartition[tp.Partition] = append(byPartition[tp.Partition], tp)
			tasks = max(tasks, tp.Partition+1)
		}
		for p := range tasks {
			all = append(all, assigned{task.ID{Subtopology: sub.ID, Partition: p}, subs, byPartition[p]})
		}
	}
	return all
}

// partitionsOf lists the input partitions of sub-topologies. In the driver mode a pattern is one input, as in Kafka Streams' driver;
// else every topic that matches is.
func (d *Driver) partitionsOf(subs []*plan.Subtopology) []task.TopicPartition {
	var all []task.TopicPartition
	seen := map[string]bool{}
	add := func(topic string) {
		if seen[topic] {
			return
		}
		seen[topic] = true
		for p := range d.broker.create(topic, 1).partitions {
			all = append(all, task.TopicPartition{Topic: topic, Partition: int32(p)})
		}
	}
	matched := d.matched()
	for _, sub := range subs {
		for _, n := range sub.Nodes {
			if n.Kind != plan.SourceNode {
				continue
			}
			for _, topic := range n.Topics {
				add(topic)
			}
			if n.Pattern != "" && !d.partitioned() {
				add(n.Pattern)
				continue
			}
			for _, topic := range matched[n.Name] {
				add(topic)
			}
		}
	}
	return all
}

func (d *Driver) newMember(id task.ID, subs []*plan.Subtopology, inputs []task.TopicPartition) (*member, error) {
	m := &member{d: d, id: id, subs: subs}
	if err := m.openStores(); err != nil {
		return nil, err
	}
	t, err := task.New(m.config(inputs))
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	m.task = t
	if d.progress[id] == nil {
		d.progress[id] = new([]task.Mark)
	}
	m.progress = d.progress[id]
	kept := map[string]int64{}
	for _, mark := range *m.progress {
		kept[mark.Key] = mark.Value
	}
	t.RestoreProgress(kept)
	if err := m.restore(); err != nil {
		return nil, errors.Join(err, m.close())
	}
	if err := errors.Join(t.Init(), t.Prepare(context.Background())); err != nil {
		return nil, errors.Join(err, m.close())
	}
	for _, tp := range inputs {
		p := d.broker.partition(tp)
		p.input, _ = t.Input(tp)
		p.reader, m.inputs = m, append(m.inputs, p)
	}
	return m, nil
}

// config is what the member's task is made of.
func (m *member) config(inputs []task.TopicPartition) task.Config {
	d := m.d
	cfg := task.Config{
		ApplicationID: d.plan.ApplicationID, ID: m.id, Subtopologies: m.subs, Inputs: inputs,
		Collector: m, Lake: m.appender, Handlers: d.opts.handlers,
		Clock: func() time.Time { return d.now }, Logger: d.opts.logger, MaxIdle: -1,
	}
	if m.db != nil {
		cfg.DB = m.db
	}
	if m.id.Subtopology >= 0 && d.global != nil && d.global.db != nil {
		cfg.GlobalStores = d.global.db
	}
	return cfg
}

// specs are the stores of the member's sub-topologies.
func (m *member) specs() []state.Spec {
	var specs []state.Spec
	for _, sub := range m.subs {
		for _, name := range sub.Stores {
			s := m.d.plan.Stores[name]
			if s == nil || s.Global != (m.id.Subtopology < 0) {
				continue
			}
			specs = append(specs, s.Spec)
		}
	}
	return specs
}

func (m *member) openStores() (err error) {
	specs := m.specs()
	if len(specs) == 0 {
		return nil
	}
	opt := state.Options{Policy: state.EveryWrite, Alone: true, Log: m.d.opts.logger}
	if m.d.opts.stateDir == "" {
		m.db, err = state.OpenMemory(specs, opt)
	} else {
		m.db, err = state.OpenPebble(m.dir(), specs, m.d.resources, opt)
	}
	if err != nil {
		return fmt.Errorf("task %s: opening the stores: %w", m.id, err)
	}
	for _, spec := range m.db.Stores() {
		st := memberStore{name: spec.Name, plan: m.d.plan.Stores[spec.Name]}
		if st.plan.Changelog != "" {
			st.changelog = m.d.broker.partition(task.TopicPartition{Topic: st.plan.Changelog, Partition: m.id.Partition})
			st.changelog.topic.changelog = !st.plan.SourceAsChangelog
		}
		m.stores = append(m.stores, st)
	}
	m.logged = make([]int64, len(m.stores))
	return nil
}

// dir is where the member's stores are kept on disk.
func (m *member) dir() string {
	name := m.id.String()
	if m.id.Subtopology < 0 {
		name = "global"
	}
	return filepath.Join(m.d.opts.stateDir, m.d.plan.ApplicationID, name)
}

func (m *member) close() error {
	var errs []error
	if m.task != nil {
		errs = append(errs, m.task.Close())
	}
	if m.db != nil {
		errs = append(errs, m.db.Close())
	}
	return errors.Join(errs...)
}

// Send implements task.Collector: the record joins the open transaction. What global tables send is in none; see settleGlobal.
func (m *member) Send(out *task.Out) error {
	if m != m.d.global {
		if err := m.d.failure(ProduceOp); err != nil {
			return err
		}
	}
	t := m.topicOf(out.Topic)
	number := out.Partition
	switch {
	case !m.d.partitioned():
		number = 0
	case number < 0:
		number = t.choose(out.Key)
	}
	p, err := t.find(number)
	if err != nil {
		return err
	}
	record := pending{p, p.kept.keep(out.Timestamp, out.Key, out.Value), keepHeaders(out.Headers)}
	if m == m.d.global {
		m.d.setAside(record, out.About)
		return nil
	}
	m.d.open = append(m.d.open, record)
	return nil
}

// topicOf finds a topic to write to, or makes it.
func (m *member) topicOf(name string) *topic {
	last := len(m.sinks) - 1
	for i, t := range m.sinks {
		if t != nil && t.name == name {
			return t
		}
		if t == nil {
			last = i
			break
		}
	}
	m.sinks[last] = m.d.broker.create(name, m.d.userPartitions(name))
	return m.sinks[last]
}

// Partitions implements task.Collector.
func (m *member) Partitions(topic string) (int32, error) {
	if !m.d.partitioned() {
		return 1, nil
	}
	return int32(len(m.d.broker.create(topic, m.d.userPartitions(topic)).partitions)), nil
}

func (m *member) appender(n *plan.Node) (processors.LakeAppender, error) {
	return &appender{m, m.d.tables[n.Lake.Name]}, nil
}
