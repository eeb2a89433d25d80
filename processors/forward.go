package processors

import "fmt"

// Fan returns one Next for all children, called in order. No children: records end here.
func Fan[K, V any](children []Child) (Next[K, V], error) {
	nexts := make([]Next[K, V], len(children))
	for i, c := range children {
		n, ok := c.Next.(Next[K, V])
		if !ok {
			return nil, fmt.Errorf("internal: child %s takes %T, its parent sends %T", c.Name, c.Next, nexts[i])
		}
		nexts[i] = n
	}
	switch len(nexts) {
	case 0:
		return func(*Record[K, V]) error { return nil }, nil
	case 1:
		return nexts[0], nil
	case 2:
		first, second := nexts[0], nexts[1]
		return func(r *Record[K, V]) error {
			if err := first(r); err != nil {
				return err
			}
			return second(r)
		}, nil
	}
	return func(r *Record[K, V]) error {
		for _, n := range nexts {
			if err := n(r); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
