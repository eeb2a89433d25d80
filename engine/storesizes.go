package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
)

// StoreSize is about how large the part of a store is that this instance has.
type StoreSize struct {
	Store string
	// Partitions are how many of its partitions can be read here, Of how many there are. A global store has one, on every instance.
	Partitions, Of int32
	state.StoreSize
}

// sampledPartitions is how many partitions of a store StoreSizes looks into; it goes on from these to the others.
const sampledPartitions = 16

// Entries of a store that StoreSizes counts one by one, over all partitions that it looks into, and in each of them at least. They are read from files for
// that, through the block cache that the tasks use.
const (
	countedEntries = 10_000
	leastCounted   = 500
)

// StoreSizes tells about how large the stores are here, by name. It looks at what is committed, beside the tasks, and reads some thousand entries of
// each store: ask now and then. Stores of tasks that are being restored are left out; before the instance has started all are empty.
func (e *Engine) StoreSizes(ctx context.Context) ([]StoreSize, error) {
	all := make([]StoreSize, 0, len(e.plan.Stores))
	for _, name := range slices.Sorted(maps.Keys(e.plan.Stores)) {
		size := StoreSize{Store: name}
		if p, err := e.place(name); err == nil {
			if size, err = e.storeSize(ctx, p); err != nil {
				return nil, err
			}
		}
		all = append(all, size)
	}
	return all, nil
}

func (e *Engine) storeSize(ctx context.Context, p placement) (StoreSize, error) {
	here := e.here(p)
	size := StoreSize{Store: p.store.Spec.Name, Partitions: int32(len(here)), Of: p.partitions}
	looked := int64(0)
	step := max(1, (len(here)+sampledPartitions-1)/sampledPartitions)
	count := max(countedEntries/int64(max(1, min(len(here), sampledPartitions))), leastCounted)
	for i := 0; i < len(here); i += step {
		if ctx.Err() != nil {
			return size, ctx.Err()
		}
		part, ok, err := e.sizeIn(p.task(here[i]), size.Store, count)
		if err != nil {
			return size, err
		}
		if ok {
			looked++
			size.Entries += part.Entries
			size.Bytes += part.Bytes
			size.Estimated = size.Estimated || part.Estimated
		}
	}
	if all := int64(len(here)); looked > 0 && looked < all {
		size.Entries, size.Bytes, size.Estimated = size.Entries*all/looked, size.Bytes*all/looked, true
	}
	return size, nil
}

// sizeIn is the size of a store of one task; ok is false if the task isn't here any more.
func (e *Engine) sizeIn(id task.ID, store string, count int64) (size state.StoreSize, ok bool, err error) {
	lease, ok := e.queries.tasks.Acquire(id)
	if !ok {
		return size, false, nil
	}
	defer lease.Release()
	size, err = lease.View().Size(store, count)
	return size, err == nil, err
}
