package holders

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/group"
)

func ids(partitions ...int32) (all []assign.TaskID) {
	for _, p := range partitions {
		all = append(all, assign.TaskID{Subtopology: 1, Partition: p})
	}
	return all
}

// Both protocols tell the same of the same members; one that has joined and was given nothing yet is in no picture.
func TestPictures(t *testing.T) {
	a := assign.Placement{Active: ids(0, 2), Warmups: ids(1)}
	b := assign.Placement{Active: ids(1), Standbys: ids(0)}
	streams := OfStreams([]group.StreamsMember{{ID: "b", Tasks: b}, {ID: "a", Endpoint: "a:1", Tasks: a}})
	metadata := func(endpoint string) []byte { return assign.AppendMember(nil, &assign.Member{Endpoint: endpoint}) }
	classic, err := OfClassic([]group.Described{
		{ID: "b", Metadata: metadata(""), Assignment: assign.AppendAssignment(nil, &assign.Assignment{Placement: b})},
		{ID: "new", Metadata: metadata("new:1")},
		{ID: "a", Metadata: metadata("a:1"), Assignment: assign.AppendAssignment(nil, &assign.Assignment{Placement: a})},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Holding{
		{Member: Member{"a", "a:1"}, Tasks: ids(0, 2), Copies: ids(1)},
		{Member: Member{"b", ""}, Tasks: ids(1), Copies: ids(0)},
	}
	for name, p := range map[string]*Picture{"streams": streams, "classic": classic} {
		if d := cmp.Diff(want, p.Members()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if m, ok := p.Of(ids(2)[0]); !ok || m.Endpoint != "a:1" {
			t.Errorf("%s: a task's member is %v, %v", name, m, ok)
		}
		if _, ok := p.Of(ids(3)[0]); ok {
			t.Errorf("%s: a task that nobody has is somebody's", name)
		}
		if got := p.Copies(ids(0)[0]); !cmp.Equal(got, []Member{{ID: "b"}}) {
			t.Errorf("%s: copies are at %v", name, got)
		}
	}
}

// The coordinator is asked when the picture is too old, not more often than rests, and what it said last stays while it says nothing.
func TestBook(t *testing.T) {
	now, asked := time.Unix(1000, 0), 0
	var answer *Picture
	var failure error
	b := NewBook(func(context.Context) (*Picture, error) { asked++; return answer, failure }, func() time.Time { return now })
	look := func(maxAge time.Duration, want *Picture, times int) {
		t.Helper()
		asked = 0
		if got, err := b.Look(t.Context(), maxAge); err != nil || got != want || asked != times {
			t.Errorf("got %p, %v, having asked %d times, want %p, %d", got, err, asked, want, times)
		}
	}
	look(Lives, nil, 1)
	look(Lives, nil, 1) // nothing is known yet
	first, second := newPicture(), newPicture()
	answer = first
	look(Lives, first, 1)
	answer = second
	look(Lives, first, 0)
	look(0, first, 0)
	now = now.Add(rests)
	look(Lives, first, 0)
	look(0, second, 1)
	now, answer = now.Add(Lives), nil // a rebalance
	look(Lives, second, 1)
	look(Lives, second, 0)
	now, failure = now.Add(Lives), errors.New("away")
	if _, err := b.Look(t.Context(), Lives); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}
