package processors

import "github.com/tributary-io/tributary/state"

// BufferStores finds the stores of joins and of suppress, which no user sees. What Runtime.Stores returns implements it if the topology
// has such stores.
type BufferStores interface {
	JoinList(name string) (state.JoinListBytes, error)
	ChangeBuffer(name string) (state.ChangeBuffer, error)
	RecordBuffer(name string) (state.RecordBuffer, error)
}

func buffersOf(rt Runtime) (BufferStores, error) {
	b, ok := rt.Stores().(BufferStores)
	if !ok {
		return nil, fatalf("internal: the task of node %s has no stores for joins and suppression", rt.NodeName())
	}
	return b, nil
}
