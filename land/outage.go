package land

import (
	"fmt"
	"sync"
	"time"

	"github.com/tributary-io/tributary/lake"
)

// outage knows which streams wait for the schema registry, since when, and why.
type outage struct {
	now func() time.Time

	mu      sync.Mutex
	waiting map[string]*wait // by topic
	failed  map[lake.SchemaKey]error
}

// wait is a stream that waits.
type wait struct {
	since time.Time
	key   lake.SchemaKey
}

func newOutage(now func() time.Time) *outage {
	return &outage{now: now, waiting: map[string]*wait{}, failed: map[lake.SchemaKey]error{}}
}

// waits says that a stream waits for a schema. It may be said again and again.
func (o *outage) waits(topic string, key lake.SchemaKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting[topic] == nil {
		o.waiting[topic] = &wait{since: o.now()}
	}
	o.waiting[topic].key = key
}

// ends says that a stream has its answer.
func (o *outage) ends(topic string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.waiting[topic]; w != nil {
		delete(o.failed, w.key)
		delete(o.waiting, topic)
	}
}

// fails notes why a schema can't be had.
func (o *outage) fails(key lake.SchemaKey, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed[key] = err
}

// holds are the streams that wait, by topic.
func (o *outage) holds() map[string]hold {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]hold{}
	for topic, w := range o.waiting {
		h := hold{since: w.since, why: fmt.Sprintf("records wait for the schema registry since %s: schema %s", stamp(w.since), w.key)}
		if err := o.failed[w.key]; err != nil {
			h.why += ": " + err.Error()
		}
		all[topic] = h
	}
	return all
}
