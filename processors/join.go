package processors

// Joiner makes the result of a join. A side that is missing is nil; what the pointers point to is valid until the record has been
// processed.
type Joiner[K, L, R, O any] func(key K, left *L, right *R) (O, error)

// JoinKind says which side of a join may be missing.
type JoinKind int

// The kinds of joins.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	OuterJoin
)
