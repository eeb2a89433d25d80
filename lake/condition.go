package lake

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-io/tributary/lake/delta"
)

// Condition compares a partition column with a value, as "day >= 2026-01-01" does.
type Condition struct {
	Column string
	Op     string // "=", "!=", "<", "<=", ">" or ">="
	Value  string // in the form that the log has (docs/format/delta-log.md); "" is null, and goes with = and != only
}

// conditionOps, longest first so that "<=" isn't read as "<".
var conditionOps = []string{"!=", "<=", ">=", "=", "<", ">"}

// ParseCondition reads "column op value", with or without blanks around op.
func ParseCondition(text string) (Condition, error) {
	at, op := -1, ""
	for _, o := range conditionOps {
		if i := strings.Index(text, o); i >= 0 && (at < 0 || i < at) {
			at, op = i, o
		}
	}
	c := Condition{Op: op}
	if at >= 0 {
		c.Column, c.Value = strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+len(op):])
	}
	if c.Column == "" {
		return c, fmt.Errorf("condition %q: write it as column=value; the operators are %s", text, strings.Join(conditionOps, " "))
	}
	return c, nil
}

// compiledConditions are conditions on the partition columns of one table.
type compiledConditions struct {
	md  *delta.Metadata
	all []compiledCondition
}

type compiledCondition struct {
	Condition
	typ   delta.Type
	value any
}

func compileConditions(md *delta.Metadata, conditions []Condition) (*compiledConditions, error) {
	out := &compiledConditions{md: md}
	for _, c := range conditions {
		if !slices.Contains(md.PartitionColumns, c.Column) {
			return nil, fmt.Errorf("condition on %s: it is no partition column; those are %v", c.Column, md.PartitionColumns)
		}
		if !slices.Contains(conditionOps, c.Op) || c.Value == "" && c.Op != "=" && c.Op != "!=" {
			return nil, fmt.Errorf("condition on %s: operator %q doesn't go with the value %q", c.Column, c.Op, c.Value)
		}
		f, _ := md.Schema.Field(c.Column)
		value, err := delta.ParsePartition(f.Type, &c.Value)
		if err != nil {
			return nil, fmt.Errorf("condition on %s of type %s: %w", c.Column, f.Type, err)
		}
		out.all = append(out.all, compiledCondition{c, f.Type, value})
	}
	return out, nil
}

// holds reports whether a file lies in the wanted partitions. A value that can't be read holds nowhere.
func (c *compiledConditions) holds(a *delta.Add) bool {
	for i := range c.all {
		cond := &c.all[i]
		got, err := delta.ParsePartition(cond.typ, c.md.PartitionValue(a, cond.Column))
		if err != nil || !cond.holds(got) {
			return false
		}
	}
	return true
}

func (c *compiledCondition) holds(got any) bool {
	if got == nil || c.value == nil {
		return (got == nil && c.value == nil) == (c.Op == "=") && (c.Op == "=" || c.Op == "!=")
	}
	n := compareValues(got, c.value)
	switch c.Op {
	case "=":
		return n == 0
	case "!=":
		return n != 0
	case "<":
		return n < 0
	case "<=":
		return n <= 0
	case ">":
		return n > 0
	}
	return n >= 0
}

// compareValues compares two values that ParsePartition gave for the same type.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	case *big.Int:
		return a.Cmp(b.(*big.Int))
	case bool:
		return bytes.Compare(strconv.AppendBool(nil, a), strconv.AppendBool(nil, b.(bool)))
	}
	return cmp.Compare(a.(string), b.(string))
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"tb", 1 << 40}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"b", 1}, {"", 1}}

// byteSize reads a size such as "104857600", "100mb" or "1g", as table properties have them; 0 if it can't be read.
func byteSize(text string) int64 {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, u := range sizeUnits {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
			if err != nil || n < 0 || n > 1<<62/u.bytes {
				return 0
			}
			return n * u.bytes
		}
	}
	return 0
}

// ParseSize reads a number of bytes such as "134217728", "128mb" or "1g".
func ParseSize(text string) (int64, error) {
	if n := byteSize(text); n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("size %q: write it as a number of bytes, or as 128mb or 1gb", text)
}
