package land

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tributary-io/tributary/schemas"
)

func TestTableOf(t *testing.T) {
	for topic, want := range map[string]string{
		"ods.demo.order_events": "raw/demo__order_events", "ods.shop.orders.eu": "raw/shop__orders_eu", "shop.orders": "raw/shop__orders",
		"ods.web-shop.cart-items": "raw/web_shop__cart_items", "orders": "", "ods.orders": "", "ods..x": "", "a.": "",
	} {
		got, err := TableOf(topic)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s lands in %q (%v), want %q", topic, got, err, want)
		}
	}
}

// write makes files in a folder and returns the path of the first one.
func write(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, files[0])
}

func TestLoad(t *testing.T) {
	c, err := Load(write(t, "streams.yaml", `
brokers: [a:1, b:2]
registry: http://r
lake: /lake
batch: {seconds: 5, rows: 10}
memory_bytes: 1000
observe_seconds: 60
optimize_seconds: 3600
declarations: declared
streams:
  - topic: ods.shop.orders
    schema: small.avsc
    owner: me
    domain: shop
    sensitivity: internal
    compatibility: FULL
    bad_rows: stop
    retention: 24h
`, "small.avsc", small, "declared/ods.demo.customers.yaml", readFile(t, "../schemas/ods.demo.customers.yaml"),
		"declared/ods.demo.customers.avsc", readFile(t, "../schemas/ods.demo.customers.avsc")))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ODS_SINK_BROKERS": "ignored:1", "ODS_SINK_BATCH_BYTES": "77", "ODS_SINK_GROUP": "g", "ODS_SINK_OPTIMIZE_SECONDS": "1", "ODS_SINK_VACUUM_SECONDS": "86400"}
	if err := c.Environment(func(k string) string { return env[k] }); err != nil {
		t.Fatal(err)
	}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	if len(c.Brokers) != 2 || c.Group != "g" || c.Observe != time.Minute || c.Optimize != time.Hour || c.Vacuum != 24*time.Hour || c.Batch != (BatchLimits{5 * time.Second, 10, 77, 1000}) {
		t.Errorf("configuration %+v", c)
	}
	if len(c.Streams) != 2 || c.Streams[0].Topic != "ods.demo.customers" || c.Streams[0].Table != "raw/demo__customers" {
		t.Fatalf("streams %+v", c.Streams)
	}
	s := c.Streams[1]
	if s.Table != "raw/shop__orders" || s.Compatibility != sr.CompatFull || !s.StopOnBadRows || s.Partitions != DefaultPartitions ||
		s.TopicConfig()["message.timestamp.type"] != "LogAppendTime" || s.TopicConfig()["retention.ms"] != "86400000" || s.DeadLetters != "ods.shop.orders.dead_letters" {
		t.Errorf("stream %+v", s)
	}
	if got := c.TablePlace(&s); got != "/lake/raw/shop__orders" {
		t.Errorf("place %s", got)
	}
	c.Lake = "s3://bucket/x?region=eu"
	if got := c.TablePlace(&s); got != "s3://bucket/x/raw/shop__orders?region=eu" {
		t.Errorf("place %s", got)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMistakesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"streams: [{topic: ods.a.b, schema: s.avsc, owner: me, domain: d}]":                                           "missing: sensitivity",
		"streams: [{topic: ods.a.b, schema: none.avsc, owner: me, domain: d, sensitivity: public}]":                   "none.avsc",
		"streams: [{topic: b, schema: s.avsc, owner: me, domain: d, sensitivity: public}]":                            "source and entity",
		"streams: [{topic: a.b, schema: s.avsc, owner: me, domain: d, sensitivity: public, bad_rows: x}]":             "bad_rows",
		"streams: [{topic: a.b, schema: s.avsc, owner: me, domain: d, sensitivity: public, compatibility: SIDEWAYS}]": "compatibility",
		"stream: []":         `line 1: unknown key "stream"`,
		"declarations: none": "none",
		"streams: [{topic: a.b, retention: week}]":    `"week" is no length of time: write it like 168h or 7d`,
		"streams: [{topic: a.b, retention: 200000d}]": `"200000d" is no length of time: write it like 168h or 7d`,
		"streams: [{topic: a.b, retention: -3d}]":     `"-3d" is no length of time: write it like 168h or 7d`,
		"streams: [{topic: a.b, partitions: three}]":  "`three` can't stand here: a value of type int32 is needed",
	} {
		if _, err := Load(write(t, "c.yaml", text, "s.avsc", small)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestBrokersAndSpansAsPeopleWriteThem reads brokers as one text, and a retention in days.
func TestBrokersAndSpansAsPeopleWriteThem(t *testing.T) {
	c, err := Load(write(t, "c.yaml", `
brokers: one:9092,two:9092
streams: [{topic: a.b, schema: s.avsc, owner: me, domain: d, sensitivity: public, retention: 7d}]
`, "s.avsc", small))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Brokers) != 2 || c.Brokers[1] != "two:9092" || c.Streams[0].Retention != 7*24*time.Hour {
		t.Errorf("brokers %q, retention %v", c.Brokers, c.Streams[0].Retention)
	}
}

func TestCheckNamesAllMistakes(t *testing.T) {
	a, err := Of(schemas.Stream{Topic: "ods.a.b", Schema: small, Sensitivity: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	b := a
	b.Topic = "a.b"
	c := Config{Streams: []Stream{a, b, a}}
	err = c.check()
	for _, want := range []string{"ODS_SINK_BROKERS", "ODS_SINK_REGISTRY", "ODS_SINK_LAKE", "the same table raw/a__b", "declared twice", `"secret"`, "above zero"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	err = c.Environment(func(k string) string {
		return map[string]string{"ODS_SINK_BATCH_SECONDS": "soon", "ODS_SINK_BATCH_ROWS": "-1"}[k]
	})
	if err == nil || !strings.Contains(err.Error(), "BATCH_SECONDS") || !strings.Contains(err.Error(), "BATCH_ROWS") {
		t.Errorf("environment: %v", err)
	}
}
