package state

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChangelogConfig(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want map[string]string
	}{
		{Spec{Kind: KeyValue}, map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}},
		{Spec{Kind: Window, RetentionMs: 1000}, map[string]string{
			"cleanup.policy": "compact,delete", "message.timestamp.type": "CreateTime", "retention.ms": "-1"}},
		{Spec{Kind: Session, RetentionMs: 1000}, map[string]string{
			"cleanup.policy": "compact,delete", "message.timestamp.type": "CreateTime", "retention.ms": "-1"}},
		{Spec{Kind: Versioned, HistoryMs: 5}, map[string]string{
			"cleanup.policy": "compact", "message.timestamp.type": "CreateTime", "min.compaction.lag.ms": "86400005"}},
		{Spec{Kind: TimestampedWindow, RetentionMs: 1000, TopicConfig: map[string]string{"retention.ms": "5"}}, map[string]string{
			"cleanup.policy": "compact,delete", "message.timestamp.type": "CreateTime", "retention.ms": "5"}},
	} {
		if d := cmp.Diff(c.want, c.spec.ChangelogConfig()); d != "" {
			t.Errorf("%v: %s", c.spec.Kind, d)
		}
	}
}

func TestSegmentInterval(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want int64
	}{
		{Spec{Kind: Window, RetentionMs: 1000}, 60_000},
		{Spec{Kind: Window, RetentionMs: 600_000}, 300_000},
		{Spec{Kind: Window, RetentionMs: 600_000, SegmentIntervalMs: 7}, 7},
		{Spec{Kind: Versioned, HistoryMs: 1000}, 2_000},
		{Spec{Kind: Versioned, HistoryMs: 300_000}, 60_000},
		{Spec{Kind: Versioned, HistoryMs: 3_600_000}, 300_000},
		{Spec{Kind: Versioned, HistoryMs: 24 * 3_600_000}, 3_600_000},
	} {
		if got := c.spec.SegmentMs(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.spec, got, c.want)
		}
	}
}

func TestSpecValidate(t *testing.T) {
	good := []Spec{
		{Name: "a", Kind: KeyValue},
		{Name: "a", Kind: TimestampedKeyValue, InMemory: true, MaxEntries: 3},
		{Name: "a", Kind: Window, RetainDuplicates: true},
		{Name: "a", Kind: Session, TimeOrdered: true},
	}
	for _, s := range good {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	bad := map[string]Spec{
		"no name":             {Kind: KeyValue},
		"unknown kind":        {Name: "a", Kind: 77},
		"negative":            {Name: "a", Kind: Window, RetentionMs: -1},
		"entry limit":         {Name: "a", Kind: KeyValue, MaxEntries: 1},
		"retain duplicates":   {Name: "a", Kind: Session, RetainDuplicates: true},
		"can be time-ordered": {Name: "a", Kind: KeyValue, TimeOrdered: true},
		"in-memory variant":   {Name: "a", Kind: Versioned, InMemory: true},
	}
	for want, s := range bad {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error with %q", s, err, want)
		}
	}
}

func TestKindsByNameAndChangelog(t *testing.T) {
	for k := KeyValue; k <= lastKind; k++ {
		if got, ok := KindOf(k.String()); got != k || !ok {
			t.Errorf("%s: %v %v", k, got, ok)
		}
		if !k.SharesChangelog(k) {
			t.Errorf("%s can't be restored from its own changelog", k)
		}
	}
	if k, ok := KindOf("kind 99"); ok {
		t.Errorf("got %v", k)
	}
	if !KeyValue.SharesChangelog(TimestampedKeyValue) || !Window.SharesChangelog(TimestampedWindow) || KeyValue.SharesChangelog(Window) || Window.SharesChangelog(Session) {
		t.Error("changelogs are alike only with and without timestamps")
	}
}
