package delta

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
)

// FuzzAction: no line of a log makes the reader panic, and what it understood survives being written again.
func FuzzAction(f *testing.F) {
	for _, line := range []string{
		`{"commitInfo":{"timestamp":1,"operation":"WRITE","operationParameters":{"a":1,"b":"[]"},"txnId":"x"}}`,
		`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["appendOnly"]}}`,
		`{"add":{"path":"a%20b","partitionValues":{"p":null,"q":""},"size":1,"modificationTime":2,"dataChange":true,"stats":"{}","deletionVector":{"storageType":"u","pathOrInlineDv":"x","offset":1,"sizeInBytes":2,"cardinality":3}}}`,
		`{"remove":{"path":"a","deletionTimestamp":5,"dataChange":false}}`, `{"txn":{"appId":"a","version":-1,"lastUpdated":null}}`, `{"cdc":{"path":"x"}}`,
		`{"domainMetadata":{"domain":"d","configuration":"{}","removed":true}}`, `{"sidecar":{"path":"x"}}`, `null`, `{}`, `{"add":null}`, `{"metaData":{}}`,
		`{"metaData":{"id":"x","schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":["p"],"configuration":{"a":"b"},"other":[1]}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := readAction(line)
		if err != nil {
			return
		}
		var w entryWriter
		switch {
		case a.protocol != nil:
			w.protocol(*a.protocol)
		case a.metadata != nil:
			w.metadata(a.metadata)
		case a.add != nil:
			w.add(a.add)
		case a.txn != nil:
			w.txn(*a.txn)
		case len(a.commitInfo) > 0 && !isNull(a.commitInfo):
			info, err := readCommitInfo(a.commitInfo)
			if err != nil {
				return
			}
			w.commitInfo(info)
		default:
			return
		}
		if w.err != nil {
			t.Fatalf("%s can't be written again: %v", line, w.err)
		}
		if n := bytes.Count(w.buf, []byte("\n")); n != 1 {
			t.Fatalf("%q takes %d lines", w.buf, n)
		}
		b, err := readAction(bytes.TrimSpace(w.buf))
		if err != nil {
			t.Fatalf("%s was written as %s: %v", line, w.buf, err)
		}
		if a.metadata != nil && !a.metadata.Equal(b.metadata) || a.add != nil && fileKey(a.add.Path, a.add.DeletionVector) != fileKey(b.add.Path, b.add.DeletionVector) {
			t.Fatalf("%s was written as %s", line, w.buf)
		}
	})
}

// FuzzSchema: a schema that parses is written so that it parses to an equal one.
func FuzzSchema(f *testing.F) {
	f.Add(oddSchema)
	f.Add(`{"type":"struct","fields":[{"name":"a","type":"decimal","nullable":false,"metadata":null}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchema(text)
		if err != nil {
			return
		}
		raw, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseSchema(string(raw))
		if err != nil || !again.Equal(s) {
			t.Fatalf("%s was written as %s: %v", text, raw, err)
		}
		if evolved, err := Evolve(s, again); err == nil && evolved != s {
			t.Fatalf("an equal schema changes %s to %s", s, evolved)
		}
		_ = StatsColumns(&Metadata{Schema: s})
		_ = s.String()
	})
}

// FuzzPartitionValue: any text can be given for any type.
func FuzzPartitionValue(f *testing.F) {
	for _, s := range []string{"1", "-1.50", "2024-01-01", "1970-01-01 00:00:00.123456", "1970-01-01T00:00:00.1Z", "true", "NaN", "1E5", "\x00", "+5.5"} {
		f.Add(s, "decimal(5,2)")
		f.Add(s, "timestamp")
		f.Add(s, "date")
	}
	f.Fuzz(func(t *testing.T, text, typ string) {
		v, err := ParsePartition(Primitive(typ), &text)
		if err == nil && v == nil && text != "" {
			t.Fatalf("%q as %s is null", text, typ)
		}
	})
}

func FuzzLastCheckpoint(f *testing.F) {
	f.Add([]byte(`{"version":10,"size":13,"sizeInBytes":5,"checksum":"00"}`))
	f.Add([]byte(`{"version":1,"checkpointSchema":{"type":"struct","fields":[{"a":[1,null,true]}]},"checksum":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := parseLastCheckpoint(data); err == nil && v < 0 {
			t.Fatalf("version %d", v)
		}
		_, _ = jsonChecksum(data)
	})
}

// FuzzChecksum: a version checksum that is accepted describes a whole head, which can be written again.
func FuzzChecksum(f *testing.F) {
	f.Add([]byte(`{"txnId":"x","tableSizeBytes":1,"numFiles":1,"numMetadata":1,"numProtocol":1,"setTransactions":[{"appId":"a","version":1,"lastUpdated":2}],` +
		`"domainMetadata":[],"metadata":{"id":"x","schemaString":"{\"type\":\"struct\",\"fields\":[]}"},"protocol":{"minReaderVersion":1,"minWriterVersion":2}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newHeadBuilder("fuzz")
		if parseChecksum(data, b) != nil {
			return
		}
		h, err := b.head()
		if err != nil {
			return
		}
		raw, err := h.checksum("id")
		if err != nil || !json.Valid(raw) {
			t.Fatalf("%s was written as %s: %v", data, raw, err)
		}
		if err := parseChecksum(raw, newHeadBuilder("fuzz")); err != nil {
			t.Fatalf("%s was written as %s: %v", data, raw, err)
		}
	})
}

// FuzzCheckpoint: no file makes the checkpoint reader panic or hang.
func FuzzCheckpoint(f *testing.F) {
	var buf bytes.Buffer
	w, err := newCheckpointWriter(&buf, &Head{Metadata: &Metadata{}}, classicForm)
	if err == nil {
		err = w.write(&action{add: &Add{Path: "a", PartitionValues: map[string]*string{"p": nil, "q": ptr("x")}, Stats: "{}"}})
	}
	if err == nil {
		err = w.close()
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = scanCheckpoint(context.Background(), bytes.NewReader(data), headActions|fileActions, func(*action) error { return nil })
	})
}
