package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestDevWritesAndReads(t *testing.T) {
	text, end := startDev(t, "--topic", "words:2", "--topic", "empty")
	defer end()
	brokers := "--brokers=" + regexp.MustCompile(`broker +(\S+)`).FindStringSubmatch(text)[1]
	run := func(in string, args ...string) (string, error) {
		t.Helper()
		var out bytes.Buffer
		root := newRoot()
		root.SetIn(strings.NewReader(in))
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append(append([]string{"dev"}, args...), brokers))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := run("a:{\"n\":1}\njust a value\ngone:\n", "write", "words"); err != nil || !strings.Contains(out, "3 records") {
		t.Fatalf("%s, %v", out, err)
	}
	out, err := run("", "read", "words")
	for _, want := range []string{"\ta\t{\"n\":1}\n", "\tnull\tjust a value\n", "\tgone\tnull\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q, %v: lacks %q", out, err, want)
		}
	}
	if out, err := run("", "read", "empty"); err != nil || out != "" {
		t.Errorf("an empty topic shows %q, %v", out, err)
	}
	for _, command := range []string{"read", "write"} {
		if _, err := run("x", command, "nowhere"); err == nil || !strings.Contains(err.Error(), "tributary dev topic nowhere") {
			t.Errorf("%s of a topic that there isn't: %v", command, err)
		}
	}
	if out, err := run("", "topic", "nowhere:2", "words:2"); err != nil || !strings.Contains(out, "nowhere, 2 partitions") {
		t.Errorf("topics are made: %q, %v", out, err)
	}
	if out, err := run("", "topic", "nowhere", "one"); err != nil || !strings.Contains(out, "nowhere, 2 partitions") || !strings.Contains(out, "one, 1 partition") {
		t.Errorf("topics without a number: %q, %v", out, err)
	}
	if out, err := run("x", "write", "nowhere"); err != nil || !strings.Contains(out, "1 record written") {
		t.Errorf("a topic that was made while the broker runs: %q, %v", out, err)
	}
	if _, err := run("", "topic", "words:3"); err == nil || !strings.Contains(err.Error(), "words") {
		t.Errorf("a topic with other partitions: %v", err)
	}
	root := newRoot()
	root.SetArgs([]string{"dev", "read", "words", "--brokers", "127.0.0.1:1"})
	if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "is `tributary dev` running") {
		t.Errorf("without a broker: %v", err)
	}
	if _, err := run("", "read", "words", "--value", "int16"); err == nil || !strings.Contains(err.Error(), "float64") {
		t.Errorf("an unknown format: %v", err)
	}
}

// Avro is written of JSON by a schema that is registered, and shown as JSON by the one in the registry.
func TestDevWritesAndReadsAvro(t *testing.T) {
	text, end := startDev(t, "--topic", "prices")
	defer end()
	find := func(what string) string { return regexp.MustCompile(what + ` +(\S+)`).FindStringSubmatch(text)[1] }
	run := func(in string, args ...string) (string, error) {
		t.Helper()
		var out bytes.Buffer
		root := newRoot()
		root.SetIn(strings.NewReader(in))
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"dev"}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	file := filepath.Join(t.TempDir(), "price.avsc")
	schema := `{"type": "record", "name": "Price", "fields": [
		{"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
		{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
		{"name": "note", "type": ["null", "string"], "default": null}]}`
	if err := os.WriteFile(file, []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	write := []string{"write", "prices", "--brokers", find("broker"), "--registry", find("registry"), "--schema", file}
	lines := `a:{"amount": 3.5, "at": "2026-05-01T12:00:00Z"}` + "\n" + `b:{"amount": "0.07", "at": 5, "note": "x"}` + "\nc:\n"
	if out, err := run(lines, write...); err != nil || !strings.Contains(out, "3 records") {
		t.Fatalf("%s, %v", out, err)
	}
	if _, err := run(`d:{"at": 5}`, write...); err == nil || !strings.Contains(err.Error(), "line 1") || !strings.Contains(err.Error(), "amount") {
		t.Errorf("a value that lacks a field: %v", err)
	}
	if _, err := run(`d:3.5 euros`, write...); err == nil || !strings.Contains(err.Error(), "no JSON") {
		t.Errorf("a value that is no JSON: %v", err)
	}
	if _, err := run("e:plain text", "write", "prices", "--brokers", find("broker")); err != nil {
		t.Fatal(err)
	}
	read := []string{"read", "prices", "--value", "avro", "--brokers", find("broker"), "--registry"}
	out, err := run("", append(read, find("registry"))...)
	for _, want := range []string{
		"\ta\t" + `{"amount":"3.5","at":"2026-05-01T12:00:00Z","note":null}` + "\n", "\tb\t" + `{"amount":"0.07","at":"1970-01-01T00:00:00.005Z","note":"x"}` + "\n",
		"\tc\tnull\n", "\te\t" + `"plain text"` + "\n",
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q, %v: lacks %q", out, err, want)
		}
	}
	if out, err := run("", append(read, "http://127.0.0.1:1")...); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || out != "" {
		t.Errorf("without a registry: %q, %v", out, err)
	}
}

// TestDevReadLeavesOutWhatWasAborted ends behind the marker of a transaction, which is the last record of the topic.
func TestDevReadLeavesOutWhatWasAborted(t *testing.T) {
	text, end := startDev(t, "--topic", "words")
	defer end()
	address := regexp.MustCompile(`broker +(\S+)`).FindStringSubmatch(text)[1]
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.TransactionalID("x"), kgo.DefaultProduceTopic("words"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for value, commit := range map[string]kgo.TransactionEndTry{"kept": kgo.TryCommit, "aborted": kgo.TryAbort} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	if err := readRecords(context.Background(), []string{address}, "words", false, io.Discard, func(r *kgo.Record) { got = append(got, string(r.Value)) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != "kept" {
		t.Errorf("read %q", got)
	}
}

// TestDevReadEndsWhereTheLastRecordsAreCompacted reads a partition whose end is further on than its last record, as compaction may leave it.
func TestDevReadEndsWhereTheLastRecordsAreCompacted(t *testing.T) {
	text, end := startDev(t, "--topic", "words")
	defer end()
	client, err := kgo.NewClient(kgo.SeedBrokers(regexp.MustCompile(`broker +(\S+)`).FindStringSubmatch(text)[1]), kgo.DefaultProduceTopic("words"), kgo.ConsumeTopics("words"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("last")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n, left := 0, map[int32]int64{0: 5}
	if err := readUntil(ctx, client, left, func(*kgo.Record) { n++ }); err != nil || ctx.Err() != nil || n != 1 || len(left) != 1 {
		t.Errorf("%d records, left %v, %v, %v", n, left, err, ctx.Err())
	}
}

func TestBytesAreShownAsTheyAreSaidToBe(t *testing.T) {
	five := []byte{0, 0, 0, 0, 0, 0, 0, 5}
	for want, got := range map[string]string{
		"5": show(five, shownAs["int64"]), "0000000000000005": show(five, shownAs["hex"]), "null": show(nil, shownAs["text"]),
		"anna@1970-01-01T00:00:01Z/1970-01-01T00:00:02Z": show([]byte("anna\x00\x00\x00\x00\x00\x00\x07\xd0\x00\x00\x00\x00\x00\x00\x03\xe8"), shownAs["session"]),
		"anna@1970-01-01T00:00:00Z":                      show(append([]byte("anna"), make([]byte, 8)...), shownAs["windowed"]),
		`"\xff"`:                                         show([]byte{0xff}, shownAs["text"]), `"ab"`: show([]byte("ab"), shownAs["int64"]),
	} {
		if got != want {
			t.Errorf("%s is shown, want %s", got, want)
		}
	}
}
