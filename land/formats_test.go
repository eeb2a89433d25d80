package land

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tributary-io/tributary/internal/verify"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/columns/wire"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
)

const formatted = `{"type":"record","name":"Order","doc":"an order","fields":[{"name":"id","type":"long","doc":"its number"},{"name":"note","type":["null","string"],"default":null},
 {"name":"seen","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},{"name":"customer","type":["null",{"type":"record","name":"Customer","fields":[{"name":"zip","type":"string"}]}]}]}`

func formatStream(t *testing.T, topic string, format Format) Stream {
	t.Helper()
	s, err := Of(schemas.Stream{Topic: topic, Schema: formatted, Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	s.Format = format
	return s
}

// TestJSONTopics lands documents with and without a schema id; what doesn't fit goes to the dead letters with its reason.
func TestJSONTopics(t *testing.T) {
	w := newWorld(t, nil, "")
	s := formatStream(t, "ods.shop.json", JSON)
	w.cfg.Streams = []Stream{s}
	w.start(t)
	w.emit(t, s.Topic, []byte(`{"id":1,"note":"a","seen":"2024-01-02T03:04:05.678Z","more":true}`), []byte("\x00\x00\x00\x00\x09"+`{"customer":{"zip":"z"},"id":2}`),
		[]byte(`{"id":"x"}`), []byte(`{"note":"no id"}`), []byte(`not JSON`), []byte(`{"id":3}`))
	w.checkFormatted(t, &s, map[string]string{"field id": `"x" is not a long`, "missing": "no default", "document": "not a JSON document"})
}

// TestProtobufTopics lands messages by the registry's schema, which imports another one, with the schema's id in front and in a header.
func TestProtobufTopics(t *testing.T) {
	w := newWorld(t, nil, "")
	s := formatStream(t, "ods.shop.proto", Protobuf)
	w.cfg.Streams = []Stream{s}
	a, err := newAdmin(w.cfg.Registry)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := a.client.CreateSchema(ctx, "customer", sr.Schema{Type: sr.TypeProtobuf, Schema: `syntax = "proto3"; message Customer { string zip = 1; }`}); err != nil {
		t.Fatal(err)
	}
	got, err := a.client.CreateSchema(ctx, serde.Subject(s.Topic, false), sr.Schema{Type: sr.TypeProtobuf, References: []sr.SchemaReference{{Name: "customer.proto", Subject: "customer", Version: 1}},
		Schema: `syntax = "proto3"; import "customer.proto"; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; optional string note = 2; google.protobuf.Timestamp seen = 3; Customer customer = 4; }`})
	if err != nil {
		t.Fatal(err)
	}
	w.start(t)
	frame := append(serde.AppendFrame(nil, int32(got.ID)), 0)
	message := func(fields ...byte) []byte { return append(append([]byte{}, frame...), fields...) }
	seen := append([]byte{0x1a, 12, 0x08}, binary.AppendUvarint(nil, 1704164645)...)
	seen = append(append(seen, 0x10), binary.AppendUvarint(nil, 678000000)...)
	w.emit(t, s.Topic, message(append([]byte{0x08, 1, 0x12, 1, 'a'}, seen...)...), message(0x08, 2, 0x22, 3, 0x0a, 1, 'z'), message(0xff), append(serde.AppendFrame(nil, 99), 0), []byte("x"))
	r := &kgo.Record{Topic: s.Topic, Partition: 1, Value: []byte{0x08, 3}, Headers: []kgo.RecordHeader{{Key: wire.Header, Value: frame}}}
	if err := w.client.ProduceSync(ctx, r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.checkFormatted(t, &s, map[string]string{"damaged": "not a message Order", "unknown": "no such schema", "no frame": "0x78"})
}

// checkFormatted waits for the rows 1, 2 and 3 and for a dead letter for each reason.
func (w *world) checkFormatted(t *testing.T, s *Stream, reasons map[string]string) {
	t.Helper()
	eventually(t, "landed "+s.Topic, func() bool { return len(w.rows(t, s)) == 3 })
	byID := map[any]lake.Row{}
	for _, row := range w.rows(t, s) {
		byID[row["id"]] = row
	}
	one, two, three := byID[int64(1)], byID[int64(2)], byID[int64(3)]
	if one["note"] != "a" || one["seen"] != time.UnixMilli(1704164645678).UTC() || one["customer"] != nil {
		t.Errorf("row 1 is %v", one)
	}
	if fmt.Sprint(two["customer"]) != "map[zip:z]" || two["note"] != nil || two["seen"] != nil || three["id"] != int64(3) || three["customer"] != nil {
		t.Errorf("rows 2 and 3 are %v, %v", two, three)
	}
	info, err := lake.Show(t.Context(), w.cfg.TablePlace(s), 0)
	if err != nil || info.Description != "an order" || info.Columns[0].Comment != "its number" {
		t.Errorf("%+v, %v", info, err)
	}
	for name, reason := range reasons {
		eventually(t, "a dead letter for "+name, func() bool { return w.hasDeadLetter(t, s, reason) })
	}
}

func (w *world) hasDeadLetter(t *testing.T, s *Stream, reason string) bool {
	t.Helper()
	for r, err := range verify.Committed(t.Context(), []kgo.Opt{kgo.SeedBrokers(w.cfg.Brokers...)}, s.DeadLetters) {
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range r.Headers {
			if strings.Contains(string(h.Value), reason) {
				return true
			}
		}
	}
	return false
}

// TestReferencedAndGUIDSchemas has producers write Avro with a schema that refers to another, and name it by a GUID in a header.
func TestReferencedAndGUIDSchemas(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		refs := `,"references":[{"name":"x.Customer","subject":"customer","version":2}]`
		main, err := json.Marshal(`{"type":"record","name":"x.Order","fields":[{"name":"id","type":"long"},{"name":"customer","type":"x.Customer"}]}`)
		if err != nil {
			t.Error(err)
		}
		switch r.URL.Path {
		case "/schemas/ids/7", "/schemas/guids/00000000-0000-0000-0000-000000000007":
			fmt.Fprintf(w, `{"schema":%s%s}`, main, refs)
		case "/subjects/customer/versions/2":
			io.WriteString(w, `{"subject":"customer","version":2,"id":3,"schema":"{\"type\":\"record\",\"name\":\"x.Customer\",\"fields\":[{\"name\":\"zip\",\"type\":\"string\"}]}"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"error_code":40403,"message":"Schema not found"}`)
		}
	}))
	defer server.Close()
	reg, err := serde.NewRegistry(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	source := &writers{"t", newLookups(t.Context(), reg, newOutage(time.Now))}
	byID, err := source.SchemaByID(7)
	if err != nil || len(byID.References) != 1 || !strings.Contains(byID.References[0], "x.Customer") {
		t.Fatalf("by id: %+v, %v", byID, err)
	}
	byGUID, err := source.SchemaByGUID([16]byte{15: 7})
	if err != nil || byGUID.Schema != byID.Schema || len(byGUID.References) != 1 {
		t.Errorf("by GUID: %+v, %v", byGUID, err)
	}
	if _, err := source.SchemaByGUID([16]byte{15: 8}); err == nil || !strings.Contains(err.Error(), lake.ErrUnknownSchema.Error()) {
		t.Errorf("an unknown GUID: %v", err)
	}
	if _, err := source.protobuf(lake.SchemaKey{ID: 7}); err == nil || !strings.Contains(err.Error(), "of type AVRO") {
		t.Errorf("an Avro schema for Protobuf: %v", err)
	}
}

// TestRegistryAway takes the registry away while records come: they wait and are no dead letters, readiness says so, and they land when it is
// back. One that stays away longer than the patience ends the instance with an error, and a new one lands everything.
func TestRegistryAway(t *testing.T) {
	w := newWorld(t, nil, "")
	var away atomic.Bool
	registry := w.cfg.Registry
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		req, err := http.NewRequestWithContext(r.Context(), r.Method, registry+r.URL.RequestURI(), r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header = r.Header
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		rw.Header().Set("Content-Type", res.Header.Get("Content-Type"))
		rw.WriteHeader(res.StatusCode)
		io.Copy(rw, res.Body)
	}))
	defer proxy.Close()
	defer http.DefaultClient.CloseIdleConnections()
	w.cfg.Registry = proxy.URL
	s := testStream(t, "ods.shop.away", small)
	w.cfg.Streams = []Stream{s}
	sink, stop := w.start(t)
	ask := asking(t, sink.Handler())
	eventually(t, "ready", func() bool { code, _ := ask("/readyz"); return code == http.StatusOK })
	id := w.id(t, &s)
	away.Store(true)
	w.emit(t, s.Topic, smallValue(id, 1), smallValue(id, 2))
	eventually(t, "not ready", func() bool {
		code, text := ask("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "wait for the schema registry")
	})
	if _, text := ask("/metrics"); !strings.Contains(text, "tributary_stream_registry_waiting_seconds") || strings.Contains(text, "tributary_stream_registry_waiting_seconds 0\n") {
		t.Errorf("the metric doesn't say that records wait")
	}
	if code, _ := ask("/healthz"); code != http.StatusOK {
		t.Errorf("healthz is %d", code)
	}
	away.Store(false)
	eventually(t, "landed", func() bool { return len(w.rows(t, &s)) == 2 })
	eventually(t, "ready again", func() bool { code, _ := ask("/readyz"); return code == http.StatusOK })
	stop()

	w.cfg.Patience = 300 * time.Millisecond
	impatient, err := Open(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	w.emit(t, s.Topic, smallValue(id, 3))
	if err := impatient.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "wait for the schema registry") {
		t.Errorf("after its patience an instance ends with %v", err)
	}
	impatient.Close()
	away.Store(false)
	w.start(t)
	eventually(t, "landed all", func() bool { return len(w.rows(t, &s)) == 3 })
	if w.hasDeadLetter(t, &s, "") {
		t.Error("a record went to the dead letters because the registry was away")
	}
}

// TestOneStreamWaits has the registry give no answer about one stream's schema: the other one lands, the instance is ready and says who waits and
// why, and when there is an answer everything lands, once, without a dead letter.
func TestOneStreamWaits(t *testing.T) {
	w := newWorld(t, nil, "")
	ill, well := testStream(t, "ods.shop.ill", small), testStream(t, "ods.shop.well", strings.ReplaceAll(small, "Small", "Well"))
	w.cfg.Streams, w.cfg.Observe = []Stream{ill, well}, 100*time.Millisecond
	var away atomic.Value // path that the registry doesn't answer
	away.Store("")
	target, err := url.Parse(w.cfg.Registry)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.Transport = &http.Transport{DisableKeepAlives: true}
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == away.Load() {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		pass.ServeHTTP(rw, r)
	}))
	defer proxy.Close()
	w.cfg.Registry = proxy.URL
	sink, _ := w.start(t)
	ask := asking(t, sink.Handler())
	defer http.DefaultClient.CloseIdleConnections()
	illID, wellID := w.id(t, &ill), w.id(t, &well)
	away.Store(fmt.Sprint("/schemas/ids/", illID))
	w.emit(t, ill.Topic, smallValue(illID, 1), smallValue(illID, 2), smallValue(illID, 3))
	w.emit(t, well.Topic, smallValue(wellID, 1), smallValue(wellID, 2))
	eventually(t, "the other stream landed", func() bool { return len(w.rows(t, &well)) == 2 })
	var code int
	var text string
	defer func() {
		if t.Failed() {
			t.Logf("/readyz answered %d: %s", code, text)
		}
	}()
	eventually(t, "the instance says who waits, and is ready", func() bool {
		code, text = ask("/readyz")
		return code == http.StatusOK && strings.Contains(text, "1 of 2 streams wait") && strings.Contains(text, ill.Topic+": records wait for the schema registry since") && strings.Contains(text, fmt.Sprintf("schema id %d: ", illID))
	})
	if _, text := ask("/metrics"); !strings.Contains(text, fmt.Sprintf(`tributary_stream_waiting_seconds{topic=%q}`, ill.Topic)) || strings.Contains(text, fmt.Sprintf(`tributary_stream_waiting_seconds{topic=%q}`, well.Topic)) {
		t.Error("the metrics don't say who waits")
	}
	eventually(t, "the observer says who waits", func() bool {
		_, text := ask("/streams")
		return strings.Count(text, `"waits_for"`) == 1
	})
	w.emit(t, well.Topic, smallValue(wellID, 3))
	eventually(t, "the other stream goes on", func() bool { return len(w.rows(t, &well)) == 3 })
	if n := len(w.rows(t, &ill)); n != 0 {
		t.Errorf("%d rows of the stream that waits have landed", n)
	}
	away.Store("")
	eventually(t, "landed", func() bool { return len(w.rows(t, &ill)) == 3 })
	eventually(t, "nobody waits", func() bool { _, text := ask("/readyz"); return !strings.Contains(text, "wait") })
	for _, s := range []*Stream{&ill, &well} {
		if w.hasDeadLetter(t, s, "") {
			t.Errorf("%s has a dead letter", s.Topic)
		}
	}
	eventually(t, "one engine counts all rows", func() bool { s := sink.Stats(); return s.Lake[0].Rows+s.Lake[1].Rows == 6 })
}

// TestNotices gives a notice of what is new, at its pace, once over a restart, and again where the URL didn't take it.
func TestNotices(t *testing.T) {
	w := newWorld(t, nil, "")
	var got []Notice
	fail := true
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if fail {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		var n Notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		got = append(got, n)
	}))
	defer server.Close()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	w.cfg.Clock = func() time.Time { return now }
	w.cfg.NoticeURL = server.URL
	status := func(landed int64) []StreamStatus {
		return []StreamStatus{{Topic: "a", Table: "raw/a", TableVersion: landed, Partitions: []PartitionStatus{{Landed: landed}}},
			{Topic: "idle", TableVersion: -1}, {Topic: "broken", TableVersion: 3, Error: "x", Partitions: []PartitionStatus{{Landed: 9}}}}
	}
	n := newNotifier(&w.cfg)
	tell := func(landed int64) error { return n.tell(t.Context(), status(landed)) }
	if err := tell(5); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("a URL that fails: %v", err)
	}
	fail = false
	for _, landed := range []int64{5, 5, 7} { // the last one is too early
		if err := tell(landed); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	n = newNotifier(&w.cfg) // after a restart
	if err := tell(7); err != nil || len(got) != 1 {
		t.Fatalf("%d notices, %v", len(got), err)
	}
	now = now.Add(time.Hour)
	if err := tell(7); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if err := tell(7); err != nil { // nothing new
		t.Fatal(err)
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	want := []TableChanged{{"a", "raw/a", 5, 0, 5}, {"a", "raw/a", 7, 5, 7}}
	if len(got) != 2 || len(got[0].Tables) != 1 || got[0].Tables[0] != want[0] || len(got[1].Tables) != 1 || got[1].Tables[0] != want[1] || got[1].Group != "ods-sink" {
		t.Errorf("notices are %+v", got)
	}
	rows := 0
	for row, err := range lake.ReadRows(t.Context(), w.cfg.place(NoticeTable)) {
		if err != nil {
			t.Fatal(err)
		}
		if rows++; row["topic"] != "a" {
			t.Errorf("row %v", row)
		}
	}
	if rows != 2 {
		t.Errorf("%d rows in the table of notices", rows)
	}
}

// asking serves a handler until the test ends, and gives what asks it for a path: its status and its text.
func asking(t *testing.T, h http.Handler) func(path string) (int, string) {
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return func(path string) (int, string) {
		res, err := http.Get(web.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("a browser may guess what the answer of %s is", path)
		}
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
}
