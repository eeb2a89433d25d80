package task

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// runtime is what one node sees of its task.
type runtime struct {
	task   *Task
	node   *node
	logger *slog.Logger
	stores *nodeStores
	out    Out // reused: a Collector does not keep it
	mark   int // where the node's progress probably is
}

var _ processors.Runtime = (*runtime)(nil)

func newRuntime(t *Task, n *node) *runtime {
	rt := &runtime{task: t, node: n, logger: t.logger.With("node", n.spec.Name)}
	rt.stores = &nodeStores{node: n, global: t.cfg.GlobalStores}
	if t.cfg.DB != nil {
		rt.stores.own = t.cfg.DB
	}
	return rt
}

func (rt *runtime) ApplicationID() string        { return rt.task.cfg.ApplicationID }
func (rt *runtime) TaskID() string               { return rt.task.cfg.ID.String() }
func (rt *runtime) NodeName() string             { return rt.node.spec.Name }
func (rt *runtime) Logger() *slog.Logger         { return rt.logger }
func (rt *runtime) Context() *processors.Context { return &rt.task.context }
func (rt *runtime) StreamTimeMs() int64          { return rt.task.streamTime }
func (rt *runtime) Now() time.Time               { return rt.task.cfg.Clock() }
func (rt *runtime) Stores() state.Stores         { return rt.stores }
func (rt *runtime) Dropped(reason string)        { rt.task.dropped(rt.node, reason) }

// BeforeCommit implements processors.CommitHooks. Nodes register in the order in which they are initialized: parents first, so that what
// one of them sends, those below can still send on.
func (rt *runtime) BeforeCommit(f func() error) { rt.task.onCommit = append(rt.task.onCommit, f) }

// Shared implements processors.CommitHooks.
func (rt *runtime) Shared(name string, make func() any) (v any, made bool) {
	if v, ok := rt.task.shared[name]; ok {
		return v, false
	}
	v = make()
	rt.task.shared[name] = v
	return v, true
}

// UsesRaw implements processors.RawHooks.
func (rt *runtime) UsesRaw() bool {
	h := &rt.task.cfg.Handlers
	return h.Processing != nil || h.Production != nil || h.DroppedTopic != ""
}

func (rt *runtime) RequestCommit() { rt.task.commitRequested = true }

func (rt *runtime) Schedule(interval time.Duration, kind processors.PunctuationType, f func(int64) error) processors.Cancellable {
	return rt.task.schedule(rt.node, interval, kind, f)
}

func (rt *runtime) Failed(err error) error { return rt.task.failed(rt.node, err) }

func (rt *runtime) SerializationFailed(topic string, err error) error {
	return rt.task.serializationFailed(rt.node, topic, err)
}

func (rt *runtime) Produce(topic string, partition int32, key, value []byte, timestamp int64, headers []processors.Header) error {
	rt.out = Out{Topic: topic, Partition: partition, Key: key, Value: value, Timestamp: timestamp, Headers: headers, Node: rt.node.spec.Name}
	if err := rt.task.cfg.Collector.Send(&rt.out); err != nil {
		if refused := (*processors.RefusedError)(nil); errors.As(err, &refused) {
			return rt.task.refused(rt.node, err)
		}
		return &fatalError{fmt.Errorf("task %s: node %s: topic %s: %w", rt.TaskID(), rt.NodeName(), topic, err)}
	}
	return nil
}

func (rt *runtime) Partitions(topic string) (int32, error) {
	return rt.task.cfg.Collector.Partitions(topic)
}

func (rt *runtime) Lake() (processors.LakeAppender, error) {
	if rt.task.cfg.Lake == nil {
		return nil, fmt.Errorf("internal: this host lands no rows")
	}
	return rt.task.cfg.Lake(rt.node.spec)
}

// nodeStores shows a node the stores that are connected to it, and the global ones.
type nodeStores struct {
	node   *node
	own    state.Stores
	global state.Stores
}

// find returns where the store is. The node's own stores come first.
func (s *nodeStores) find(name string) (state.Stores, error) {
	if s.own != nil && slices.Contains(s.node.spec.Stores, name) {
		return s.own, nil
	}
	if s.global != nil {
		if _, ok := s.global.Spec(name); ok {
			return s.global, nil
		}
	}
	return nil, &processors.StoreAccessError{Node: s.node.spec.Name, Store: name}
}

func (s *nodeStores) KeyValueBytes(name string) (state.KeyValueBytes, error) {
	in, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return in.KeyValueBytes(name)
}

func (s *nodeStores) WindowBytes(name string) (state.WindowBytes, error) {
	in, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return in.WindowBytes(name)
}

func (s *nodeStores) SessionBytes(name string) (state.SessionBytes, error) {
	in, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return in.SessionBytes(name)
}

func (s *nodeStores) VersionedBytes(name string) (state.VersionedBytes, error) {
	in, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return in.VersionedBytes(name)
}

func (s *nodeStores) Spec(name string) (state.Spec, bool) {
	in, err := s.find(name)
	if err != nil {
		return state.Spec{}, false
	}
	return in.Spec(name)
}
