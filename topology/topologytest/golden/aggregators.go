package golden

import "slices"

// join is a joiner with its result type.
type join struct {
	f       joiner
	out     Type
	withKey bool
}

func concatSides(_, l, r any) any { return text(l) + "+" + text(r) }

// parseJoiner finds a joiner by its spec, for sides of the given types.
func parseJoiner(spec string, left, right Type) (join, error) {
	name, a := split(spec)
	switch name {
	case "concat":
		return join{concatSides, typeString, false}, nil
	case "withKey":
		return join{func(k, l, r any) any { return text(k) + ":" + text(l) + "+" + text(r) }, typeString, true}, nil
	case "left":
		return join{func(_, l, _ any) any { return l }, left, false}, nil
	case "right":
		return join{func(_, _, r any) any { return r }, right, false}, nil
	case "jsonPair":
		return join{func(_, l, r any) any { return jsonOf(map[string]any{"l": show(l), "r": show(r)}) }, typeJSON, false}, nil
	case "sumInt":
		return join{func(_, l, r any) any { return numOr0(l) + numOr0(r) }, typeInt64, false}, nil
	case "nullIfNoRight":
		return join{func(k, l, r any) any {
			if r == nil {
				return nil
			}
			return concatSides(k, l, r)
		}, typeString, false}, nil
	case "failOnRight":
		return join{func(k, l, r any) any {
			if same(a, r) {
				throw("failOnRight")
			}
			return concatSides(k, l, r)
		}, typeString, false}, nil
	}
	return join{}, unsupported("joiner %q", spec)
}

// aggregator is an aggregator: g is the aggregate. sub and merge are nil where the format has none.
type aggregator struct {
	init     func() any
	add, sub folder
	merge    folder // (k, x, y)
	out      Type
}

func always(v any) func() any { return func() any { return v } }

func mergeTexts(_, x, y any) any { return text(x) + "&" + text(y) }

// parseAggregator finds an aggregator by its spec, for values of type vt.
func parseAggregator(spec string, vt Type) (aggregator, error) {
	name, a := split(spec)
	switch name {
	case "concat":
		return aggregator{always("0"),
			func(_, v, g any) any { return text(g) + "+" + text(v) },
			func(_, v, g any) any { return text(g) + "-" + text(v) }, mergeTexts, typeString}, nil
	case "concatKey":
		return aggregator{always("0"),
			func(k, v, g any) any { return text(g) + "+" + text(k) + "=" + text(v) },
			func(k, v, g any) any { return text(g) + "-" + text(k) + "=" + text(v) }, mergeTexts, typeString}, nil
	case "sum":
		return aggregator{always(int64(0)),
			func(_, v, g any) any { return num(g) + numOr0(v) },
			func(_, v, g any) any { return num(g) - numOr0(v) }, addNumbers, typeInt64}, nil
	case "count":
		return aggregator{always(int64(0)),
			func(_, _, g any) any { return num(g) + 1 },
			func(_, _, g any) any { return num(g) - 1 }, addNumbers, typeInt64}, nil
	case "min":
		f := ignoringNull(func(x, y int64) int64 { return min(x, y) })
		return aggregator{always(nil), f, nil, f, typeInt64}, nil
	case "max":
		f := ignoringNull(func(x, y int64) int64 { return max(x, y) })
		return aggregator{always(nil), f, nil, f, typeInt64}, nil
	case "last":
		return aggregator{always(nil), func(_, v, _ any) any { return v }, nil, func(_, _, y any) any { return y }, vt}, nil
	case "collectList":
		return collectList(), nil
	case "nullOn":
		return nullOn(a), nil
	case "nullInit":
		return nullInit(), nil
	}
	return aggregator{}, unsupported("aggregator %q", spec)
}

func addNumbers(_, x, y any) any { return num(x) + num(y) }

func ignoringNull(f func(x, y int64) int64) folder {
	return func(_, x, y any) any {
		switch {
		case x == nil:
			return y
		case y == nil:
			return x
		}
		return f(x.(int64), y.(int64))
	}
}

func list(g any) []any {
	if g == nil {
		panic(&nullError{})
	}
	return g.(JSON).tree().([]any)
}

func collectList() aggregator {
	remove := func(_, v, g any) any {
		l, gone := list(g), jsonOf(show(v))
		if i := slices.IndexFunc(l, func(x any) bool { return jsonOf(x) == gone }); i >= 0 {
			l = slices.Delete(l, i, i+1)
		}
		return jsonOf(l)
	}
	return aggregator{always(JSON("[]")),
		func(_, v, g any) any { return jsonOf(append(list(g), show(v))) }, remove,
		func(_, x, y any) any { return jsonOf(append(list(x), list(y)...)) }, typeJSON}
}

func nullOn(x string) aggregator {
	fold := func(sign string) folder {
		return func(_, v, g any) any {
			if same(x, v) {
				return nil
			}
			if g == nil {
				g = "0"
			}
			return text(g) + sign + text(v)
		}
	}
	return aggregator{always("0"), fold("+"), fold("-"), mergeTexts, typeString}
}

func nullInit() aggregator {
	return aggregator{always(nil),
		func(_, v, g any) any {
			if g == nil {
				return text(v)
			}
			return text(g) + "+" + text(v)
		},
		func(_, v, g any) any {
			if g == nil {
				return "-" + text(v)
			}
			return text(g) + "-" + text(v)
		},
		func(k, x, y any) any {
			if x == nil {
				return y
			}
			return mergeTexts(k, x, y)
		}, typeString}
}

// reducer is a reducer: (aggregate, value). sub is nil where the format has none.
type reducer struct{ add, sub func(a, v any) any }

// parseReducer finds a reducer by its spec.
func parseReducer(spec string) (reducer, error) {
	name, x := split(spec)
	plus := func(a, v any) any { return text(a) + "+" + text(v) }
	minus := func(a, v any) any { return text(a) + "-" + text(v) }
	keep := func(a, _ any) any { return a }
	switch name {
	case "concat":
		return reducer{plus, minus}, nil
	case "sum":
		return reducer{func(a, v any) any { return num(a) + numOr0(v) }, func(a, v any) any { return num(a) - numOr0(v) }}, nil
	case "min":
		return reducer{extreme(func(a, v int64) int64 { return min(a, v) }), nil}, nil
	case "max":
		return reducer{extreme(func(a, v int64) int64 { return max(a, v) }), nil}, nil
	case "last":
		return reducer{func(_, v any) any { return v }, keep}, nil
	case "first":
		return reducer{keep, keep}, nil
	case "nullOn":
		return reducer{func(a, v any) any {
			if same(x, v) {
				return nil
			}
			return plus(a, v)
		}, minus}, nil
	}
	return reducer{}, unsupported("reducer %q", spec)
}

func extreme(f func(a, v int64) int64) func(a, v any) any {
	return func(a, v any) any {
		if v == nil {
			return a
		}
		return f(num(a), v.(int64))
	}
}
