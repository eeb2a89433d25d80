package object

import (
	"maps"
	"sync"
	"time"
)

// clientAge is for how long a client is given to stores that are opened: rarely enough for connections to be few, and often enough for credentials that
// were changed in a file to be seen by who opens a store again.
const clientAge = time.Minute

// Clients keeps the clients that stores of one kind reach their service with, by what they are made of. A client has connections, which stay for a
// while after they were used, and credentials, which cost a request: were each store to have its own, a program that opens a table every
// second to see how far it has come would hold hundreds of connections. The zero value is empty. All methods may be called concurrently.
type Clients[C any] struct {
	mu   sync.Mutex
	kept map[string]keptClient[C]
}

type keptClient[C any] struct {
	client C
	made   time.Time
}

// Get returns the client of a key: the one that there is, or one that open makes. It belongs to all that got it, so nobody closes it.
func (c *Clients[C]) Get(key string, open func() (C, error)) (C, error) {
	if client, ok := c.young(key); ok {
		return client, nil
	}
	client, err := open() // without the lock: it may ask the network
	if err != nil {
		return client, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, ok := c.kept[key]; ok { // made meanwhile
		return first.client, nil
	}
	if c.kept == nil {
		c.kept = map[string]keptClient[C]{}
	}
	c.kept[key] = keptClient[C]{client, time.Now()}
	return client, nil
}

// young forgets clients that are too old, and looks for a key's.
func (c *Clients[C]) young(key string) (client C, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.kept, func(_ string, k keptClient[C]) bool { return time.Since(k.made) >= clientAge })
	k, ok := c.kept[key]
	return k.client, ok
}
