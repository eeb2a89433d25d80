package storehttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/group"
	"github.com/tributary-io/tributary/engine/internal/holders"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// The errors of the store of these tests.
var (
	errUnknown   = errors.New("no such store")
	errElsewhere = errors.New("another instance has it")
	errOpening   = errors.New("on its way")
)

func absence(err error) Absence {
	for absent, means := range map[error]Absence{errUnknown: Unknown, errElsewhere: Elsewhere, errOpening: Soon} {
		if errors.Is(err, absent) {
			return means
		}
	}
	return Other
}

// kept is a store of two partitions, of which an instance has one.
type kept struct {
	here   int32
	stores state.Stores
}

func (k *kept) Info() Info                                    { return Info{Name: "kv", Kind: state.KeyValue, Partitions: 2} }
func (k *kept) PartitionOf(key []byte) (int32, error)         { return int32(key[0] % 2), nil }
func (k *kept) Task(partition int32) assign.TaskID            { return assign.TaskID{Partition: partition} }
func (k *kept) Here() []int32                                 { return []int32{k.here} }
func (k *kept) Locations(context.Context) ([]Location, error) { return nil, nil }
func (k *kept) Opening(int32) error                           { return errOpening }

func (k *kept) Read(partition int32, _ bool, f func(state.Stores) error) (int64, error) {
	if partition != k.here {
		return NotCopy, errElsewhere
	}
	return NotCopy, f(k.stores)
}

// cluster is two instances of an application, with a partition each.
type cluster struct {
	stores  [2]*kept
	servers [2]*httptest.Server
	members []group.StreamsMember // as the coordinator tells
	asked   int                   // it was
	now     time.Time
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{now: time.Unix(1000, 0)}
	for i := range c.servers {
		db, err := state.OpenMemory([]state.Spec{{Name: "kv", Kind: state.KeyValue}}, state.Options{})
		if err != nil {
			t.Fatal(err)
		}
		record := state.RestoreRecord{Key: []byte{'0' + byte(i)}, Value: fmt.Append(nil, "of ", i)}
		if err := db.Restore("kv", []state.RestoreRecord{record}, 1); err != nil {
			t.Fatal(err)
		}
		view, err := db.View()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(view.Close)
		c.stores[i] = &kept{int32(i), view}
		mux := http.NewServeMux()
		c.servers[i] = httptest.NewServer(mux)
		t.Cleanup(c.servers[i].Close)
		Serve(mux, c.config(i))
		c.members = append(c.members, group.StreamsMember{ID: fmt.Sprint("m", i), Endpoint: c.servers[i].URL, Tasks: assign.Placement{Active: []assign.TaskID{{Partition: int32(i)}}}})
	}
	return c
}

func (c *cluster) config(i int) Config {
	return Config{
		Application: "app", Names: []string{"kv"}, Absence: absence, Client: http.DefaultClient,
		Advertised: func() string { return c.servers[i].URL },
		Renderer:   func(string) (topology.Renderer, bool) { return topology.Renderer{}, false },
		Store: func(name string) (Store, error) {
			if name != "kv" {
				return nil, errUnknown
			}
			return c.stores[i], nil
		},
		Holders: holders.NewBook(func(context.Context) (*holders.Picture, error) {
			c.asked++
			return holders.OfStreams(c.members), nil
		}, func() time.Time { return c.now }),
	}
}

// get asks an instance.
func (c *cluster) get(t *testing.T, i int, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	c.servers[i].Config.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestInstancesAnswerForOneAnother(t *testing.T) {
	c := newCluster(t)
	for i := range 2 {
		for key := range 2 {
			want := fmt.Sprintf(`{"partition":%d,"key":{"text":"%d"},"value":{"text":"of %d"}}`, key, key, key)
			if status, body := c.get(t, i, fmt.Sprint("/stores/kv/get?key=", key)); status != http.StatusOK || body != want {
				t.Errorf("instance %d about %d: %d %s", i, key, status, body)
			}
		}
		_, body := c.get(t, i, "/stores/kv/scan")
		var got rowsJSON
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Rows) != 2 {
			t.Errorf("instance %d scans %s (%v)", i, body, err)
		}
	}
	if status, body := c.get(t, 0, "/stores/none/get?key=0"); status != http.StatusNotFound {
		t.Errorf("an unknown store: %d %s", status, body)
	}
}

// Where a picture proves wrong the coordinator is asked anew, once, and what others forward is forwarded no further.
func TestForwardingFollowsWhatMoves(t *testing.T) {
	c := newCluster(t)
	want := func(status int, says string) {
		t.Helper()
		if got, body := c.get(t, 0, "/stores/kv/get?key=1"); got != status || !strings.Contains(body, says) {
			t.Errorf("%d %s, want %d %s", got, body, status, says)
		}
	}
	want(http.StatusOK, "of 1")
	c.stores[1].here = 7 // given up, and nobody has it yet
	c.now = c.now.Add(time.Second)
	c.asked = 0
	want(http.StatusServiceUnavailable, errOpening.Error())
	if c.asked != 1 {
		t.Errorf("the coordinator was asked %d times", c.asked)
	}
	c.stores[1].here = 1
	want(http.StatusOK, "of 1")
	c.members[1].Endpoint, c.now = "", c.now.Add(time.Minute)
	want(http.StatusBadGateway, "it serves no HTTP")
}
