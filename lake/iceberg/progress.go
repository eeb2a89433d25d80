package iceberg

import (
	"fmt"
	"strconv"
	"strings"

	icebergo "github.com/apache/iceberg-go"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

// Names of table properties and of entries in snapshots' summaries. docs/format/iceberg-properties.md tells of them.
const (
	progressPrefix    = "tributary.progress." // + application/sink/topic@topic id/partition = next offset to read
	tagPrefix         = "tributary.tag."      // + column path + "." + key = the tag as JSON
	schemaVersionKey  = "tributary.schema-version"
	summaryCommit     = "tributary.commit-id"
	summarySources    = "tributary.sources"
	summaryGaps       = "tributary.gaps"
	summaryRun        = "tributary.run"
	summaryTombstones = "tributary.skipped-tombstones"
	summaryTruncated  = "tributary.truncated-by"
	commentProperty   = "comment"
)

// progressKey is the table property that holds a partition's progress.
func progressKey(env *sink.Env, p sink.Partition) string {
	return fmt.Sprintf("%s%s/%s/%s@%s/%d", progressPrefix, env.ApplicationID, env.Name, p.Topic, columns.AppendUUID(nil, &p.TopicID), p.Partition)
}

// offset reads a partition's progress from the table's properties.
func (w *writer) offset(properties icebergo.Properties, p sink.Partition) (int64, error) {
	key := progressKey(&w.env, p)
	text, ok := properties[key]
	if !ok {
		return sink.NoOffset, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, &sink.RefusedError{Table: w.sink.name, Reason: fmt.Sprintf("its property %s is %q, which is no offset", key, text),
			Advice: "set it to the next offset to read, or remove it to land the partition from its start"}
	}
	return n, nil
}

// warnOtherTopic tells of progress under the same topic name and another topic id: the topic was made anew.
func (w *writer) warnOtherTopic(properties icebergo.Properties, p sink.Partition) {
	prefix := fmt.Sprintf("%s%s/%s/%s@", progressPrefix, w.env.ApplicationID, w.env.Name, p.Topic)
	suffix := "/" + strconv.Itoa(int(p.Partition))
	for key, next := range properties {
		if strings.HasPrefix(key, prefix) && strings.HasSuffix(key, suffix) {
			w.log.Warn("the table has progress of a topic with the same name but another id: the topic was deleted and made anew, and is landed from its start",
				"topic", p.Topic, "partition", p.Partition, "progress_of_the_other", next, "other", key)
		}
	}
}

// fenced compares what the moves start from with what the table says.
func (w *writer) fenced(properties icebergo.Properties, moves []sink.Move) error {
	for _, m := range moves {
		got, err := w.offset(properties, m.Partition)
		if err != nil {
			return err
		}
		if got != m.From {
			return &sink.FencedError{Table: w.sink.name, Partition: m.Partition, Want: m.From, Got: got}
		}
	}
	return nil
}

// progressOf is what the properties say once the moves are made.
func (w *writer) progressOf(moves []sink.Move) icebergo.Properties {
	out := make(icebergo.Properties, len(moves))
	for _, m := range moves {
		out[progressKey(&w.env, m.Partition)] = strconv.FormatInt(m.To, 10)
	}
	return out
}
