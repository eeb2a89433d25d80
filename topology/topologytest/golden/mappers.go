package golden

import (
	"slices"
	"strconv"
	"strings"
)

// unlessNull lifts a function of values: null in gives null out.
func unlessNull(f func(v any) any) function {
	return func(_, v any) any {
		if v == nil {
			return nil
		}
		return f(v)
	}
}

// same compares as Java's equals does between a string and any value.
func same(s string, v any) bool { x, ok := v.(string); return ok && x == s }

// parseMapper finds a mapper (a function to a new value) by its spec, for keys and values of the given types.
func parseMapper(spec string, kt, vt Type) (typed, error) {
	name, a := split(spec)
	switch name {
	case "identity":
		return typed{func(_, v any) any { return v }, vt, false}, nil
	case "upper":
		return typed{unlessNull(func(v any) any { return strings.ToUpper(v.(string)) }), vt, false}, nil
	case "length":
		return typed{unlessNull(func(v any) any { return javaLen(v.(string)) }), typeInt64, false}, nil
	case "append":
		return typed{unlessNull(func(v any) any { return text(v) + a }), vt, false}, nil
	case "appendNull":
		return typed{func(_, v any) any { return text(v) + a }, typeString, false}, nil
	case "toNull":
		return typed{func(_, _ any) any { return nil }, vt, false}, nil
	case "nullIf":
		return typed{func(_, v any) any {
			if same(a, v) {
				return nil
			}
			return v
		}, vt, false}, nil
	case "toString":
		return typed{unlessNull(func(v any) any { return text(v) }), typeString, false}, nil
	case "field":
		return typed{func(_, v any) any { return field(v, a) }, typeString, false}, nil
	case "fieldInt":
		return typed{func(_, v any) any { return fieldInt(v, a) }, typeInt64, false}, nil
	case "constant":
		return typed{func(_, _ any) any { return a }, typeString, false}, nil
	case "withKey":
		return typed{func(k, v any) any {
			if v == nil {
				return nil
			}
			return text(k) + ":" + text(v)
		}, typeString, true}, nil
	case "keyToString":
		return typed{func(k, _ any) any { return text(k) }, typeString, true}, nil
	case "parseJson":
		return typed{unlessNull(func(v any) any { return mustJSON(v.(string)) }), typeJSON, false}, nil
	case "wrapJson":
		return typed{unlessNull(func(v any) any { return jsonOf(map[string]any{a: show(v)}) }), typeJSON, false}, nil
	case "failOn":
		return typed{func(_, v any) any { failOn(a, v); return v }, vt, false}, nil
	case "prefixBefore":
		return typed{func(_, v any) any { return prefixBefore(v, a) }, vt, false}, nil
	}
	return numberMapper(spec, name, a)
}

func failOn(x string, v any) {
	if same(x, v) {
		throw("failOn")
	}
}

func numberMapper(spec, name, a string) (typed, error) {
	switch name {
	case "parseInt":
		return typed{unlessNull(parseInt), typeInt64, false}, nil
	case "addN":
		n, err := number64(spec, a)
		return typed{unlessNull(func(v any) any { return v.(int64) + n }), typeInt64, false}, err
	case "toInt32":
		return typed{unlessNull(func(v any) any { return int32(v.(int64)) }), typeInt32, false}, nil
	case "toFloat64":
		return typed{unlessNull(func(v any) any { return float64(v.(int64)) }), typeFloat, false}, nil
	}
	return typed{}, unsupported("mapper %q", spec)
}

func parseInt(v any) any {
	n, err := strconv.ParseInt(v.(string), 10, 64)
	if err != nil {
		throw("not an integer")
	}
	return n
}

// parseSelector finds a selector (a function to a new key) by its spec.
func parseSelector(spec string, kt, vt Type) (typed, error) {
	name, a := split(spec)
	switch name {
	case "key":
		return typed{func(k, _ any) any { return k }, kt, true}, nil
	case "value":
		return typed{func(_, v any) any { return v }, vt, false}, nil
	case "firstChar":
		return typed{func(_, v any) any { return firstChar(v) }, typeString, false}, nil
	case "field":
		return typed{func(_, v any) any { return field(v, a) }, typeString, false}, nil
	case "fieldInt":
		return typed{func(_, v any) any { return fieldInt(v, a) }, typeInt64, false}, nil
	case "prefixBefore":
		return typed{func(_, v any) any { return prefixBefore(v, a) }, typeString, false}, nil
	case "keyPrefixBefore":
		return typed{func(k, _ any) any { return prefixBefore(k, a) }, typeString, true}, nil
	case "keyUpper":
		return typed{func(k, _ any) any {
			if k == nil {
				return nil
			}
			return strings.ToUpper(k.(string))
		}, typeString, true}, nil
	case "constant":
		return typed{func(_, _ any) any { return a }, typeString, false}, nil
	case "nullKey":
		return typed{func(_, _ any) any { return nil }, kt, false}, nil
	case "length":
		return typed{unlessNull(func(v any) any { return javaLen(v.(string)) }), typeInt64, false}, nil
	case "windowedKeyToString":
		return typed{func(k, _ any) any { return text(k) }, typeString, true}, nil
	case "windowedKey":
		return typed{func(k, _ any) any { return windowOf(k).Key }, kt.plain(), true}, nil
	case "windowStart":
		return typed{func(k, _ any) any { return windowOf(k).Start }, typeInt64, true}, nil
	case "failOn":
		return typed{func(k, v any) any { failOn(a, v); return k }, kt, true}, nil
	}
	return typed{}, unsupported("selector %q", spec)
}

func firstChar(v any) any {
	if v == nil || v.(string) == "" {
		return nil
	}
	for i := range v.(string) {
		if i > 0 {
			return v.(string)[:i]
		}
	}
	return v
}

func windowOf(k any) Windowed {
	if k == nil {
		panic(&nullError{})
	}
	return k.(Windowed)
}

// flatValues is a function to several values.
type flatValues struct {
	f   func(k, v any) []any
	out Type
}

func parseFlatValues(spec string, vt Type) (flatValues, error) {
	name, a := split(spec)
	switch name {
	case "splitWords":
		return flatValues{func(_, v any) []any { return words(v) }, typeString}, nil
	case "repeat":
		n, err := number64(spec, a)
		return flatValues{func(_, v any) []any { return slices.Repeat([]any{v}, int(n)) }, vt}, err
	case "chars":
		return flatValues{func(_, v any) (out []any) {
			if v != nil {
				for _, c := range v.(string) {
					out = append(out, string(c))
				}
			}
			return out
		}, typeString}, nil
	case "withKeyPair":
		return flatValues{func(k, v any) []any { return []any{text(k), text(v)} }, typeString}, nil
	}
	return flatValues{}, unsupported("flatMapValues function %q", spec)
}

func words(v any) (out []any) {
	if v == nil {
		return nil
	}
	for w := range strings.SplitSeq(v.(string), " ") {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

// pair is a record that a flatMap function makes.
type pair struct{ key, value any }

// flat is a function to several records.
type flat struct {
	f          func(k, v any) []pair
	key, value Type
}

func parseFlat(spec string, kt, vt Type) (flat, error) {
	name, a := split(spec)
	switch name {
	case "wordsToKeys":
		return flat{func(k, v any) (out []pair) {
			for _, w := range words(v) {
				out = append(out, pair{w, k})
			}
			return out
		}, typeString, kt}, nil
	case "dup":
		n, err := number64(spec, a)
		return flat{func(k, v any) []pair { return slices.Repeat([]pair{{k, v}}, int(n)) }, kt, vt}, err
	case "keyAndSwap":
		return flat{func(k, v any) []pair { return []pair{{k, v}, {v, k}} }, kt, vt}, nil
	}
	return flat{}, unsupported("flatMap function %q", spec)
}
