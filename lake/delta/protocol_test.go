package delta

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

// foreignLog writes version 0 of a table as another engine might.
func foreignLog(t *testing.T, protocol, schema string, config map[string]string) object.Store {
	t.Helper()
	store := object.NewMemory("foreign")
	properties, _ := json.Marshal(config)
	schemaString, _ := json.Marshal(schema)
	log := fmt.Sprintf(`{"protocol":%s}`+"\n"+`{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":%s,"partitionColumns":[],"configuration":%s}}`+"\n",
		protocol, schemaString, properties)
	if err := store.Put(t.Context(), commitName(0), []byte(log)); err != nil {
		t.Fatal(err)
	}
	return store
}

func oneColumn(typ, metadata string) string {
	return fmt.Sprintf(`{"type":"struct","fields":[{"name":"a","type":%q,"nullable":true,"metadata":{%s}}]}`, typ, metadata)
}

// TestWriteRefusals: what this package can't honour is refused by name, and nothing else.
func TestWriteRefusals(t *testing.T) {
	features := func(reader, writer string) string {
		if reader == "" {
			return `{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":[` + writer + `]}`
		}
		return `{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[` + reader + `],"writerFeatures":[` + writer + `]}`
	}
	legacy := func(writer int) string { return fmt.Sprintf(`{"minReaderVersion":1,"minWriterVersion":%d}`, writer) }
	check := map[string]string{"delta.constraints.positive": "a > 0"}
	for _, c := range []struct {
		protocol, typ, metadata string
		config                  map[string]string
		want                    string // in the error; "" for none
	}{
		{legacy(1), "long", "", nil, ""},
		{legacy(2), "long", `"comment":"x"`, nil, ""},
		{legacy(6), "long", "", map[string]string{"delta.enableChangeDataFeed": "true"}, ""},
		{legacy(8), "long", "", nil, "writer version 8"},
		{features("", `"appendOnly","invariants","domainMetadata","inCommitTimestamp"`), "long", "", nil, ""},
		{features(`"timestampNtz","v2Checkpoint","vacuumProtocolCheck"`, `"timestampNtz","v2Checkpoint","vacuumProtocolCheck"`), "timestamp_ntz", "", nil, ""},
		{features("", `"rowTracking","futureThing"`), "long", "", nil, "table feature rowTracking, table feature futureThing"},
		{features(`"deletionVectors"`, `"deletionVectors"`), "long", "", nil, ""},
		{features("", `"clustering"`), "long", "", nil, "clustering"},
		{features("", `"checkConstraints"`), "long", "", nil, ""},
		{features("", `"checkConstraints"`), "long", "", check, "CHECK constraint positive (a > 0)"},
		{legacy(3), "long", "", check, "CHECK constraint positive"},
		{legacy(2), "long", `"delta.invariants":"{}"`, nil, "invariant on column a"},
		{legacy(4), "long", `"delta.generationExpression":"b + 1"`, nil, "generated column a (b + 1)"},
		{legacy(2), "long", `"delta.generationExpression":"b + 1"`, nil, ""}, // not enforced there
		{features("", `"generatedColumns"`), "long", `"delta.generationExpression":"b + 1"`, nil, "generated column a"},
		{legacy(6), "long", `"delta.identity.start":1`, nil, "identity column a"},
		{features("", `"allowColumnDefaults"`), "long", `"CURRENT_DEFAULT":"5"`, nil, "default of column a (5)"},
		{`{"minReaderVersion":2,"minWriterVersion":5}`, "long", "", map[string]string{"delta.columnMapping.mode": "name"}, ""},
		{`{"minReaderVersion":2,"minWriterVersion":5}`, "long", "", map[string]string{"delta.columnMapping.mode": "none"}, ""},
		{features(`"variantType"`, `"variantType"`), "variant", "", nil, "type variant of column a"},
		{features(`"typeWidening"`, `"typeWidening"`), "long", `"delta.typeChanges":[{"fromType":"short","toType":"long"}]`, nil, ""},
		{features("", `"icebergCompatV1","icebergCompatV2"`), "long", "", nil, "table feature icebergCompatV1, table feature icebergCompatV2"},
		{features("", `"checkpointProtection"`), "long", "", nil, "table feature checkpointProtection"},
		{features(`"materializePartitionColumns"`, `"materializePartitionColumns"`), "long", "", nil, "table feature materializePartitionColumns"},
		{legacy(2), "void", "", nil, ""}, // its files are another matter
	} {
		table, err := Open(t.Context(), foreignLog(t, c.protocol, oneColumn(c.typ, c.metadata), c.config), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.protocol, err)
			continue
		}
		_, commitErr := table.Commit(t.Context(), Commit{Moves: []Move{move("a", -1, 1)}})
		for _, err := range []error{table.Head().CheckWrite(), commitErr} {
			var unsupported *UnsupportedError
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &unsupported) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s %s %v: %v, want %q", c.protocol, c.metadata, c.config, err, c.want)
			}
		}
	}
}

func TestReadRefusals(t *testing.T) {
	all := func(features string) string {
		return `{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[` + features + `],"writerFeatures":[` + features + `]}`
	}
	mode := func(mode string) map[string]string { return map[string]string{"delta.columnMapping.mode": mode} }
	for _, c := range []struct {
		protocol, metadata string
		config             map[string]string
		want               string // in the error; "" for none
	}{
		{`{"minReaderVersion":4,"minWriterVersion":7}`, "", nil, "reader version 4"},
		{all(`"catalogManaged","deletionVectors"`), "", nil, "table feature catalogManaged"},
		{all(`"catalogOwned-preview"`), "", nil, "table feature catalogOwned-preview"},
		{all(`"futureThing"`), "", nil, "table feature futureThing"},
		{`{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["futureThing","rowTracking","clustering","icebergCompatV2"]}`, "", nil, ""}, // of writers only
		{`{"minReaderVersion":1,"minWriterVersion":2}`, "", mode("name"), "column mapping mode name, which is unknown or not in its protocol"},
		{`{"minReaderVersion":2,"minWriterVersion":5}`, "", mode("other"), "column mapping mode other"},
		{all(`"deletionVectors"`), "", mode("id"), "column mapping mode id"},
		{all(`"columnMapping"`), "", mode("ID"), ""},
		{`{"minReaderVersion":1,"minWriterVersion":2}`, "", mode("none"), ""},
		{all(`"typeWidening"`), `"delta.typeChanges":[{"fromType":"integer","toType":"long"},{"fromType":"long","toType":"string"}]`, nil, "type widening of column a from long to string"},
		{all(`"typeWidening-preview"`), `"delta.typeChanges":[{"fromType":"byte","toType":"decimal(4,1)"}]`, nil, ""},
		{all(`"typeWidening"`), `"delta.typeChanges":"x"`, nil, "type widening of column a by a change that can't be read"},
		{all(`"deletionVectors"`), `"delta.typeChanges":[{"fromType":"long","toType":"string"}]`, nil, ""}, // not in its protocol: it means nothing
	} {
		_, err := Open(t.Context(), foreignLog(t, c.protocol, oneColumn("long", c.metadata), c.config), Options{})
		var unsupported *UnsupportedError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %s %v: %v", c.protocol, c.metadata, c.config, err)
		case c.want != "" && (!errors.As(err, &unsupported) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "deletionVectors")):
			t.Errorf("%s %s %v: %v, want %q", c.protocol, c.metadata, c.config, err, c.want)
		}
	}
}

// TestFilesOfVoid adds a data file to tables in which it would have to hold nothing.
func TestFilesOfVoid(t *testing.T) {
	for column, want := range map[string]string{
		`{"name":"l","type":{"type":"array","elementType":"void","containsNull":true},"nullable":true,"metadata":{}},{"name":"a","type":"long","nullable":true,"metadata":{}}`: "type void in column l.element",
		`{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"void","containsNull":true},"valueContainsNull":true},"nullable":true,` +
			`"metadata":{}}`: "type void in column m.value.element",
		`{"name":"s","type":{"type":"struct","fields":[{"name":"v","type":"void","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}}`: "nothing but type void in column s",
		`{"name":"v","type":"void","nullable":true,"metadata":{}}`:                                                                                "all columns are of type void",
		`{"name":"v","type":"void","nullable":true,"metadata":{}},{"name":"a","type":"long","nullable":true,"metadata":{}}`:                       "",
	} {
		store := foreignLog(t, `{"minReaderVersion":1,"minWriterVersion":2}`, `{"type":"struct","fields":[`+column+`]}`, nil)
		_, err := mustOpen(t, store, Options{}).Commit(t.Context(), Commit{Add: []Add{mustFile(t, store, 3)}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", column, err, want)
		}
	}
}

// TestProtocolChangesUnderAWriter: a feature that appears while a commit is on its way ends it.
func TestProtocolChangesUnderAWriter(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{}, Options{})
	upgrade := `{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["rowTracking"]}}` + "\n"
	if err := store.PutIfAbsent(t.Context(), commitName(1), []byte(upgrade)); err != nil {
		t.Fatal(err)
	}
	var unsupported *UnsupportedError
	if _, err := table.Commit(t.Context(), Commit{Moves: []Move{move("a", -1, 1)}}); !errors.As(err, &unsupported) {
		t.Errorf("commit under an unknown feature: %v", err)
	}
	if _, err := store.Get(t.Context(), commitName(2)); !errors.Is(err, object.ErrNotFound) {
		t.Errorf("something landed: %v", err)
	}
}

func TestProtocolOfNewTables(t *testing.T) {
	notNull := structs(Field{Name: "a", Type: Long}, field("at", TimestampNTZ))
	for _, c := range []struct {
		schema *StructType
		config map[string]string
		want   Protocol
	}{
		{plain(), nil, Protocol{1, 2, nil, nil}},
		{structs(Field{Name: "a", Type: Long}), map[string]string{"delta.appendOnly": "true"}, Protocol{1, 2, nil, nil}},
		{structs(field("a", &ArrayType{Element: TimestampNTZ})), nil, Protocol{3, 7, []string{"timestampNtz"}, []string{"timestampNtz"}}},
		{notNull, map[string]string{"delta.appendOnly": "true"}, Protocol{3, 7, []string{"timestampNtz"}, []string{"appendOnly", "invariants", "timestampNtz"}}},
	} {
		table := mustCreate(t, object.NewMemory("t"), Spec{Schema: c.schema, Configuration: c.config}, Options{})
		got := table.Head().Protocol
		if got.MinReaderVersion != c.want.MinReaderVersion || got.MinWriterVersion != c.want.MinWriterVersion ||
			!slices.Equal(got.ReaderFeatures, c.want.ReaderFeatures) || !slices.Equal(got.WriterFeatures, c.want.WriterFeatures) {
			t.Errorf("%s: %+v, want %+v", c.schema, got, c.want)
		}
		if err := table.Head().CheckWrite(); err != nil {
			t.Errorf("our own table: %v", err)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	two := structs(field("a", Long), field("b", &ArrayType{Element: Long}))
	for want, spec := range map[string]Spec{
		"at least one column":      {Schema: structs()},
		"type void":                {Schema: structs(field("a", Void))},
		"type variant":             {Schema: structs(field("a", &ArrayType{Element: Variant}))},
		"differ only in case":      {Schema: structs(field("x", structs(field("a", Long), field("A", Long))))},
		"must not be empty":        {Schema: structs(field("a;b", Long))},
		"delta.invariants":         {Schema: structs(Field{Name: "a", Type: Long, Metadata: FieldMetadata{}.With("delta.invariants", "x")})},
		"not in the schema":        {Schema: two, PartitionColumns: []string{"c"}},
		"can't partition":          {Schema: two, PartitionColumns: []string{"b"}},
		"named twice":              {Schema: two, PartitionColumns: []string{"a", "a"}},
		"must not be a partition":  {Schema: structs(field("a", Long)), PartitionColumns: []string{"a"}},
		"delta.columnMapping.mode": {Schema: two, Configuration: map[string]string{"delta.columnMapping.mode": "name"}},
	} {
		store := object.NewMemory("t")
		if _, err := Create(t.Context(), store, spec, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if got := names(t, store, ""); got != nil {
			t.Errorf("%s: left %v", want, got)
		}
	}
	store := object.NewMemory("t")
	if _, err := Open(t.Context(), store, Options{}); !errors.Is(err, ErrNoTable) {
		t.Errorf("Open of nothing: %v", err)
	}
	table, created, err := OpenOrCreate(t.Context(), store, Spec{Schema: plain()}, Options{})
	if err != nil || !created || table.Head().Version != 0 {
		t.Errorf("OpenOrCreate: %v, %v", created, err)
	}
	if _, err := Create(t.Context(), store, Spec{Schema: plain()}, Options{}); !errors.Is(err, ErrTableExists) {
		t.Errorf("Create again: %v", err)
	}
	if _, created, err := OpenOrCreate(t.Context(), store, Spec{Schema: two}, Options{}); err != nil || created {
		t.Errorf("OpenOrCreate again: %v, %v", created, err)
	}
}

func TestDamagedLogs(t *testing.T) {
	for name, damage := range map[string]func(object.Store){
		"lacks version 2": func(s object.Store) { _ = s.Delete(t.Context(), commitName(2)) },
		"log entry":       func(s object.Store) { _ = s.Put(t.Context(), commitName(2), []byte(`{"txn":{"appId":"a","ver`)) },
		"without appId":   func(s object.Store) { _ = s.Put(t.Context(), commitName(2), []byte(`{"txn":{"version":1}}`)) },
	} {
		store := object.NewMemory("t")
		table := mustCreate(t, store, Spec{}, Options{})
		for i := range int64(4) {
			mustCommit(t, table, Commit{Moves: []Move{move("a", i-1, i)}})
		}
		damage(store)
		if _, err := Open(t.Context(), store, Options{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProperties(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"interval 30 days": 720 * time.Hour, "interval 1 week 12 hours": 180 * time.Hour, "INTERVAL 5 MINUTES": 5 * time.Minute, "2 days": 48 * time.Hour,
		"interval 1 month": -1, "": -1, "interval": -1, "interval x days": -1, "interval -1 days": -1, "interval 9223372036854775807 days": -1, "interval 5": -1,
	} {
		m := &Metadata{Configuration: map[string]string{"p": text}}
		if got := m.Interval("p", -1); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	m := &Metadata{Configuration: map[string]string{"t": "TRUE", "f": "false", "n": "17", "x": "?"}}
	if !m.Flag("t", false) || m.Flag("f", true) || !m.Flag("x", true) || m.Number("n", 0) != 17 || m.Number("x", 3) != 3 {
		t.Error("flags or numbers are misread")
	}
}
