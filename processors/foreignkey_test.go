package processors_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
)

type (
	subscription = processors.Subscription[string]
	response     = processors.Response[string]
	foreignJoin  = processors.ForeignKeyJoin[string, string, *string, string, string]
)

// foreignKeys is a foreign-key join whose two topics are calls.
type foreignKeys struct {
	*env
	join        *foreignJoin
	left, right processors.Child
	resolve     processors.Child
	subscribed  tap[*string, subscription]
	out         tap[string, string]
}

// beforeSlash is the part of v before the first slash, nil if there is none.
func beforeSlash(_, v string) (*string, error) {
	if fk, _, ok := strings.Cut(v, "/"); ok {
		return &fk, nil
	}
	return nil, nil
}

func newForeignKeys(t testing.TB, left bool) *foreignKeys {
	f := &foreignKeys{env: newEnv(t, tableSpec("left"), tableSpec("right"), tableSpec("subscriptions"))}
	leftTable := processors.NewTableSource(strings2("left", serde.String), true)
	keys := serde.Ptr(serde.String)
	rightTable := processors.NewTableSource(processors.Store[*string, string]{Name: "right", Key: keys, Value: serde.String}, true)
	leftTable.EnableOldValues(true)
	rightTable.EnableOldValues(true)
	f.join = &foreignJoin{
		Left: left, LeftTable: leftTable, RightTable: rightTable, ForeignKey: beforeSlash, Join: pair,
		LeftKey: serde.String, LeftValue: serde.String, RightKey: keys, RightValue: serde.String,
		SubscriptionTopic: "s", ResponseTopic: "r", SubscriptionStore: "subscriptions",
	}
	f.resolve = f.node("resolve", f.join.Resolve(), f.out.child("out"))
	receive := f.node("receive", f.join.Receive(), f.node("answer", f.join.SubscriptionJoin(), f.resolve))
	f.left = f.node("left", leftTable, f.node("send", f.join.Send(), f.subscribed.child("topic"), receive))
	f.right = f.node("right", rightTable, f.node("foreign", f.join.ForeignJoin(), f.resolve))
	f.start()
	return f
}

func TestForeignKeyJoinInner(t *testing.T) {
	f := newForeignKeys(t, false)
	must(f.env, f.left, "1", "x/a", 1)
	must(f.env, f.right, ptr("x"), "X", 2)
	must(f.env, f.left, "2", "x/b", 3)
	must(f.env, f.right, ptr("x"), "X2", 4)
	want(t, f.out.take(), "1=x/a+X@2; 2=x/b+X@3; 1=x/a+X2@4; 2=x/b+X2@4")
	must(f.env, f.left, "1", "y/c", 5) // no row yet: what there was is deleted
	must(f.env, f.left, "2", "none", 6)
	if f.drops[processors.DroppedNullKey] != 1 {
		t.Errorf("drops %v", f.drops)
	}
	must(f.env, f.right, ptr("y"), "Y", 7)
	remove(f.env, f.left, "1", 8)
	want(t, f.out.take(), "1=null@5; 2=null@6; 1=y/c+Y@7; 1=null@8")
}

func TestForeignKeyJoinLeft(t *testing.T) {
	f := newForeignKeys(t, true)
	must(f.env, f.left, "1", "none", 1)
	must(f.env, f.left, "1", "x/a", 2)
	must(f.env, f.right, ptr("x"), "X", 3)
	must(f.env, f.left, "1", "y/b", 4)
	remove(f.env, f.left, "1", 5)
	want(t, f.out.take(), "1=none+null@1; 1=x/a+null@2; 1=x/a+X@3; 1=y/b+null@4; 1=null@5")
}

func TestForeignKeyJoinDropsStaleResponses(t *testing.T) {
	f := newForeignKeys(t, false)
	must(f.env, f.left, "1", "x/a", 1)
	must(f.env, f.resolve, "1", response{Hash: [16]byte{1}, Value: "stale"}, 2)
	must(f.env, f.resolve, "1", response{HashNull: true, Value: "stale"}, 2)
	must(f.env, f.resolve, "2", response{Hash: [16]byte{1}, Value: "stale"}, 2)
	want(t, f.out.take(), "")
	if f.drops[processors.DroppedOutOfOrder] != 3 {
		t.Errorf("drops %v", f.drops)
	}
	if err := pipe(f.env, f.resolve, "1", response{Version: 9}, 2); err == nil {
		t.Error("a response of an unknown version was taken")
	}
}

// The bytes were written by Kafka Streams 4.3.1 for the updates 1:x/a, 1:y/c, and a delete.
func TestForeignKeyWireFormat(t *testing.T) {
	f := newForeignKeys(t, false)
	f.ctx.Partition = 0
	var got []subscription
	must(f.env, f.left, "1", "x/a", 1)
	must(f.env, f.left, "1", "y/c", 5)
	remove(f.env, f.left, "1", 8)
	s := processors.SubscriptionSerde(serde.String)
	for i, bytes := range []string{
		"AQN/B4z9KNcY7WbPpnMxLB5qMQAAAAA=", "AQAU4gQNq8QDl8cRbb9ekixVMQAAAAA=", "AQIU4gQNq8QDl8cRbb9ekixVMQAAAAA=", "gQExAAAAAA==",
	} {
		b, err := base64.StdEncoding.DecodeString(bytes)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
		if again, err := s.Append(nil, v); err != nil || string(again) != string(b) {
			t.Errorf("%d: %x, %v; want %x", i, again, err, b)
		}
	}
	lines := f.subscribed.take()
	for i, fk := range []string{"x", "x", "y", "y"} {
		if expect := fmt.Sprintf("%s=%v@", fk, got[i]); !strings.HasPrefix(lines[i], expect) {
			t.Errorf("%d: %s, want %s", i, lines[i], expect)
		}
	}
	r := processors.ResponseSerde(serde.String)
	for text, v := range map[string]response{
		"AOlZOVML8yi3BzZJ33BSsOBYMg==": {Hash: [16]byte{0xe9, 0x59, 0x39, 0x53, 0x0b, 0xf3, 0x28, 0xb7, 0x07, 0x36, 0x49, 0xdf, 0x70, 0x52, 0xb0, 0xe0}, Value: "X2", Partition: -1},
		"gA==":                         {HashNull: true, Null: true, Partition: -1},
	} {
		b, err := r.Append(nil, v)
		if err != nil || base64.StdEncoding.EncodeToString(b) != text {
			t.Errorf("%+v: %x, %v", v, b, err)
		}
		if again, err := r.Decode(b); err != nil || again != v {
			t.Errorf("%s: %+v, %v", text, again, err)
		}
	}
}

func FuzzForeignKeySerdes(f *testing.F) {
	for _, text := range []string{"AQN/B4z9KNcY7WbPpnMxLB5qMQAAAAA=", "gQExAAAAAA==", "gA==", "AOlZOVML8yi3BzZJ33BSsOBYMg=="} {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	s, r := processors.SubscriptionSerde(serde.String), processors.ResponseSerde(serde.String)
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := s.Decode(data); err == nil && v.Version <= 1 {
			if b, err := s.Append(nil, v); err != nil || string(b) != string(data) {
				t.Fatalf("%+v: %x, %v", v, b, err)
			}
		}
		if v, err := r.Decode(data); err == nil {
			if b, err := r.Append(nil, v); err != nil || string(b) != string(data) {
				t.Fatalf("%+v: %x, %v", v, b, err)
			}
		}
	})
}

// TestForeignKeyJoinEqualsModel joins random updates and compares the result with nested loops.
func TestForeignKeyJoinEqualsModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		left := seed%2 == 1
		f := newForeignKeys(t, left)
		lefts, rights, seen := map[string]string{}, map[string]string{}, map[string]string{}
		for i := range 40 {
			fk := []string{"x", "y", "z"}[r.IntN(3)]
			switch key := fmt.Sprint(r.IntN(4)); r.IntN(6) {
			case 0:
				delete(lefts, key)
				remove(f.env, f.left, key, int64(i))
			case 1:
				lefts[key] = fmt.Sprint("none", i)
				must(f.env, f.left, key, lefts[key], int64(i))
			case 2, 3:
				lefts[key] = fmt.Sprint(fk, "/", i)
				must(f.env, f.left, key, lefts[key], int64(i))
			case 4:
				delete(rights, fk)
				if err := pipeRecord(f.env, f.right, &processors.Record[*string, string]{Key: &fk, ValueNull: true, Timestamp: int64(i)}); err != nil {
					t.Fatal(err)
				}
			default:
				rights[fk] = fmt.Sprint("R", i)
				must(f.env, f.right, &fk, rights[fk], int64(i))
			}
			for _, line := range f.out.take() {
				key, value, _ := strings.Cut(line, "=")
				value, _, _ = strings.Cut(value, "@")
				if seen[key] = value; value == "null" {
					delete(seen, key)
				}
			}
			expect := map[string]string{}
			for key, l := range lefts {
				fk, _, _ := strings.Cut(l, "/")
				if right, ok := rights[fk]; ok {
					expect[key] = l + "+" + right
				} else if left {
					expect[key] = l + "+null"
				}
			}
			if !maps.Equal(seen, expect) {
				t.Fatalf("seed %d, step %d\ngot  %v\nwant %v", seed, i, seen, expect)
			}
		}
	}
}
