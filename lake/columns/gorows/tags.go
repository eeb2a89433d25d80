package gorows

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// tag is what a field's struct tags say.
type tag struct {
	name      string // empty: the Go name
	named     bool   // by a tag
	skip      bool
	notNull   bool
	partition bool
	date      bool
	text      bool
	decimal   bool
	precision int
	scale     int
	comment   string
	metadata  map[string]any
}

// parseTag reads the tags of a field: lake before avro before json.
func parseTag(f reflect.StructField) (tag, error) {
	if s, ok := f.Tag.Lookup("lake"); ok {
		t, err := parseLake(s)
		if err == nil && t.name == "" && !t.skip {
			t.name, t.named, _ = otherName(f)
		}
		return t, err
	}
	name, named, skip := otherName(f)
	return tag{name: name, named: named, skip: skip}, nil
}

// otherName takes the name from a tag for a serde.
func otherName(f reflect.StructField) (name string, named, skip bool) {
	for _, key := range []string{"avro", "json"} {
		s, ok := f.Tag.Lookup(key)
		if !ok {
			continue
		}
		if s == "-" {
			return "", false, true
		}
		if name, _, _ := strings.Cut(s, ","); name != "" {
			return name, true, false
		}
	}
	return "", false, false
}

func parseLake(s string) (t tag, err error) {
	if s == "-" {
		t.skip = true
		return t, nil
	}
	t.name, s = nextOption(s)
	t.named = t.name != ""
	for s != "" {
		if c, ok := strings.CutPrefix(s, "comment="); ok {
			t.comment = c
			return t, nil
		}
		var opt string
		opt, s = nextOption(s)
		if err := t.option(opt); err != nil {
			return t, err
		}
	}
	return t, nil
}

// nextOption cuts s at the first comma outside of parentheses.
func nextOption(s string) (opt, rest string) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				return s[:i], s[i+1:]
			}
		}
	}
	return s, ""
}

func (t *tag) option(opt string) error {
	switch opt {
	case "":
	case "notnull":
		t.notNull = true
	case "partition":
		t.partition = true
	case "date":
		t.date = true
	case "string":
		t.text = true
	default:
		if args, ok := strings.CutPrefix(opt, "decimal("); ok {
			return t.decimalOption(strings.TrimSuffix(args, ")"))
		}
		key, value, ok := strings.Cut(opt, "=")
		if !ok || !strings.Contains(key, ".") {
			return fmt.Errorf("lake tag option %q is not known: notnull, partition, date, string, decimal(p,s), key.name=value and comment=… are", opt)
		}
		if t.metadata == nil {
			t.metadata = map[string]any{}
		}
		t.metadata[key] = tagValue(value)
	}
	return nil
}

func (t *tag) decimalOption(args string) (err error) {
	p, s, ok := strings.Cut(args, ",")
	if !ok {
		return fmt.Errorf("lake tag option decimal(%s): write decimal(precision,scale)", args)
	}
	if t.precision, err = strconv.Atoi(strings.TrimSpace(p)); err == nil {
		t.scale, err = strconv.Atoi(strings.TrimSpace(s))
	}
	t.decimal = true
	return err
}

// tagValue reads booleans as such, as they would come from an Avro attribute.
func tagValue(s string) any {
	switch s {
	case "true":
		return true
	case "false":
		return false
	}
	return s
}
