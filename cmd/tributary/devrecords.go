package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// newDevWrite and newDevRead put text into a topic and show what is in one, so that nothing else has to be installed to try an application.
func newDevWrite() *cobra.Command {
	var (
		brokers          []string
		registry, schema string
	)
	separator := ":"
	cmd := &cobra.Command{
		Use:   "write TOPIC",
		Short: "Write the lines of the standard input to a topic, as records of text or Avro",
		Long: "Writes each line as a record, KEY:VALUE. A line without the separator is a value without a key; one that ends with its first separator is a\n" +
			"key with a null value, which deletes a table's row. With --schema values are JSON that is written as Avro: the schema is registered as the\n" +
			"topic's, times may be RFC 3339, and fields with a default may be missing.",
		Example: `  echo 'anna:{"event_id":"e1","title":"Dune"}' | tributary dev write plays
  echo 'anna:{"event_id":"e1","title":"Dune"}' | tributary dev write plays --schema play.avsc`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			encode := func(text []byte) ([]byte, error) { return text, nil }
			if schema != "" {
				w, err := newAvroWriter(cmd.Context(), registry, schema, args[0])
				if err != nil {
					return err
				}
				encode = w.value
			}
			n, err := writeLines(cmd.Context(), cmd.InOrStdin(), brokers, args[0], separator, encode)
			if err == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s written to %s\n", counted(n, "record"), args[0])
			}
			return err
		},
	}
	addDevBrokers(cmd, &brokers)
	addDevRegistry(cmd, &registry)
	cmd.Flags().StringVar(&schema, "schema", "", "file with the Avro schema of the values")
	cmd.Flags().StringVar(&separator, "separator", separator, "what ends a line's key")
	return cmd
}

func addDevBrokers(cmd *cobra.Command, brokers *[]string) {
	cmd.Flags().StringSliceVar(brokers, "brokers", []string{"localhost:9092"}, "brokers, host:port")
}

func writeLines(ctx context.Context, in io.Reader, brokers []string, topic, separator string, encode func([]byte) ([]byte, error)) (n int, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if _, err := endsOf(ctx, client, topic); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for ; lines.Scan(); n++ {
		r := lineRecord(topic, lines.Text(), separator)
		if r.Value != nil {
			if r.Value, err = encode(r.Value); err != nil {
				return n, fmt.Errorf("line %d: %w", n+1, err)
			}
		}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			return n, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return n, lines.Err()
}

func lineRecord(topic, line, separator string) *kgo.Record {
	key, value, keyed := strings.Cut(line, separator)
	switch {
	case !keyed:
		return &kgo.Record{Topic: topic, Value: []byte(line)}
	case value == "":
		return &kgo.Record{Topic: topic, Key: []byte(key)}
	}
	return &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}
}

func newDevRead() *cobra.Command {
	var (
		brokers  []string
		registry string
	)
	key, value, follow := "text", "text", false
	cmd := &cobra.Command{
		Use:   "read TOPIC",
		Short: "Show the committed records of a topic",
		Long: "Shows the records of a topic up to its end: partition@offset, time, key and value. Aborted ones are left out. Bytes are shown as text, or\n" +
			"as what --key and --value say: avro (as JSON), int64 (as Count writes them), float64, hex, or of keys in windows windowed or session (text;\n" +
			"the window's start, the session's start and end are shown behind it).",
		Example: "  tributary dev read word-counts --value int64 --follow\n  tributary dev read plays --value avro",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := newAvroReader(registry)
			if err != nil {
				return err
			}
			defer a.registry.Close()
			ctx, end := context.WithCancel(cmd.Context())
			defer end()
			var failed error // of a registry that doesn't answer
			ways := maps.Clone(shownAs)
			ways["avro"] = func(b []byte) string {
				text, err := a.show(ctx, b)
				if err != nil && failed == nil {
					failed = err
					end()
				}
				return text
			}
			showKey, showValue := ways[key], ways[value]
			if showKey == nil || showValue == nil {
				return fmt.Errorf("--key %s, --value %s: give %s", key, value, shownWays)
			}
			err = readRecords(ctx, brokers, args[0], follow, cmd.ErrOrStderr(), func(r *kgo.Record) {
				key, value := show(r.Key, showKey), show(r.Value, showValue)
				if failed == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "%d@%d\t%s\t%s\t%s\n", r.Partition, r.Offset, r.Timestamp.UTC().Format(time.RFC3339Nano), key, value)
				}
			})
			return errors.Join(failed, err)
		},
	}
	addDevBrokers(cmd, &brokers)
	addDevRegistry(cmd, &registry)
	cmd.Flags().StringVar(&key, "key", key, "what keys are: "+shownWays)
	cmd.Flags().StringVar(&value, "value", value, "what values are")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until interrupted")
	return cmd
}

const shownWays = "text, avro, int64, float64, windowed, session or hex"

// shownAs are the ways of showing bytes; one that doesn't fit them gives "".
var shownAs = map[string]func([]byte) string{
	"text": func(b []byte) string {
		if !utf8.Valid(b) {
			return ""
		}
		return string(b)
	},
	"int64": func(b []byte) string {
		if len(b) != 8 {
			return ""
		}
		return fmt.Sprint(int64(binary.BigEndian.Uint64(b)))
	},
	"float64": func(b []byte) string {
		if len(b) != 8 {
			return ""
		}
		return fmt.Sprint(math.Float64frombits(binary.BigEndian.Uint64(b)))
	},
	"windowed": func(b []byte) string {
		if len(b) < 8 {
			return ""
		}
		text, start := b[:len(b)-8], binary.BigEndian.Uint64(b[len(b)-8:])
		return fmt.Sprintf("%s@%s", text, time.UnixMilli(int64(start)).UTC().Format(time.RFC3339))
	},
	"session": func(b []byte) string {
		if len(b) < 16 {
			return ""
		}
		text, end, start := b[:len(b)-16], binary.BigEndian.Uint64(b[len(b)-16:]), binary.BigEndian.Uint64(b[len(b)-8:])
		return fmt.Sprintf("%s@%s/%s", text, time.UnixMilli(int64(start)).UTC().Format(time.RFC3339), time.UnixMilli(int64(end)).UTC().Format(time.RFC3339))
	},
	"hex": func(b []byte) string { return hex.EncodeToString(b) },
}

func show(b []byte, as func([]byte) string) string {
	if b == nil {
		return "null"
	}
	if text := as(b); text != "" || len(b) == 0 {
		return text
	}
	return fmt.Sprintf("%q", b)
}

// endsOf is where each partition of a topic ends for those who read committed records.
func endsOf(ctx context.Context, client *kgo.Client, topic string) (map[int32]int64, error) {
	listed, err := kadm.NewClient(client).ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("no broker answers: is `tributary dev` running, or are --brokers others? %w", err)
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		err = errors.Join(err, o.Err)
		ends[o.Partition] = o.Offset
	})
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("there is no topic %s: `tributary dev topic %s` makes it", topic, topic)
	}
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", topic, err)
	}
	return ends, nil
}

// readRecords gives the records of a topic, of those that are there now or, following, until ctx ends. What a reader should know beside them goes to
// notes.
func readRecords(ctx context.Context, brokers []string, topic string, follow bool, notes io.Writer, each func(*kgo.Record)) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer client.Close()
	left, err := endsOf(ctx, client, topic)
	if err != nil {
		return err
	}
	starts, err := kadm.NewClient(client).ListStartOffsets(ctx, topic)
	if err != nil {
		return err
	}
	starts.Each(func(o kadm.ListedOffset) {
		if left[o.Partition] <= o.Offset {
			delete(left, o.Partition)
		}
	})
	if follow {
		return readOn(ctx, client, each)
	}
	err = readUntil(ctx, client, left, each)
	if err == nil && ctx.Err() == nil {
		for _, p := range slices.Sorted(maps.Keys(left)) {
			fmt.Fprintf(notes, "partition %d of %s ends at %d, and the broker sent no more of it: compaction has taken its last records, or the broker is slow\n", p, topic, left[p])
		}
	}
	return err
}

// readOn gives all records that come, until ctx ends.
func readOn(ctx context.Context, client *kgo.Client, each func(*kgo.Record)) error {
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				each(r)
			}
		})
	}
}

// quiet is how long brokers that answer take at most to send a record that they have. If none came twice as long there is none, though the partition
// ends further on: compaction has taken its last ones.
const quiet = 3 * time.Second

// readUntil gives records up to the ends of the partitions in left, and takes those out of it that it has read to their ends.
func readUntil(ctx context.Context, client *kgo.Client, left map[int32]int64, each func(*kgo.Record)) error {
	for wasQuiet := false; len(left) > 0; {
		polling, cancel := context.WithTimeout(ctx, quiet)
		fetches := client.PollFetches(polling)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case polling.Err() != nil && fetches.NumRecords() == 0:
			if wasQuiet {
				return nil
			}
			if err := client.Ping(ctx); err != nil {
				return err
			}
			wasQuiet = true
			continue
		}
		if err := fetches.Err(); err != nil && polling.Err() == nil {
			return err
		}
		wasQuiet = false
		fetches.EachRecord(func(r *kgo.Record) {
			if end, open := left[r.Partition]; open && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				each(r)
			}
		})
	}
	return nil
}
