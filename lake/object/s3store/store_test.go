package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

func openFake(t *testing.T, f *fakeS3) object.Store {
	t.Helper()
	f.objects = map[string][]byte{}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return open(t, "s3://bucket/some/folder?use_path_style=true&region=us-east-1&endpoint="+url.QueryEscape(server.URL))
}

func open(t *testing.T, place string) object.Store {
	t.Helper()
	s, err := object.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.(*Store).Close() })
	return s
}

// contract is what every store must do.
func contract(t *testing.T, s object.Store) {
	ctx := t.Context()
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Fatalf("%s: %v, want %v", what, err, want)
		}
	}
	check("put if absent", s.PutIfAbsent(ctx, "d/a", []byte("one")), nil)
	check("again", s.PutIfAbsent(ctx, "d/a", []byte("two")), object.ErrExists)
	data, err := s.Get(ctx, "d/a")
	check("get", err, nil)
	if string(data) != "one" {
		t.Fatalf("got %q", data)
	}
	check("put", s.Put(ctx, "d/a", []byte("three")), nil)
	data, err = s.GetRange(ctx, "d/a", 1, 3)
	check("range", err, nil)
	info, err := s.Stat(ctx, "d/a")
	check("stat", err, nil)
	if string(data) != "hre" || info.Size != 5 || info.Name != "d/a" {
		t.Fatalf("range %q, info %+v", data, info)
	}
	w, err := s.Create(ctx, "d/b%41 é")
	check("create", err, nil)
	for range 2 {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
			t.Fatal(err)
		}
	}
	check("close", w.Close(), nil)
	w.Abort()
	check("sync", s.Sync(ctx, "d/b%41 é"), nil)
	if data, err = s.Get(ctx, "d/b%41 é"); err != nil || len(data) != 2000 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	w, err = s.Create(ctx, "d/dropped")
	check("create", err, nil)
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	for i := range 7 {
		check("put", s.Put(ctx, fmt.Sprint("d/n", i), nil), nil)
	}
	if got := list(t, s, "d/", ""); !slices.Equal(got, []string{"d/a", "d/b%41 é", "d/n0", "d/n1", "d/n2", "d/n3", "d/n4", "d/n5", "d/n6"}) {
		t.Fatalf("list: %v", got)
	}
	if got := list(t, s, "d/n", "d/n4"); !slices.Equal(got, []string{"d/n5", "d/n6"}) {
		t.Fatalf("list after: %v", got)
	}
	for range 2 {
		check("delete", s.Delete(ctx, "d/a"), nil)
	}
	_, err = s.Get(ctx, "d/a")
	check("get of what isn't there", err, object.ErrNotFound)
	_, err = s.Stat(ctx, "d/a")
	check("stat of what isn't there", err, object.ErrNotFound)
	check("self-test", object.CheckPutIfAbsent(ctx, s, "check"), nil)
}

func list(t *testing.T, s object.Store, prefix, after string) (names []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	return names
}

func TestStore(t *testing.T) { contract(t, openFake(t, &fakeS3{})) }

func TestIgnoredCondition(t *testing.T) {
	if err := object.CheckPutIfAbsent(t.Context(), openFake(t, &fakeS3{ignore: true}), "check"); !errors.Is(err, object.ErrNotConditional) {
		t.Errorf("a store that ignores If-None-Match passed: %v", err)
	}
}

func TestPutErrors(t *testing.T) {
	for fault, want := range map[int]error{403: nil, 409: object.ErrUnknown} {
		s := openFake(t, &fakeS3{fault: func(string) int { return fault }})
		err := s.PutIfAbsent(t.Context(), "a", []byte("x"))
		if err == nil || errors.Is(err, object.ErrUnknown) != (want != nil) {
			t.Errorf("status %d: %v", fault, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := openFake(t, &fakeS3{}).PutIfAbsent(ctx, "a", []byte("x")); !errors.Is(err, object.ErrUnknown) {
		t.Errorf("an ended context leaves it open whether the request was sent: %v", err)
	}
	if err := openFake(t, &fakeS3{}).Put(t.Context(), "a", nil); err != nil {
		t.Error(err)
	}
}

// TestLostReplies commits through a store that drops replies after it has stored: the client's own retry then gets 412, and the
// table must find out that the commit is its own.
func TestLostReplies(t *testing.T) {
	n := 0
	f := &fakeS3{}
	s := openFake(t, f)
	table, err := delta.Create(t.Context(), s, delta.Spec{Schema: &delta.StructType{Fields: []delta.Field{{Name: "id", Type: delta.Long, Nullable: true}}}}, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.fault = func(key string) int {
		if n++; strings.HasSuffix(key, ".json") && n%2 == 1 {
			return dropReply
		}
		return 0
	}
	recovered := 0
	for i := range int64(6) {
		landed, err := table.Commit(t.Context(), delta.Commit{Moves: []delta.Move{{AppID: "a", First: i == 0, From: i, To: i + 1}}})
		if err != nil {
			t.Fatal(err)
		}
		if landed.Recovered {
			recovered++
		}
		if landed.Version != i+1 {
			t.Errorf("commit %d landed at %d", i, landed.Version)
		}
	}
	if recovered == 0 {
		t.Error("no reply was lost")
	}
}

// TestGateway runs the contract, races and a table against a real S3 or compatible: TRIBUTARY_TEST_S3 is an URL of a folder in it
// that may be written, such as s3://bucket/test?endpoint=http://127.0.0.1:39070&use_path_style=true&region=us-east-1.
func TestGateway(t *testing.T) {
	place := os.Getenv("TRIBUTARY_TEST_S3")
	if place == "" {
		t.Skip("SKIPPED: no S3-compatible store to test with; set TRIBUTARY_TEST_S3 to s3://bucket/folder?endpoint=…")
	}
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	u.Path += "/" + uuid.NewString()
	contract(t, open(t, u.String()))
	u.Path += "-table"
	s := open(t, u.String())
	schema := &delta.StructType{Fields: []delta.Field{{Name: "id", Type: delta.Long, Nullable: true}}}
	const writers, commits = 4, 15
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() { errs[w] = write(t.Context(), s, schema, fmt.Sprint("w", w), commits) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	table, err := delta.Open(t.Context(), s, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if h := table.Head(); h.Version != writers*commits || len(h.Txns) != writers {
		t.Errorf("version %d with %d ids", h.Version, len(h.Txns))
	}
}

func write(ctx context.Context, s object.Store, schema *delta.StructType, id string, commits int64) error {
	table, _, err := delta.OpenOrCreate(ctx, s, delta.Spec{Schema: schema, Configuration: map[string]string{"delta.checkpointInterval": "10"}}, delta.Options{})
	if err != nil {
		return err
	}
	for i := range commits {
		if _, err := table.Commit(ctx, delta.Commit{Moves: []delta.Move{{AppID: id, First: i == 0, From: i, To: i + 1}}}); err != nil {
			return err
		}
		if err := table.Maintain(ctx); err != nil {
			return err
		}
	}
	return nil
}
