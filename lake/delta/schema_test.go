package delta

import (
	"errors"
	"strings"
	"testing"
)

// oddSchema has keys and types that this package knows nothing of, numbers in odd spellings and a nested everything.
const oddSchema = `{"type":"struct","fields":[` +
	`{"name":"a","type":"long","nullable":true,"metadata":{"comment":"c \u003c<\"","ods.pii":true,"delta.generationExpression":"1+1","x":{"a": 1.0, "b":[1e3]}}},` +
	`{"name":"b","type":{"type":"array","elementType":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[` +
	`{"name":"c","type":"decimal(38,18)","nullable":false,"metadata":{}}]},"valueContainsNull":false,"new":1},"containsNull":true},"nullable":true,"metadata":{},"future":[1]},` +
	`{"name":"g","type":"geometry(OGC:CRS84)","nullable":true,"metadata":{}}],"top":null}`

func TestSchemaRoundTrip(t *testing.T) {
	s, err := ParseSchema(oddSchema)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.MarshalJSON()
	if err != nil || string(raw) != oddSchema {
		t.Errorf("round trip, %v:\n%s\nwant\n%s", err, raw, oddSchema)
	}
	if got, want := s.String(), "struct<a: long, b: array<map<string, struct<c: decimal(38,18) not null>>>, g: geometry(OGC:CRS84)>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	m := s.Fields[0].Metadata
	if m.Comment() != `c <<"` || m.Len() != 4 || m.Text("ods.pii") != "" || m.Keys()[3] != "x" {
		t.Errorf("field metadata %v", m)
	}
	if raw, _ := m.Get("x"); string(raw) != `{"a": 1.0, "b":[1e3]}` {
		t.Errorf("x = %s", raw)
	}
	changed := m.With("comment", "new").With("z", 1).Without("ods.pii")
	if strings.Join(changed.Keys(), " ") != "comment delta.generationExpression x z" || changed.Comment() != "new" || m.Comment() != `c <<"` {
		t.Errorf("changed %v, was %v", changed, m)
	}
}

func TestBadSchemas(t *testing.T) {
	for _, text := range []string{
		``, `null`, `"long"`, `{}`, `{"type":"struct","fields":[{"name":"a"}]}`, `{"type":"struct","fields":[{"type":"long"}]}`,
		`{"type":"struct","fields":[{"name":"a","type":"decimal(39,1)"}]}`, `{"type":"struct","fields":[{"name":"a","type":"decimal(2,3)"}]}`,
		`{"type":"struct","fields":[{"name":"a","type":{"type":"array"}}]}`, `{"type":"struct","fields":[{"name":"a","type":{"type":"map","keyType":"string"}}]}`,
		`{"type":"struct","fields":[{"name":"a","type":"long","metadata":{"k":1,"k":2}}]}`, `{"type":"struct","fields":[]} trailing`,
		`{"type":"struct","fields":[{"name":"a","type":` + strings.Repeat(`{"type":"array","elementType":`, 500) + `"long"` + strings.Repeat("}", 500) + `}]}`,
	} {
		if s, err := ParseSchema(text); err == nil {
			t.Errorf("%.80s became %s", text, s)
		}
	}
}

func field(name string, t Type) Field { return Field{Name: name, Type: t, Nullable: true} }

func structs(fields ...Field) *StructType { return &StructType{Fields: fields} }

func TestEvolveAddsAtAnyDepth(t *testing.T) {
	deep := func(leaf ...Field) *StructType {
		return structs(field("id", Long), field("tree", &MapType{Key: String, Value: &ArrayType{Element: structs(leaf...), ContainsNull: true}, ValueContainsNull: true}))
	}
	old := deep(field("a", Long))
	got, err := Evolve(old, structs(append(deep(field("b", String), field("a", Long)).Fields, field("new", Date))...))
	if err != nil {
		t.Fatal(err)
	}
	if want := "struct<id: long, tree: map<string, array<struct<a: long, b: string>>>, new: date>"; got.String() != want {
		t.Errorf("%s, want %s", got, want)
	}
	again, err := Evolve(got, old) // an instance that knows less changes nothing
	if err != nil || again != got {
		t.Errorf("an older schema gives %s, %v", again, err)
	}
}

func TestEvolveKeepsForeignMetadata(t *testing.T) {
	old, err := ParseSchema(oddSchema)
	if err != nil {
		t.Fatal(err)
	}
	wanted := structs(Field{Name: "a", Type: Long, Nullable: true, Metadata: FieldMetadata{}.With("comment", "ours")}, field("extra", Long))
	got, err := Evolve(old, wanted)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := got.MarshalJSON()
	want := strings.Replace(oddSchema, `"c \u003c<\""`, `"ours"`, 1)
	want = strings.Replace(want, `],"top":null`, `,{"name":"extra","type":"long","nullable":true,"metadata":{}}],"top":null`, 1)
	if string(raw) != want {
		t.Errorf("evolved:\n%s\nwant\n%s", raw, want)
	}
}

func TestEvolveRefuses(t *testing.T) {
	notNull := func(f Field) Field { f.Nullable = false; return f }
	for _, c := range []struct {
		old, wanted *StructType
		path, says  string
	}{
		{structs(field("a", Integer)), structs(field("a", Long)), "a", "the table says integer, the stream says long"},
		{structs(field("a", structs(field("b", Date)))), structs(field("a", structs(field("b", Timestamp)))), "a.b", "date"},
		{structs(field("a", Decimal(10, 2))), structs(field("a", Decimal(12, 2))), "a", "decimal(12,2)"},
		{structs(field("a", Long)), structs(field("A", Long)), "A", "only in case"},
		{structs(field("a", Long)), structs(field("a", Long), notNull(field("b", Long))), "b", "must be nullable"},
		{structs(notNull(field("a", Long))), structs(field("a", Long)), "a", "NOT NULL"},
		{structs(notNull(field("a", Long)), field("b", Long)), structs(field("b", Long)), "a", "doesn't have the column"},
		{structs(field("a", &ArrayType{Element: Long})), structs(field("a", &ArrayType{Element: Long, ContainsNull: true})), "a.element", "null elements"},
		{structs(field("a", &MapType{Key: String, Value: Long})), structs(field("a", &MapType{Key: String, Value: Long, ValueContainsNull: true})), "a.value", "null values"},
		{structs(field("a", &MapType{Key: String, Value: Long})), structs(field("a", &MapType{Key: Long, Value: Long})), "a.key", "string"},
		{structs(field("a", &ArrayType{Element: Long})), structs(field("a", Long)), "a", "array<long>"},
	} {
		_, err := Evolve(c.old, c.wanted)
		var change *SchemaChangeError
		if !errors.As(err, &change) || change.Path != c.path || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s to %s: %v", c.old, c.wanted, err)
		}
	}
	if s, err := Evolve(structs(field("a", Long)), structs(notNull(field("a", Long)))); err != nil || !s.Fields[0].Nullable {
		t.Errorf("a stricter stream: %s, %v", s, err)
	}
}

func TestMetadataKeepsWhatItDoesNotKnow(t *testing.T) {
	line := `{"metaData":{"id":"x","name":"","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\", \"fields\":[]}","partitionColumns":[],"configuration":{"b":"2","a":"1"},"createdTime":5,"future":{"k": [1.50]}}}`
	a, err := readAction([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := a.metadata.marshal()
	want := strings.Replace(line, `{"b":"2","a":"1"}`, `{"a":"1","b":"2"}`, 1)
	if err != nil || `{"metaData":`+string(raw)+`}` != want {
		t.Errorf("%s, %v", raw, err)
	}
	if raw, _ := a.metadata.WithSchema(plain()).marshal(); !strings.Contains(string(raw), `\"name\":\"id\"`) {
		t.Errorf("another schema isn't written: %s", raw)
	}
	changed := a.metadata.Clone()
	changed.Schema = plain()
	if raw, _ := changed.marshal(); !strings.Contains(string(raw), `\"name\":\"id\"`) {
		t.Errorf("a schema set by hand isn't written: %s", raw)
	}
}
