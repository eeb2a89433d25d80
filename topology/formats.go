package topology

import (
	"encoding/json"
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
		b.formats, b.renderers = map[string]Format{}, map[string]func(topic string) Renderer{}
	}
	b.formats[name], b.renderers[name] = Format{serdeName(key), serdeName(value)}, rendererOf(key, value)
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

// StoreTypesError says that a store is asked with serdes of other Go types than those of its keys and values.
type StoreTypesError struct {
	Store                string
	Key, Value           reflect.Type // the store's
	AskedKey, AskedValue reflect.Type
}

func (e *StoreTypesError) Error() string {
	var wrong []string
	if !readAs(e.Key, e.AskedKey) {
		wrong = append(wrong, fmt.Sprintf("its keys are %v, the serde is one of %v", e.Key, e.AskedKey))
	}
	if !readAs(e.Value, e.AskedValue) {
		wrong = append(wrong, fmt.Sprintf("its values are %v, the serde is one of %v", e.Value, e.AskedValue))
	}
	return fmt.Sprintf("store %s: %s; give the serdes that the topology gives the store, or serde.Bytes for the bytes as they are", e.Store, strings.Join(wrong, ", and "))
}

// CheckStoreTypes returns a *StoreTypesError if a store's keys or values are of other Go types than K and V. []byte, of either, stands for what is stored as it is.
// Where nothing is known of the store's types, and for interfaces, there is nothing to compare.
func CheckStoreTypes[K, V any](p *Plan, store string) error {
	r, ok := p.Renderer(store)
	key, value := reflect.TypeFor[K](), reflect.TypeFor[V]()
	if !ok || readAs(r.KeyType, key) && readAs(r.ValueType, value) {
		return nil
	}
	return &StoreTypesError{store, r.KeyType, r.ValueType, key, value}
}

// readAs reports whether what is stored as one type may be asked for as another: one that is the same but for its name, such as a string for a
// type ID string, or bytes, which may be anything: who asks knows what they are.
func readAs(stored, asked reflect.Type) bool {
	raw := reflect.TypeFor[[]byte]()
	return stored.Kind() == asked.Kind() && stored.ConvertibleTo(asked) || stored == raw || asked == raw ||
		stored.Kind() == reflect.Interface || asked.Kind() == reflect.Interface
}

// Renderer turns keys and values of a store from and into what people and JSON can show, by the store's own serdes.
type Renderer struct {
	// KeyOf gives the bytes of a key from text: a string as it is, anything else from JSON.
	KeyOf func(text string) ([]byte, error)
	// KeyType and ValueType are the Go types of the store's keys and values.
	KeyType, ValueType reflect.Type
	// Key and Value decode; what they give can be marshalled as JSON as far as the Go types can.
	Key, Value func(data []byte) (any, error)
}

// Renderer gives the renderer of a store, if its serdes are known.
func (p *Plan) Renderer(store string) (Renderer, bool) {
	s, f := p.p.Stores[store], p.renderers[store]
	if s == nil || f == nil {
		return Renderer{}, false
	}
	topic := s.Changelog // what its serdes are bound to
	if topic == "" {
		topic = p.p.ApplicationID + "-" + store + "-changelog"
	}
	return f(topic), true
}

func rendererOf[K, V any](key serde.Serde[K], value serde.Serde[V]) func(topic string) Renderer {
	if key == nil || value == nil {
		return nil
	}
	return func(topic string) Renderer {
		key, value := serde.Bind(key, topic, true), serde.Bind(value, topic, false)
		return Renderer{
			KeyType: reflect.TypeFor[K](), ValueType: reflect.TypeFor[V](),
			KeyOf: func(text string) ([]byte, error) {
				k, err := parseText[K](text)
				if err != nil {
					return nil, err
				}
				return key.Append(nil, k)
			},
			Key:   func(data []byte) (any, error) { return key.Decode(data) },
			Value: func(data []byte) (any, error) { return value.Decode(data) },
		}
	}
}

// parseText reads a key as a person would write it.
func parseText[K any](text string) (k K, err error) {
	switch p := any(&k).(type) {
	case *string:
		*p = text
		return k, nil
	case *[]byte:
		*p = []byte(text)
		return k, nil
	}
	if err = json.Unmarshal([]byte(text), &k); err == nil {
		return k, nil
	}
	if quoted, qerr := json.Marshal(text); qerr == nil && json.Unmarshal(quoted, &k) == nil { // a time, a UUID
		return k, nil
	}
	return k, fmt.Errorf("%q is no %v: %w", text, reflect.TypeFor[K](), err)
}
