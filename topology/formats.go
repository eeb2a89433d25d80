package topology

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
)

// Format names what makes bytes of the keys and values of a store or an internal topic: the serdes by their Go types, or by what they say
// of themselves if they are fmt.Stringers. It is meant for comparing two versions of a topology: equal names mean, as far as can be
// told, that one reads what the other has written. Either may be empty, where nothing is known.
type Format struct{ Key, Value string }

// Formats gives the formats of stores, by name, and of repartition topics and topics before lake sinks, by full name. Stores with a layout
// of the engine's own, such as the subscriptions of a join by foreign key, are not in it.
func (p *Plan) Formats() map[string]Format { return maps.Clone(p.formats) }

// Strict tells whether the plan was built with StrictNames.
func (p *Plan) Strict() bool { return p.strict }

// kept notes the format of a store that is being declared.
func kept[K, V any](b *Builder, s processors.Store[K, V]) processors.Store[K, V] {
	noteFormat(b, s.Name, s.Key, s.Value)
	return s
}

func noteFormat[K, V any](b *Builder, name string, key serde.Serde[K], value serde.Serde[V]) {
	if b.formats == nil {
		b.formats = map[string]Format{}
	}
	b.formats[name] = Format{serdeName(key), serdeName(value)}
}

func serdeName[T any](s serde.Serde[T]) string {
	switch v := s.(type) {
	case nil:
		return ""
	case fmt.Stringer:
		return v.String()
	}
	of := reflect.TypeFor[T]().String()
	name := strings.TrimPrefix(fmt.Sprintf("%T", s), "*")
	if strings.Contains(name, "[") { // says its type already
		return name
	}
	return name + " of " + of
}

// formatsOf leaves out what the plan doesn't have.
func (b *Builder) formatsOf(p *Plan) map[string]Format {
	out := map[string]Format{}
	for name, f := range b.formats {
		if p.p.Stores[name] != nil || p.p.InternalTopics[name] != nil {
			out[name] = f
		}
	}
	return out
}
