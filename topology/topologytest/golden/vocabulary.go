package golden

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// The functions of the vocabulary work on the values of Type; nil is a null. A function of the format that "throws" panics with a
// *userError, one that Java ends with a NullPointerException with a *nullError: the library catches both, as it does every panic
// of user code.
type (
	predicate func(k, v any) bool
	function  func(k, v any) any
	joiner    func(k, l, r any) any
	folder    func(k, v, g any) any
)

// typed is a function with its result type. withKey says that it looks at the key.
type typed struct {
	f       function
	out     Type
	withKey bool
}

// stays tells whether a selector gives keys in windows, and never a null.
func (t typed) stays() bool { return t.out.isWindowed() && t.withKey }

// userError is what functions of the vocabulary fail with.
type userError struct{ what string }

func (e *userError) Error() string { return "user function failed: " + e.what }

// nullError is a null where the function can't have one.
type nullError struct{}

func (*nullError) Error() string { return "null value where the function needs one" }

func throw(format string, args ...any) { panic(&userError{fmt.Sprintf(format, args...)}) }

// num is an int64, which must not be null.
func num(v any) int64 {
	if v == nil {
		panic(&nullError{})
	}
	return v.(int64)
}

// numOr0 takes a null as 0.
func numOr0(v any) int64 {
	if v == nil {
		return 0
	}
	return v.(int64)
}

// split cuts "name:ARG" at the first colon.
func split(spec string) (name, arg string) {
	name, arg, _ = strings.Cut(spec, ":")
	return name, arg
}

func number64(spec, arg string) (int64, error) {
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return 0, unsupported("%s needs a number", spec)
	}
	return n, nil
}

// javaLen is the length of a string as Java counts it, in UTF-16 units.
func javaLen(s string) int64 { return int64(len(utf16.Encode([]rune(s)))) }

// field is the text of a field of a JSON value: a string as is, else canonical JSON; nil if there is none.
func field(v any, name string) any {
	if v == nil {
		return nil
	}
	f, ok := v.(JSON).field(name)
	if !ok {
		return nil
	}
	if s, isString := f.(string); isString {
		return s
	}
	return string(appendTree(nil, f))
}

// fieldInt is the number in a field of a JSON value, nil if there is none.
func fieldInt(v any, name string) any {
	if v == nil {
		return nil
	}
	f, _ := v.(JSON).field(name)
	n, isNumber := f.(number)
	if !isNumber {
		return nil
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i
	}
	d, _ := strconv.ParseFloat(string(n), 64)
	return int64(d)
}

func prefixBefore(v any, sep string) any {
	if v == nil {
		return nil
	}
	before, _, _ := strings.Cut(v.(string), sep)
	return before
}

// mustJSON parses in a user function.
func mustJSON(s string) JSON {
	j, err := parseJSON([]byte(s))
	if err != nil {
		throw("malformed json")
	}
	return j
}

// jsonOf makes a JSON value of a tree.
func jsonOf(tree any) JSON { return JSON(appendTree(nil, tree)) }

// parsePredicate finds a predicate by its spec.
func parsePredicate(spec string) (predicate, error) {
	name, a := split(spec)
	switch name {
	case "always":
		return func(_, _ any) bool { return true }, nil
	case "never":
		return func(_, _ any) bool { return false }, nil
	case "notNull":
		return func(_, v any) bool { return v != nil }, nil
	case "keyNotNull":
		return func(k, _ any) bool { return k != nil }, nil
	case "contains":
		return func(_, v any) bool { return v != nil && strings.Contains(v.(string), a) }, nil
	case "startsWith":
		return func(_, v any) bool { return v != nil && strings.HasPrefix(v.(string), a) }, nil
	case "valueEquals":
		return func(_, v any) bool { return v != nil && text(v) == a }, nil
	case "keyEquals":
		return func(k, _ any) bool { return k != nil && text(k) == a }, nil
	case "keyStartsWith":
		return func(k, _ any) bool { return k != nil && strings.HasPrefix(k.(string), a) }, nil
	case "even":
		return func(_, v any) bool { return v != nil && v.(int64)%2 == 0 }, nil
	case "greaterThan", "lessThan", "longerThan":
		return comparing(name, spec, a)
	case "fieldEquals":
		n, x, _ := strings.Cut(a, "=")
		return func(_, v any) bool { return same(x, field(v, n)) }, nil
	case "hasField":
		return func(_, v any) bool { return field(v, a) != nil }, nil
	case "validJson":
		return func(_, v any) bool { return v != nil && isJSON(v.(string)) }, nil
	case "jsonHasField":
		return func(_, v any) bool {
			return v != nil && isJSON(v.(string)) && field(mustJSON(v.(string)), a) != nil
		}, nil
	case "failOn":
		return func(_, v any) bool {
			failOn(a, v)
			return true
		}, nil
	case "not":
		p, err := parsePredicate(a)
		return func(k, v any) bool { return !p(k, v) }, err
	}
	return nil, unsupported("predicate %q", spec)
}

func comparing(name, spec, arg string) (predicate, error) {
	n, err := number64(spec, arg)
	switch name {
	case "greaterThan":
		return func(_, v any) bool { return v != nil && v.(int64) > n }, err
	case "lessThan":
		return func(_, v any) bool { return v != nil && v.(int64) < n }, err
	}
	return func(_, v any) bool { return v != nil && javaLen(v.(string)) > n }, err
}

func isJSON(s string) bool {
	_, err := parseJSON([]byte(s))
	return err == nil
}
