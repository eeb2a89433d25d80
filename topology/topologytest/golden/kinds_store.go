package golden

import (
	"github.com/tributary-io/tributary/processors"
)

// storeKind reads the descriptions of processors that use a store. The store is opened at each use, so that a store that is not
// connected is found where Kafka Streams finds it: at the first record.
func storeKind(o *object, name string, kt, vt Type, stores map[string]storeTypes) (kind, error) {
	store := o.str("store")
	open := func(c procContext) (*storeView, error) { return openStore(c.Stores(), store, stores[store]) }
	switch name {
	case "dedup":
		return dedup(o, kt, vt, open)
	case "lsnUpsert":
		return stateless(kt, typeJSON, lsnUpsert(open)), nil
	case "runningCount":
		return stateless(kt, typeInt64, runningCount(open)), nil
	case "countPunctuate":
		return countPunctuate(o, open), nil
	case "enrich":
		return stateless(typeString, typeString, enrich(open)), nil
	case "storePut":
		return stateless(kt, vt, func(c procContext, r record) error {
			s, err := open(c)
			if err != nil {
				return err
			}
			return s.put(r.key, r.value)
		}), nil
	case "storeCommands":
		return stateless(typeString, typeString, storeCommands(open)), nil
	}
	return kind{}, unsupported("processor kind %q", name)
}

type opener func(procContext) (*storeView, error)

func storeCommands(open opener) func(procContext, record) error {
	return func(c procContext, r record) error {
		if r.value == nil {
			return nil
		}
		s, err := open(c)
		if err != nil {
			return err
		}
		lines, err := runCommand(s, r.value.(string), func() { c.Dropped(processors.DroppedExpired) })
		if err != nil {
			return err
		}
		r.key = text(r.key)
		for _, line := range lines {
			r.value = line
			if err := c.forward(r, ""); err != nil {
				return err
			}
		}
		return nil
	}
}

func enrich(open opener) func(procContext, record) error {
	return func(c procContext, r record) error {
		s, err := open(c)
		if err != nil {
			return err
		}
		found := "null"
		if r.key != nil {
			v, ts, ok, err := s.get(r.key)
			switch {
			case err != nil:
				return err
			case ok && s.timestamped != nil:
				found = stampedText(v, ts)
			case ok:
				found = text(v)
			}
		}
		r.key, r.value = text(r.key), text(r.value)+"+"+found
		return c.forward(r, "")
	}
}

// countKey adds one to the count of a key.
func countKey(s *storeView, key any) (int64, error) {
	v, _, ok, err := s.get(key)
	if err != nil {
		return 0, err
	}
	n := int64(1)
	if ok {
		n += v.(int64)
	}
	return n, s.put(key, n)
}

func runningCount(open opener) func(procContext, record) error {
	return func(c procContext, r record) error {
		s, err := open(c)
		if err != nil {
			return err
		}
		n, err := countKey(s, r.key)
		if err != nil {
			return err
		}
		r.value = n
		return c.forward(r, "")
	}
}

func countPunctuate(o *object, open opener) kind {
	clock, interval, clear := clockOf(o), ms(o.int("intervalMs")), o.boolOr("clear", false)
	punctuate := func(c procContext, now int64) error {
		s, err := open(c)
		if err != nil {
			return err
		}
		var all []pair
		for e, err := range s.plain.All() {
			if err != nil {
				return err
			}
			all = append(all, pair{e.Key, e.Value})
		}
		for _, e := range all {
			if err := c.forward(record{key: e.key, value: e.value, timestamp: now}, ""); err != nil {
				return err
			}
			if clear {
				if _, _, err := s.plain.Delete(e.key); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return kind{typeString, typeInt64, func() behaviour {
		return behaviour{
			init: func(c procContext) error {
				c.Schedule(interval, clock, func(now int64) error { return punctuate(c, now) })
				return nil
			},
			process: func(c procContext, r record) error {
				s, err := open(c)
				if err != nil {
					return err
				}
				_, err = countKey(s, r.key)
				return err
			},
		}
	}}
}

func lsnUpsert(open opener) func(procContext, record) error {
	return func(c procContext, r record) error {
		if r.key == nil || r.value == nil {
			return nil
		}
		s, err := open(c)
		if err != nil {
			return err
		}
		old, _, ok, err := s.get(r.key)
		if err != nil {
			return err
		}
		change := r.value.(JSON)
		lsn := num(fieldInt(change, "lsn"))
		if ok && num(fieldInt(old, "lsn")) >= lsn {
			return nil
		}
		deleted := field(change, "op") == any("delete")
		entry := map[string]any{"lsn": lsn, "deleted": deleted}
		data, _ := change.field("data")
		if !deleted {
			entry["data"] = data
		}
		if err := s.put(r.key, jsonOf(entry)); err != nil {
			return err
		}
		r.value = nil
		if !deleted {
			r.value = jsonOf(data)
		}
		return c.forward(r, "")
	}
}

// dedupRule is the description of a dedup processor.
type dedupRule struct {
	by     function
	ttl    int64 // ms
	window bool
	open   opener
}

func dedup(o *object, kt, vt Type, open opener) (kind, error) {
	by, err := parseSelector(o.str("by"), kt, vt)
	d := dedupRule{by.f, o.int("ttlMs"), o.strOr("storeKind", "kv") == "window", open}
	purges, every := o.has("purgeEveryMs"), ms(o.int("purgeEveryMs"))
	return kind{kt, vt, func() behaviour {
		b := behaviour{process: d.process}
		if purges {
			b.init = func(c procContext) error {
				c.Schedule(every, processors.StreamTime, func(now int64) error { return d.purge(c, now) })
				return nil
			}
		}
		return b
	}}, err
}

func (d dedupRule) process(c procContext, r record) error {
	id := d.by(r.key, r.value)
	if id == nil {
		return c.forward(r, "")
	}
	s, err := d.open(c)
	if err != nil {
		return err
	}
	seen, err := d.seen(s, id, r.timestamp)
	if err != nil || seen {
		return err
	}
	if d.window {
		_, err = s.window.Put(id, r.timestamp, r.timestamp)
	} else {
		err = s.put(id, r.timestamp)
	}
	if err != nil {
		return err
	}
	return c.forward(r, "")
}

func (d dedupRule) seen(s *storeView, id any, ts int64) (bool, error) {
	if d.window {
		for _, err := range s.window.Fetch(id, max(0, ts-d.ttl), ts+d.ttl) {
			return true, err
		}
		return false, nil
	}
	v, _, ok, err := s.get(id)
	if err != nil || !ok {
		return false, err
	}
	distance := ts - v.(int64)
	return max(distance, -distance) < d.ttl, nil
}

func (d dedupRule) purge(c procContext, now int64) error {
	s, err := d.open(c)
	if err != nil {
		return err
	}
	var gone []any
	for e, err := range s.plain.All() {
		if err != nil {
			return err
		}
		if now-e.Value.(int64) >= d.ttl {
			gone = append(gone, e.Key)
		}
	}
	for _, key := range gone {
		if _, _, err := s.plain.Delete(key); err != nil {
			return err
		}
	}
	return nil
}
