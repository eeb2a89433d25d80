package golden

import (
	"fmt"
	"time"

	"github.com/tributary-io/tributary/processors"
)

// record is a record on its way through a processor of the vocabulary.
type record struct {
	key, value any
	timestamp  int64
	headers    []processors.Header
}

// procContext is what a processor of the vocabulary works with; both kinds of the library's contexts serve it.
type procContext interface {
	processors.BaseContext
	// forward sends r to all children, or to one of them by name.
	forward(r record, child string) error
}

// behaviour is a processor of the vocabulary, made for one task.
type behaviour struct {
	init    func(procContext) error // may be nil
	process func(procContext, record) error
}

// kind is a parsed processor description: a factory of behaviours, and the types that it sends.
type kind struct {
	key, value Type
	make       func() behaviour
}

// stateless is a kind whose behaviour keeps nothing between records.
func stateless(key, value Type, process func(procContext, record) error) kind {
	return kind{key, value, func() behaviour { return behaviour{process: process} }}
}

// parseKind reads a processor description for input of the given types. stores knows the types of the stores by name.
func parseKind(o *object, kt, vt Type, stores map[string]storeTypes) (kind, error) {
	k, err := kindOf(o, o.str("kind"), kt, vt, stores)
	if err == nil {
		o.finish()
	}
	return k, err
}

func kindOf(o *object, name string, kt, vt Type, stores map[string]storeTypes) (kind, error) {
	switch name {
	case "passthrough":
		return stateless(kt, vt, func(c procContext, r record) error { return c.forward(r, "") }), nil
	case "drop":
		return stateless(kt, vt, func(procContext, record) error { return nil }), nil
	case "mapValue":
		m, err := parseMapper(o.str("fn"), kt, vt)
		return stateless(kt, m.out, func(c procContext, r record) error {
			r.value = m.f(r.key, r.value)
			return c.forward(r, "")
		}), err
	case "selectKey":
		m, err := parseSelector(o.str("fn"), kt, vt)
		return stateless(m.out, vt, func(c procContext, r record) error {
			r.key = m.f(r.key, r.value)
			return c.forward(r, "")
		}), err
	case "filter":
		p, err := parsePredicate(o.str("predicate"))
		return stateless(kt, vt, func(c procContext, r record) error {
			if !p(r.key, r.value) {
				return nil
			}
			return c.forward(r, "")
		}), err
	case "timestamp":
		return stateless(kt, vt, setTimestamp(o)), nil
	case "headers":
		process, err := editHeaders(o)
		return stateless(kt, vt, process), err
	case "context":
		return stateless(typeString, typeString, showContext), nil
	case "forwardTo":
		process, err := forwardTo(o)
		return stateless(kt, vt, process), err
	case "quarantine":
		return stateless(kt, vt, quarantine(o)), nil
	case "failOn":
		x := o.str("value")
		return stateless(kt, vt, func(c procContext, r record) error {
			failOn(x, r.value)
			return c.forward(r, "")
		}), nil
	case "tick":
		return tick(o)
	}
	return storeKind(o, name, kt, vt, stores)
}

func setTimestamp(o *object) func(procContext, record) error {
	isSet, set, delta := o.has("set"), o.int("set"), o.int("delta")
	return func(c procContext, r record) error {
		if isSet {
			r.timestamp = set
		} else {
			r.timestamp += delta
		}
		return c.forward(r, "")
	}
}

// parseHeaders reads a list of {"key", "value"}; a null value is a null.
func parseHeaders(list []*object) []processors.Header {
	var out []processors.Header
	for _, o := range list {
		h := processors.Header{Key: o.str("key")}
		if o.has("value") {
			h.Value = []byte(o.str("value"))
		}
		o.finish()
		out = append(out, h)
	}
	return out
}

func editHeaders(o *object) (func(procContext, record) error, error) {
	add, remove := parseHeaders(o.objs("add")), o.strs("remove")
	return func(c procContext, r record) error {
		var kept []processors.Header
		for _, h := range r.headers {
			if !contains(remove, h.Key) {
				kept = append(kept, h)
			}
		}
		r.headers = append(kept, add...)
		return c.forward(r, "")
	}, nil
}

func showContext(c procContext, r record) error {
	where := "null/-1/-1" // what a punctuation sends comes from no record
	if m, ok := c.Metadata(); ok {
		where = fmt.Sprintf("%s/%d/%d", m.Topic, m.Partition, m.Offset)
	}
	r.value = fmt.Sprintf("%s ts=%d streamTime=%d wallClock=%d", where, r.timestamp, c.StreamTimeMs(), c.Now().UnixMilli())
	r.key = text(r.key)
	return c.forward(r, "")
}

type route struct {
	when  predicate
	child string
}

func forwardTo(o *object) (func(procContext, record) error, error) {
	var routes []route
	for _, x := range o.objs("routes") {
		p, err := parsePredicate(x.str("predicate"))
		if err != nil {
			return nil, err
		}
		routes = append(routes, route{p, x.str("child")})
		x.finish()
	}
	all, def := o.boolOr("all", false), o.strOr("default", "none")
	return func(c procContext, r record) error {
		for _, route := range routes {
			if !route.when(r.key, r.value) {
				continue
			}
			if err := c.forward(r, route.child); err != nil || !all {
				return err
			}
		}
		switch def {
		case "none":
			return nil
		case "all":
			return c.forward(r, "")
		}
		return c.forward(r, def)
	}, nil
}

func quarantine(o *object) func(procContext, record) error {
	required, good, bad := o.strs("required"), o.str("good"), o.str("bad")
	reason := func(v any) string {
		if v == nil {
			return "null"
		}
		if !isJSON(v.(string)) {
			return "malformed"
		}
		parsed := mustJSON(v.(string))
		for _, name := range required {
			if field(parsed, name) == nil {
				return "missing:" + name
			}
		}
		return ""
	}
	return func(c procContext, r record) error {
		why := reason(r.value)
		if why == "" {
			return c.forward(r, good)
		}
		r.headers = append(r.headers[:len(r.headers):len(r.headers)], processors.Header{Key: "reason", Value: []byte(why)})
		return c.forward(r, bad)
	}
}

func clockOf(o *object) processors.PunctuationType {
	if o.strOr("type", "streamTime") == "wallClock" {
		return processors.WallClockTime
	}
	return processors.StreamTime
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func tick(o *object) (kind, error) {
	label, clock, interval := o.strOr("label", "tick"), clockOf(o), ms(o.int("intervalMs"))
	cancels, cancelAfter := o.has("cancelAfter"), o.int("cancelAfter")
	return kind{typeString, typeString, func() behaviour {
		return behaviour{
			init: func(c procContext) error {
				var fired int64
				var handle processors.Cancellable
				handle = c.Schedule(interval, clock, func(now int64) error {
					fired++
					err := c.forward(record{key: label, value: fmt.Sprintf("now=%d n=%d", now, fired), timestamp: now}, "")
					if cancels && fired >= cancelAfter {
						handle.Cancel()
					}
					return err
				})
				return nil
			},
			process: func(c procContext, r record) error { return c.forward(r, "") },
		}
	}}, nil
}
