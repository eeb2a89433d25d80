package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
)

// Open opens a store for a test and releases it at the end.
func Open(t testing.TB, place string) object.Store {
	t.Helper()
	s, err := object.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Contract is what every store must do; the store is empty before.
func Contract(t *testing.T, s object.Store) {
	t.Helper()
	c := contract{t, s}
	c.puts()
	c.reads()
	c.creates()
	c.lists()
	c.deletes()
	c.check("self-test", object.CheckPutIfAbsent(t.Context(), s, "check"), nil)
}

type contract struct {
	t *testing.T
	s object.Store
}

func (c contract) check(what string, err, want error) {
	c.t.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		c.t.Fatalf("%s: %v, want %v", what, err, want)
	}
}

func (c contract) expect(name, want string) {
	c.t.Helper()
	data, err := c.s.Get(c.t.Context(), name)
	c.check("get", err, nil)
	if string(data) != want {
		c.t.Fatalf("%s holds %q, want %q", name, data, want)
	}
}

func (c contract) puts() {
	ctx := c.t.Context()
	c.check("put if absent", c.s.PutIfAbsent(ctx, "d/a", []byte("one")), nil)
	c.check("again", c.s.PutIfAbsent(ctx, "d/a", []byte("two")), object.ErrExists)
	c.expect("d/a", "one")
	c.check("put", c.s.Put(ctx, "d/a", []byte("three")), nil)
	c.expect("d/a", "three")
}

func (c contract) reads() {
	ctx := c.t.Context()
	for _, r := range []struct {
		off, n int64
		want   string
	}{{1, 3, "hre"}, {0, 5, "three"}, {3, 100, "ee"}} {
		data, err := c.s.GetRange(ctx, "d/a", r.off, r.n)
		c.check("range", err, nil)
		if string(data) != r.want {
			c.t.Fatalf("range of %d from %d: %q", r.n, r.off, data)
		}
	}
	info, err := c.s.Stat(ctx, "d/a")
	c.check("stat", err, nil)
	if info.Size != 5 || info.Name != "d/a" || info.Modified.IsZero() {
		c.t.Fatalf("info %+v", info)
	}
}

// oddName has what tables' paths have and URLs escape: keys are stored as they are.
const oddName = "d/b=%41 é+?#&"

func (c contract) creates() {
	ctx := c.t.Context()
	w, err := c.s.Create(ctx, oddName)
	c.check("create", err, nil)
	for range 2 {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
			c.t.Fatal(err)
		}
	}
	c.check("close", w.Close(), nil)
	w.Abort()
	c.check("sync", c.s.Sync(ctx, oddName), nil)
	if data, err := c.s.Get(ctx, oddName); err != nil || len(data) != 2000 {
		c.t.Fatalf("%d bytes, %v", len(data), err)
	}
	w, err = c.s.Create(ctx, "d/dropped")
	c.check("create", err, nil)
	if _, err := w.Write([]byte("x")); err != nil {
		c.t.Fatal(err)
	}
	w.Abort()
	w, err = c.s.Create(ctx, "e/empty")
	c.check("create", err, nil)
	c.check("close", w.Close(), nil)
	c.expect("e/empty", "")
	c.large()
}

// large writes an object of several parts.
func (c contract) large() {
	const size = 20 << 20
	ctx := c.t.Context()
	w, err := c.s.Create(ctx, "e/large")
	c.check("create", err, nil)
	part := make([]byte, 1<<20)
	for i := range size / len(part) {
		part[0] = byte(i)
		if _, err := w.Write(part); err != nil {
			c.t.Fatal(err)
		}
	}
	c.check("close", w.Close(), nil)
	info, err := c.s.Stat(ctx, "e/large")
	c.check("stat", err, nil)
	data, err := c.s.GetRange(ctx, "e/large", 17<<20, 1)
	c.check("range", err, nil)
	if info.Size != size || len(data) != 1 || data[0] != 17 {
		c.t.Fatalf("a large object has %d bytes; one of them is %v", info.Size, data)
	}
}

func (c contract) lists() {
	for i := range 7 {
		c.check("put", c.s.Put(c.t.Context(), fmt.Sprint("d/n", i), nil), nil)
	}
	for _, l := range []struct {
		prefix, after string
		want          []string
	}{
		{"d/", "", []string{"d/a", oddName, "d/n0", "d/n1", "d/n2", "d/n3", "d/n4", "d/n5", "d/n6"}},
		{"d/n", "d/n4", []string{"d/n5", "d/n6"}},
		{"d/n", "d/n45", []string{"d/n5", "d/n6"}},
		{"nothing/", "", nil},
	} {
		var names []string
		for info, err := range c.s.List(c.t.Context(), l.prefix, l.after) {
			c.check("list", err, nil)
			names = append(names, info.Name)
		}
		if !slices.Equal(names, l.want) {
			c.t.Fatalf("list of %s after %q: %q", l.prefix, l.after, names)
		}
	}
	for range c.s.List(c.t.Context(), "d/", "") {
		break // stopping early is allowed
	}
}

func (c contract) deletes() {
	ctx := c.t.Context()
	for range 2 {
		c.check("delete", c.s.Delete(ctx, "d/a"), nil)
	}
	_, err := c.s.Get(ctx, "d/a")
	c.check("get of what isn't there", err, object.ErrNotFound)
	_, err = c.s.GetRange(ctx, "d/a", 0, 1)
	c.check("range of what isn't there", err, object.ErrNotFound)
	_, err = c.s.Stat(ctx, "d/a")
	c.check("stat of what isn't there", err, object.ErrNotFound)
}

// Faults checks which outcomes of a conditional put are clear. open opens a new store on a server with the faults of f. unclear are the HTTP statuses after which nobody knows.
func Faults(t *testing.T, open func(f *Fake) object.Store, unclear ...int) {
	t.Helper()
	if err := object.CheckPutIfAbsent(t.Context(), open(&Fake{Ignore: true}), "check"); !errors.Is(err, object.ErrNotConditional) {
		t.Errorf("a store that ignores the condition passed: %v", err)
	}
	for _, status := range append([]int{403}, unclear...) {
		s := open(&Fake{Fault: func(string) int { return status }})
		err := s.PutIfAbsent(t.Context(), "a", []byte("x"))
		if want := status != 403; err == nil || errors.Is(err, object.ErrUnknown) != want || errors.Is(err, object.ErrExists) || errors.Is(err, fs.ErrPermission) == want {
			t.Errorf("status %d: %v", status, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := open(&Fake{}).PutIfAbsent(ctx, "a", []byte("x")); !errors.Is(err, object.ErrUnknown) {
		t.Errorf("an ended context leaves it open whether the request was sent: %v", err)
	}
	if err := open(&Fake{}).Put(t.Context(), "a", nil); err != nil {
		t.Error(err)
	}
}
