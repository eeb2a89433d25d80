package task

import (
	"maps"
	"slices"
	"testing"
)

func TestProgressOfSeveralNodes(t *testing.T) {
	task := &Task{streamTime: -1}
	a, b := &runtime{task: task}, &runtime{task: task}
	if _, ok := b.Progress("b/time"); ok {
		t.Error("a mark is there that was never set")
	}
	a.SetProgress("a/time", 1)
	b.SetProgress("b/time", 2)
	b.SetProgress("b/closed", 3)
	a.SetProgress("a/time", 4)
	b.SetProgress("b/time", 5)
	want := map[string]int64{"a/time": 4, "b/time": 5, "b/closed": 3}
	if got := task.Progress(); !maps.Equal(got, want) {
		t.Errorf("progress %v, want %v", got, want)
	}
	marks := task.CopyProgress(make([]Mark, 7))
	if want := []Mark{{"a/time", 4}, {"b/time", 5}, {"b/closed", 3}}; !slices.Equal(marks, want) {
		t.Errorf("marks %v, want %v", marks, want)
	}
	task.RestoreProgress(map[string]int64{"a/time": 3, "b/time": 9, "c/time": 1, idleProgress: 77})
	want = map[string]int64{"a/time": 4, "b/time": 9, "b/closed": 3, "c/time": 1, idleProgress: 77}
	if got := task.Progress(); !maps.Equal(got, want) || task.streamTime != 77 {
		t.Errorf("after restoring %v and stream time %d, want %v: the larger counts", got, task.streamTime, want)
	}
	if v, ok := a.Progress("c/time"); !ok || v != 1 {
		t.Errorf("another node's mark is %d, %v", v, ok)
	}
}
