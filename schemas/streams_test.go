package schemas_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"

	"github.com/tributary-io/tributary/schemas"
)

func TestShippedStreams(t *testing.T) {
	var topics []string
	for _, s := range schemas.Streams() {
		topics = append(topics, s.Topic)
		if _, err := avro.Parse(s.Schema); err != nil {
			t.Errorf("%s: %v", s.Value.Schema, err)
		}
	}
	if d := cmp.Diff([]string{"ods.demo.customers", "ods.demo.order_events"}, topics); d != "" {
		t.Error(d)
	}
}

func TestTopicConfig(t *testing.T) {
	want := map[string]string{"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime", "retention.ms": "604800000"}
	if d := cmp.Diff(want, schemas.MustStream("ods.demo.order_events").TopicConfig()); d != "" {
		t.Error(d)
	}
	want = map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
	if d := cmp.Diff(want, schemas.MustStream("ods.demo.customers").TopicConfig()); d != "" {
		t.Error(d)
	}
}

const goodYAML = `topic: t
description: d
domain: d
owner: o
sensitivity: confidential
key: {format: string, field: id}
value: {format: avro, schema: t.avsc}
partitions: 1
cleanup: delete
retention: 1h
timestamps: create
`

const goodSchema = `{"type":"record","name":"R","doc":"d","fields":[
	{"name":"id","type":"string","doc":"d","ods.sensitivity":"internal","ods.pii":false,"ods.key":true},
	{"name":"who","type":"string","doc":"d","ods.sensitivity":"confidential","ods.pii":true}]}`

func TestLoadNamesEveryMistake(t *testing.T) {
	load := func(yaml, schema string) error {
		_, err := schemas.Load(fstest.MapFS{"t.yaml": {Data: []byte(yaml)}, "t.avsc": {Data: []byte(schema)}})
		return err
	}
	if err := load(goodYAML, goodSchema); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	replace := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%q isn't in the good one", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for _, c := range []struct{ old, new, want string }{
		{"topic: t", "topic: u", `topic is "u", but the file's name says "t"`},
		{"topic: t", "topic: a b", "isn't a name that Kafka takes"},
		{"owner: o", "owner: ''", "owner is missing"},
		{"domain: d\n", "", "domain is missing"},
		{"confidential", "secret", `sensitivity is "secret"`},
		{"confidential", "internal", "field who is confidential, but the stream is declared internal only"},
		{"format: string", "format: int", `key.format is "int"`},
		{"field: id", "field: who", `field id is marked ods.key, but key.field is "who"`},
		{"avro", "json", `value.format is "json"`},
		{"t.avsc", "u.avsc", "value.schema: open u.avsc"},
		{"partitions: 1", "partitions: 0", "partitions is 0"},
		{"cleanup: delete", "cleanup: never", `cleanup is "never"`},
		{"cleanup: delete", "cleanup: compact", "doesn't go with cleanup compact"},
		{"timestamps: create", "timestamps: mine", `timestamps is "mine"`},
		{"timestamps: create", "timestamps: create\ndead_letters: t", "isn't the name of another topic"},
		{"timestamps: create", "timestamps: create\nretentoin: 1h", "field retentoin not found"},
	} {
		err := load(replace(goodYAML, c.old, c.new), goodSchema)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q instead of %q: error %v, want %q", c.new, c.old, err, c.want)
		}
	}
	for _, c := range []struct{ old, new, want string }{
		{`"doc":"d",`, "", "no record with a doc"},
		{`"doc":"d","ods`, `"ods`, "field id has no doc"},
		{`"ods.pii":false,`, "", "field id doesn't say whether it is about a person"},
		{`"confidential","ods.pii":true`, `"internal","ods.pii":true`, "field who is about a person (ods.pii), but only internal"},
		{`"internal"`, `"inner"`, `field id: ods.sensitivity is "inner"`},
		{`,"ods.key":true`, "", "0 fields are marked ods.key"},
		{`{"type"`, `"type"`, "invalid character"},
	} {
		err := load(goodYAML, replace(goodSchema, c.old, c.new))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q instead of %q: error %v, want %q", c.new, c.old, err, c.want)
		}
	}
}

func TestLoadReportsAllFiles(t *testing.T) {
	_, err := schemas.Load(fstest.MapFS{"a.yaml": {Data: nil}, "b.yaml": {Data: []byte("topic: [")}})
	if err == nil || !strings.Contains(err.Error(), "a.yaml") || !strings.Contains(err.Error(), "b.yaml") {
		t.Errorf("error %v", err)
	}
}

func TestMustStreamPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for a stream that isn't declared")
		}
	}()
	schemas.MustStream("ods.demo.nothing")
}
