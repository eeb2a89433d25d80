package serde

// The Avro library is named in this file only. It gives the fastest decoding into structs, but its author has declared it
// unmaintained; the tests hold it against github.com/twmb/avro, which can take its place here.

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/hamba/avro/v2"
	"github.com/modern-go/reflect2"
)

// What a corrupt length may make the library allocate before it notices that the bytes aren't there.
const (
	maxAvroBytes    = 64 << 20 // of one string or bytes value
	maxAvroElements = 1 << 20  // of one array
)

// newAvroAPI makes an API with caches of its own: the library's cache goes by fingerprints that leave out what matters to
// resolution.
func newAvroAPI() avro.API {
	return avro.Config{MaxByteSliceSize: maxAvroBytes, MaxSliceAllocSize: maxAvroElements}.Freeze()
}

// avroSchema is a parsed schema and the text that it came from.
type avroSchema struct {
	text   string
	schema avro.Schema
}

func parseAvro(text string) (_ avroSchema, err error) {
	defer recovered(&err)
	// A cache of its own, since the versions of a schema share their name.
	s, err := avro.ParseWithCache(text, "", &avro.SchemaCache{})
	if err != nil {
		return avroSchema{}, err
	}
	return avroSchema{text, s}, nil
}

func (s avroSchema) name() string {
	if n, ok := s.schema.(avro.NamedSchema); ok {
		return n.FullName()
	}
	return string(s.schema.Type())
}

// avroEncoder encodes one Go type with one schema.
type avroEncoder struct {
	enc      avro.ValEncoder
	byHandle bool // it takes the pointer that the value is, not a pointer to the value
}

func (s avroSchema) encoder(t reflect.Type) avroEncoder {
	typ := reflect2.Type2(t)
	return avroEncoder{enc: newAvroAPI().EncoderOf(s.schema, typ), byHandle: typ.LikePtr()}
}

// avroDecoder decodes what one schema wrote into one Go type, or only checks it.
type avroDecoder struct {
	walk  avroWalk // checks the bytes first; nil where the library is safe without
	dec   avro.ValDecoder
	other otherDecoder // instead of dec, where the library can't
}

// decoder compiles the reading of what writer wrote as s into t.
func (s avroSchema) decoder(writer avroSchema, t reflect.Type) (_ avroDecoder, err error) {
	defer recovered(&err)
	if err := logicalClash("", s.schema, writer.schema, map[[2]avro.Schema]bool{}); err != nil {
		return avroDecoder{}, err
	}
	resolved, err := s.resolve(writer)
	if err != nil {
		return avroDecoder{}, err
	}
	var d avroDecoder
	if unbounded(writer.schema, map[avro.Schema]bool{}) {
		d.walk = newAvroWalk(writer.schema)
	}
	if (avroSchema{schema: resolved}).fitsReading(t) != nil {
		// The library can resolve the schemas, but not read the outcome into t: it wants a union for a pointer even where the
		// writer had none yet.
		d.other, err = newOtherDecoder(s.text, writer.text, t)
		return d, err
	}
	d.dec = newAvroAPI().DecoderOf(resolved, reflect2.Type2(reflect.PointerTo(t)))
	return d, nil
}

// skimmer compiles the check that bytes are what writer writes, and could be read as s.
func (s avroSchema) skimmer(writer avroSchema) (_ avroDecoder, err error) {
	defer recovered(&err)
	if err := logicalClash("", s.schema, writer.schema, map[[2]avro.Schema]bool{}); err != nil {
		return avroDecoder{}, err
	}
	if _, err := s.resolve(writer); err != nil {
		return avroDecoder{}, err
	}
	return avroDecoder{walk: newAvroWalk(writer.schema)}, nil
}

func (s avroSchema) resolve(writer avroSchema) (avro.Schema, error) {
	if s.schema.Fingerprint() == writer.schema.Fingerprint() {
		return s.schema, nil // docs, defaults and attributes at most differ
	}
	if recursive(s.schema, map[avro.Schema]bool{}) || recursive(writer.schema, map[avro.Schema]bool{}) {
		return nil, errors.New("a recursive schema can be read only with the schema that it was written with")
	}
	return avro.NewSchemaCompatibility().Resolve(s.schema, writer.schema)
}

// unbounded reports whether values have parts whose number is in the bytes: the library reads on to a count of 2^60 when the bytes
// are long at their end, and follows nested values until the stack is full.
func unbounded(s avro.Schema, seen map[avro.Schema]bool) bool {
	s = deref(s)
	if _, ok := seen[s]; ok {
		return true
	}
	seen[s] = true
	defer delete(seen, s)
	switch t := s.(type) {
	case *avro.RecordSchema:
		return slices.ContainsFunc(t.Fields(), func(f *avro.Field) bool { return unbounded(f.Type(), seen) })
	case *avro.UnionSchema:
		return slices.ContainsFunc(t.Types(), func(b avro.Schema) bool { return unbounded(b, seen) })
	case *avro.ArraySchema, *avro.MapSchema:
		return true
	}
	return false
}

// recursive reports whether a type contains itself: the library would resolve it until the stack is full. seen holds the types
// that are being looked into (true) and those that have been (false).
func recursive(s avro.Schema, seen map[avro.Schema]bool) bool {
	s = deref(s)
	if within, ok := seen[s]; ok {
		return within
	}
	seen[s] = true
	defer func() { seen[s] = false }()
	switch t := s.(type) {
	case *avro.RecordSchema:
		return slices.ContainsFunc(t.Fields(), func(f *avro.Field) bool { return recursive(f.Type(), seen) })
	case *avro.UnionSchema:
		return slices.ContainsFunc(t.Types(), func(b avro.Schema) bool { return recursive(b, seen) })
	case *avro.ArraySchema:
		return recursive(t.Items(), seen)
	case *avro.MapSchema:
		return recursive(t.Values(), seen)
	}
	return false
}

// avroBuffers are the library's reader and writer, reused from call to call.
type avroBuffers struct {
	r *avro.Reader
	w *avro.Writer
}

var avroBuffersAPI = newAvroAPI()

func newAvroBuffers() avroBuffers {
	return avroBuffers{
		r: avro.NewReader(nil, 0, avro.WithReaderConfig(avroBuffersAPI)),
		w: avro.NewWriter(nil, 256, avro.WithWriterConfig(avroBuffersAPI)),
	}
}

// encode returns the encoding of the value that v points to. It is valid until the next call.
func (b avroBuffers) encode(e avroEncoder, v unsafe.Pointer) (_ []byte, err error) {
	defer recovered(&err)
	b.w.Reset(nil)
	b.w.Error = nil
	if e.byHandle {
		v = *(*unsafe.Pointer)(v)
	}
	e.enc.Encode(v, b.w)
	return b.w.Buffer(), b.w.Error
}

var errTrailing = errors.New("bytes are left behind the value: it was written with another schema than its id says")

// decode fills what v points to. The whole of data must be the value: the library's own Unmarshal takes a value that is cut
// off in a number for a whole one, and doesn't look behind the value.
func (b avroBuffers) decode(d avroDecoder, v unsafe.Pointer, data []byte) (err error) {
	defer recovered(&err)
	if d.walk != nil {
		if err := d.walk.whole(data); err != nil {
			return err
		}
	}
	switch {
	case d.other != nil:
		return d.other(v, data)
	case d.dec == nil:
		return nil
	}
	b.r.Reset(data)
	b.r.Error = nil
	d.dec.Decode(v, b.r)
	if err := b.r.Error; err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("cut off: %w", err)
		}
		return err
	}
	if b.r.Peek(); b.r.Error == nil {
		return errTrailing
	}
	return nil
}

// recovered makes a panic of the library an error: lengths that no writer writes make it slice out of range.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("corrupt: %v", p)
	}
}

// logicalClash finds a place where both schemas give the same encoding another meaning.
func logicalClash(path string, reader, writer avro.Schema, seen map[[2]avro.Schema]bool) error {
	reader, writer = deref(reader), deref(writer)
	if seen[[2]avro.Schema{reader, writer}] {
		return nil
	}
	seen[[2]avro.Schema{reader, writer}] = true
	switch r := reader.(type) {
	case *avro.RecordSchema:
		if w, ok := writer.(*avro.RecordSchema); ok {
			return recordClash(path, r, w, seen)
		}
	case *avro.ArraySchema:
		if w, ok := writer.(*avro.ArraySchema); ok {
			return logicalClash(path+"[]", r.Items(), w.Items(), seen)
		}
	case *avro.MapSchema:
		if w, ok := writer.(*avro.MapSchema); ok {
			return logicalClash(path+"{}", r.Values(), w.Values(), seen)
		}
	}
	if r, ok := reader.(*avro.UnionSchema); ok {
		return branchesClash(path, r.Types(), []avro.Schema{writer}, seen)
	}
	if w, ok := writer.(*avro.UnionSchema); ok {
		return branchesClash(path, []avro.Schema{reader}, w.Types(), seen)
	}
	return leafClash(path, reader, writer)
}

func recordClash(path string, r, w *avro.RecordSchema, seen map[[2]avro.Schema]bool) error {
	for _, rf := range r.Fields() {
		for _, wf := range w.Fields() {
			if rf.Name() != wf.Name() && !slices.Contains(rf.Aliases(), wf.Name()) {
				continue
			}
			if err := logicalClash(path+"."+rf.Name(), rf.Type(), wf.Type(), seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// branchesClash checks each branch of the writer against those of its kind that the reader has.
func branchesClash(path string, reader, writer []avro.Schema, seen map[[2]avro.Schema]bool) error {
	for _, w := range flatten(writer) {
		var clash error
		for _, r := range reader {
			if deref(r).Type() != w.Type() {
				continue
			}
			if clash = logicalClash(path, r, w, seen); clash == nil {
				break
			}
		}
		if clash != nil {
			return clash
		}
	}
	return nil
}

func flatten(schemas []avro.Schema) []avro.Schema {
	var flat []avro.Schema
	for _, s := range schemas {
		if u, ok := deref(s).(*avro.UnionSchema); ok {
			flat = append(flat, flatten(u.Types())...)
		} else {
			flat = append(flat, deref(s))
		}
	}
	return flat
}

func leafClash(path string, reader, writer avro.Schema) error {
	r, w := logicalOf(reader), logicalOf(writer)
	if r == nil || w == nil {
		return nil // a logical type that was added or dropped only changes what the number is called
	}
	rd, rok := r.(*avro.DecimalLogicalSchema)
	wd, wok := w.(*avro.DecimalLogicalSchema)
	if rok && wok {
		if rd.Scale() == wd.Scale() && rd.Precision() >= wd.Precision() {
			return nil
		}
		return fmt.Errorf("field %s was written as decimal(%d,%d), and is declared as decimal(%d,%d)",
			fieldPath(path), wd.Precision(), wd.Scale(), rd.Precision(), rd.Scale())
	}
	if r.Type() != w.Type() {
		return fmt.Errorf("field %s was written as %s, and is declared as %s", fieldPath(path), w.Type(), r.Type())
	}
	return nil
}

func logicalOf(s avro.Schema) avro.LogicalSchema {
	l, ok := s.(avro.LogicalTypeSchema)
	if !ok {
		return nil
	}
	return l.Logical()
}

func deref(s avro.Schema) avro.Schema {
	if ref, ok := s.(*avro.RefSchema); ok {
		return ref.Schema()
	}
	return s
}

func fieldPath(path string) string {
	if path == "" {
		return "(the value itself)"
	}
	if path[0] == '.' {
		return path[1:]
	}
	return path
}

// fit checks a Go type against a schema, before any record: the library finds a mismatch only when it comes to the value.
type fit struct {
	api     avro.API
	writing bool
	seen    map[fitKey]bool
	errs    []error
}

type fitKey struct {
	schema avro.Schema
	typ    reflect.Type
}

// fitsReading returns every place where values of s can't be read into t, and every field of t that s doesn't have.
func (s avroSchema) fitsReading(t reflect.Type) error { return s.fits(t, false) }

// fitsWriting returns every place where t can't be written as s.
func (s avroSchema) fitsWriting(t reflect.Type) error { return s.fits(t, true) }

func (s avroSchema) fits(t reflect.Type, writing bool) error {
	f := &fit{api: newAvroAPI(), writing: writing, seen: make(map[fitKey]bool)}
	f.walk("", s.schema, t)
	return errors.Join(f.errs...)
}

func (f *fit) walk(path string, schema avro.Schema, t reflect.Type) {
	schema = deref(schema)
	key := fitKey{schema, t}
	if f.seen[key] || t.Kind() == reflect.Interface {
		return // an interface takes whatever comes
	}
	f.seen[key] = true
	switch s := schema.(type) {
	case *avro.RecordSchema:
		f.record(path, s, t)
	case *avro.ArraySchema:
		if t.Kind() == reflect.Slice {
			f.walk(path+"[]", s.Items(), t.Elem())
			return
		}
		f.leaf(path, schema, t)
	case *avro.MapSchema:
		if t.Kind() == reflect.Map && t.Key().Kind() == reflect.String {
			f.walk(path+"{}", s.Values(), t.Elem())
			return
		}
		f.leaf(path, schema, t)
	case *avro.UnionSchema:
		f.union(path, s, t)
	default:
		f.leaf(path, schema, t)
	}
}

func (f *fit) record(path string, s *avro.RecordSchema, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		f.leaf(path, s, t)
		return
	}
	fields := make(map[string]reflect.Type)
	structFields(t, fields)
	for _, sf := range s.Fields() {
		name := sf.Name()
		ft, ok := fields[name]
		for _, alias := range sf.Aliases() { // the library reads a field under its aliases, too
			if !ok && !f.writing {
				if ft, ok = fields[alias]; ok {
					name = alias
				}
			}
		}
		if ok {
			f.walk(path+"."+sf.Name(), sf.Type(), ft)
			delete(fields, name)
		} else if f.writing && !sf.HasDefault() {
			f.errs = append(f.errs, fmt.Errorf("field %s is missing in %s, and has no default", fieldPath(path+"."+sf.Name()), t))
		}
	}
	for name := range fields {
		f.errs = append(f.errs, fmt.Errorf("%s has the field %q, but the schema %s doesn't: give it the schema's name in an avro tag, or avro:\"-\"",
			t, name, s.FullName()))
	}
}

// structFields lists the fields of t by the names that the library uses.
func structFields(t reflect.Type, into map[string]reflect.Type) {
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous {
			et := sf.Type
			if et.Kind() == reflect.Pointer {
				et = et.Elem()
			}
			if et.Kind() == reflect.Struct {
				structFields(et, into)
			}
			continue
		}
		if !sf.IsExported() {
			continue
		}
		name := sf.Name
		if tag, ok := sf.Tag.Lookup("avro"); ok {
			name, _, _ = strings.Cut(tag, ",")
		}
		if name != "-" {
			into[name] = sf.Type
		}
	}
}

// union follows the one case that is a Go type of its own: null or something, as a pointer or a slice.
func (f *fit) union(path string, s *avro.UnionSchema, t reflect.Type) {
	if !s.Nullable() || t.Kind() != reflect.Pointer && t.Kind() != reflect.Slice {
		f.leaf(path, s, t)
		return
	}
	_, other := s.Indices()
	branch := s.Types()[other]
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	f.walk(path, branch, t)
}

var (
	bigRatType = reflect.TypeFor[big.Rat]()
	// The library's way of saying no, which it exports under no name.
	noDecoder = fmt.Sprintf("%T", newAvroAPI().DecoderOf(avro.NewPrimitiveSchema(avro.Int, nil), reflect2.TypeOf((*string)(nil))))
	noEncoder = fmt.Sprintf("%T", newAvroAPI().EncoderOf(avro.NewPrimitiveSchema(avro.Int, nil), reflect2.TypeOf("")))
)

func (f *fit) leaf(path string, schema avro.Schema, t reflect.Type) {
	switch {
	case t == bigRatType:
		f.no(path, schema, t, "take *big.Rat or serde.Decimal") // by value the library overwrites memory
	case t.Kind() == reflect.Uint64:
		f.no(path, schema, t, "take int64, or [8]byte for a fixed") // the library's codec isn't safe for concurrent use
	case f.writing && fmt.Sprintf("%T", f.api.EncoderOf(schema, reflect2.Type2(t))) == noEncoder,
		!f.writing && fmt.Sprintf("%T", f.api.DecoderOf(schema, reflect2.Type2(reflect.PointerTo(t)))) == noDecoder:
		f.no(path, schema, t, "")
	}
}

func (f *fit) no(path string, schema avro.Schema, t reflect.Type, advice string) {
	err := fmt.Errorf("field %s: the schema says %s, the Go type is %s", fieldPath(path), describe(schema), t)
	if advice != "" {
		err = fmt.Errorf("%w: %s", err, advice)
	}
	f.errs = append(f.errs, err)
}

func describe(s avro.Schema) string {
	if l := logicalOf(s); l != nil {
		return fmt.Sprintf("%s of %s", l.Type(), s.Type())
	}
	return string(s.Type())
}

// newAvroWalk compiles the check of a schema's bytes.
func newAvroWalk(s avro.Schema) avroWalk { return walkOf(s, make(map[avro.Schema]*avroWalk)) }

// walkOf compiles one type; made holds the named types that are made or being made.
func walkOf(s avro.Schema, made map[avro.Schema]*avroWalk) avroWalk {
	switch t := deref(s).(type) {
	case *avro.RecordSchema:
		if w := made[t]; w != nil {
			return func(data []byte, depth int) ([]byte, error) { return (*w)(data, depth) }
		}
		w := new(avroWalk)
		made[t] = w
		fields := make([]avroWalk, len(t.Fields()))
		for i, f := range t.Fields() {
			fields[i] = walkOf(f.Type(), made)
		}
		*w = walkRecord(fields)
		return *w
	case *avro.UnionSchema:
		branches := make([]avroWalk, len(t.Types()))
		for i, b := range t.Types() {
			branches[i] = walkOf(b, made)
		}
		return walkUnion(branches)
	case *avro.ArraySchema:
		return walkBlocks(walkOf(t.Items(), made))
	case *avro.MapSchema:
		return walkBlocks(walkRecord([]avroWalk{walkBytes, walkOf(t.Values(), made)}))
	case *avro.EnumSchema:
		return walkEnum(len(t.Symbols()))
	case *avro.FixedSchema:
		return walkFixed(t.Size())
	default:
		return walkPrimitive(string(t.Type()))
	}
}
