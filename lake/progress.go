package lake

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/sink"
)

// progressScheme says how a partition's progress stands in the table's txn actions. Offsets are always decoded before they are
// compared, so that a table can be handed over from one scheme's writer to another's by people who know both.
type progressScheme interface {
	appID(env *sink.Env, p sink.Partition) string
	// version encodes a next offset to read. ok is false if the scheme has no version for it: then no txn is written.
	version(next int64) (v int64, ok bool)
	// next decodes a version.
	next(version int64) int64
	// none is the version of a table that was emptied: next decodes it to sink.NoOffset. See truncate.go.
	none() int64
}

// nextScheme is our own: the version is the next offset to read.
type nextScheme struct{}

func (nextScheme) appID(env *sink.Env, p sink.Partition) string {
	return fmt.Sprintf("%s/%s/%s@%s/%d", env.ApplicationID, env.Name, p.Topic, topicID(p.TopicID), p.Partition)
}
func (nextScheme) version(next int64) (int64, bool) { return next, true }
func (nextScheme) next(version int64) int64         { return version }
func (nextScheme) none() int64                      { return sink.NoOffset }

// platformName is the first part of the platform's application ids.
const platformName = "ods-sink"

// platformScheme is the platform's: the version is the last offset that has landed.
type platformScheme struct{}

func (platformScheme) appID(_ *sink.Env, p sink.Partition) string {
	return fmt.Sprintf("%s/%s/%d", platformName, p.Topic, p.Partition)
}
func (platformScheme) version(next int64) (int64, bool) { return next - 1, next > 0 }
func (platformScheme) next(version int64) int64         { return version + 1 }
func (platformScheme) none() int64                      { return sink.NoOffset - 1 }

func topicID(id [16]byte) string { return string(columns.AppendUUID(nil, &id)) }

// move translates a partition's move. ok is false if the scheme has nothing to write for it.
func (w *writer) move(m sink.Move) (out delta.Move, ok bool) {
	if m.To < 0 {
		return out, false
	}
	scheme := w.sink.scheme()
	out.AppID = scheme.appID(&w.env, m.Partition)
	out.From, ok = scheme.version(m.From)
	out.First = m.From == sink.NoOffset || !ok
	if v, has := w.table.Head().Txn(out.AppID); out.First && has && v == scheme.none() {
		out.First, out.From = false, v // the table was emptied
	}
	out.To, ok = scheme.version(m.To)
	return out, ok
}

func (s *deltaSink) scheme() progressScheme {
	if s.opts.progress != nil {
		return s.opts.progress
	}
	return nextScheme{}
}

// offset reads a partition's progress from a version of the table.
func (w *writer) offset(h *delta.Head, p sink.Partition) int64 {
	scheme := w.sink.scheme()
	if v, ok := h.Txn(scheme.appID(&w.env, p)); ok {
		return scheme.next(v)
	}
	return sink.NoOffset
}

// warnOtherTopic tells of progress under the same topic name and another topic id: the topic was made anew.
func (w *writer) warnOtherTopic(h *delta.Head, p sink.Partition) {
	prefix := fmt.Sprintf("%s/%s/%s@", w.env.ApplicationID, w.env.Name, p.Topic)
	suffix := "/" + strconv.Itoa(int(p.Partition))
	for id, txn := range h.Txns {
		if strings.HasPrefix(id, prefix) && strings.HasSuffix(id, suffix) {
			w.log.Warn("the table has progress of a topic with the same name but another id: the topic was deleted and made anew, and is landed from its start",
				"topic", p.Topic, "partition", p.Partition, "progress_of_the_other", txn.Version, "other", id)
		}
	}
}

// Progress is the progress of one application id of a table, as far as it can be read.
type Progress struct {
	AppID   string
	Version int64 // as the table has it
	Updated int64 // ms; 0 if unknown
	// The parts of an application id that a sink of this package has written; Topic is empty for others'.
	Application, Sink, Topic string
	TopicID                  [16]byte // zero under the platform's scheme
	Partition                int32
	Next                     int64 // next offset to read; sink.NoOffset where the table was emptied since
}

// parseProgress takes an application id apart.
func parseProgress(t delta.Txn) Progress {
	p := Progress{AppID: t.AppID, Version: t.Version, Updated: t.LastUpdated}
	parts := strings.Split(t.AppID, "/")
	n := len(parts)
	if n < 3 {
		return p
	}
	part, err := strconv.ParseInt(parts[n-1], 10, 32)
	if err != nil {
		return p
	}
	if n == 3 && parts[0] == platformName {
		p.Sink, p.Topic, p.Partition, p.Next = parts[0], parts[1], int32(part), t.Version+1
		return p
	}
	topic, id, ok := strings.Cut(parts[n-2], "@")
	raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if n < 4 || !ok || err != nil || len(raw) != 16 {
		return p
	}
	// Application ids may hold slashes; sinks' names are taken not to.
	p.Application, p.Sink = strings.Join(parts[:n-3], "/"), parts[n-3]
	p.Topic, p.Partition, p.Next = topic, int32(part), t.Version
	copy(p.TopicID[:], raw)
	return p
}
