package golden

import (
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/topology"
)

// applyNode adds nodes of the Processor API, whose keys and values are any.
func (b *build) applyNode(op string, o *object) (known bool, err error) {
	switch op {
	case "addSource":
		return true, b.addSource(o)
	case "addProcessor":
		return true, b.addProcessor(o)
	case "addSink":
		return true, b.addSink(o)
	case "addStore":
		b.b.AddStore(b.storeDecl(o.obj("store")), o.strs("processors")...)
		return true, nil
	case "connect":
		b.b.ConnectStores(o.str("processor"), o.strs("stores")...)
		return true, nil
	case "addGlobalProcessorStore", "addReadOnlyStore":
		return true, b.addFilledStore(op, o)
	}
	return false, nil
}

func (b *build) addSource(o *object) error {
	types := topicTypes{o.typ("key"), o.typ("value")}
	opts, err := consumed[any](o, anyType)
	if err != nil {
		return err
	}
	name, key, value := o.str("name"), types.key.Serde(), types.value.Serde()
	b.papi[name] = types
	if o.has("pattern") {
		b.notePattern(o.str("pattern"), types)
		b.b.AddSourcePattern(name, o.str("pattern"), key, value, opts...)
		return nil
	}
	topics := o.strs("topics")
	if o.has("topic") {
		topics = []string{o.str("topic")}
	}
	b.noteInput(types, topics...)
	b.b.AddSource(name, topics, key, value, opts...)
	return nil
}

// sent are the types that the first of some parents sends.
func (b *build) sent(parents []string) topicTypes {
	if len(parents) > 0 {
		if t, ok := b.papi[parents[0]]; ok {
			return t
		}
	}
	return topicTypes{typeString, typeString}
}

func (b *build) addProcessor(o *object) error {
	parents := o.strs("parents")
	in := b.sent(parents)
	opts := b.storeDecls(o, "provideStores")
	k, err := parseKind(o.obj("processor"), in.key, in.value, b.stores)
	if err != nil {
		return err
	}
	b.papi[o.str("name")] = topicTypes{k.key, k.value}
	newProcessor := asProcessor(k, anyType, anyType, anyType, anyType)
	b.b.AddProcessor(o.str("name"), newProcessor, parents, opts...)
	return nil
}

func (b *build) addSink(o *object) error {
	parents := o.strs("parents")
	types := b.sent(parents)
	if o.has("key") {
		types.key = o.typ("key")
	}
	if o.has("value") {
		types.value = o.typ("value")
	}
	name, key, value := o.str("name"), types.key.Serde(), types.value.Serde()
	if !o.has("topicFrom") {
		b.noteOutput(o.str("topic"), types)
		b.b.AddSink(name, o.str("topic"), key, value, parents)
		return nil
	}
	x := o.obj("topicFrom")
	m, err := parseSelector(x.str("selector"), types.key, types.value)
	if err != nil {
		return err
	}
	prefix := x.str("prefix")
	x.finish()
	b.dynamic = &types
	choose := func(r *processors.Record[any, any]) (string, error) { return prefix + text(m.f(r.Key, r.Value)), nil }
	b.b.AddDynamicSink(name, choose, key, value, parents)
	return nil
}

// addFilledStore adds a store that a processor fills from a topic.
func (b *build) addFilledStore(op string, o *object) error {
	types := topicTypes{o.typ("key"), o.typ("value")}
	store := b.storeDecl(o.obj("store"))
	k, err := parseKind(o.obj("processor"), types.key, types.value, b.stores)
	if err != nil {
		return err
	}
	b.noteInput(types, o.str("topic"))
	newProcessor := asProcessor(k, anyType, anyType, anyType, anyType)
	source, topic, name := o.str("sourceName"), o.str("topic"), o.str("name")
	var opts []topology.Option
	if o.has("timestampExtractor") {
		e, err := extractor[any](o.str("timestampExtractor"), anyType)
		if err != nil {
			return err
		}
		opts = append(opts, topology.Timestamps(e))
	}
	if op == "addReadOnlyStore" {
		b.b.AddReadOnlyStore(store, source, topic, types.key.Serde(), types.value.Serde(), name, newProcessor, opts...)
	} else {
		b.b.AddGlobalProcessorStore(store, source, topic, types.key.Serde(), types.value.Serde(), name, newProcessor, opts...)
	}
	return nil
}
