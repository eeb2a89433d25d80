package golden

// joinOp is a join of the format.
type joinOp struct {
	kind string // inner, left or outer
	join join
	opts options
}

// applyJoin adds joins.
func (b *build) applyJoin(op string, o *object) (known bool, err error) {
	return false, nil
}

func (b *build) cogroup(o *object) error { return unsupported("cogroup") }
