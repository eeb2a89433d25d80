package fetch

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pauses passes on what is asked for to the client, many at a time: at each call the client copies its whole set of paused partitions, and there
// may be thousands.
type pauses struct {
	client *kgo.Client

	mu      sync.Mutex
	asked   map[Partition]bool // what was asked for last: to pause, or to resume
	held    bool               // until release
	waiting *time.Timer        // nil: nothing waits for one
	rest    time.Time          // until then the client is left in peace
	closed  bool

	applying sync.Mutex // held while the client is told; before mu
}

// restFactor is how many times as long as telling the client took it is left in peace afterwards: it costs a tenth of one processor at most.
const restFactor = 9

// ask notes what is wanted of partitions, and sees to it that the client is told soon.
func (p *pauses) ask(pause bool, parts []Partition) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	if p.asked == nil {
		p.asked = map[Partition]bool{}
	}
	for _, part := range parts {
		p.asked[part] = pause
	}
	if p.held || p.waiting != nil {
		p.mu.Unlock()
		return
	}
	if wait := time.Until(p.rest); wait > 0 {
		p.waiting = time.AfterFunc(wait, p.rested)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.apply()
}

func (p *pauses) rested() {
	p.mu.Lock()
	p.waiting = nil
	held := p.held
	p.mu.Unlock()
	if !held {
		p.apply()
	}
}

// hold gathers what is asked for until release.
func (p *pauses) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// release tells the client what was gathered.
func (p *pauses) release() {
	p.mu.Lock()
	p.held = false
	p.mu.Unlock()
	p.apply()
}

// apply tells the client what was asked for since the last time.
func (p *pauses) apply() {
	p.applying.Lock()
	defer p.applying.Unlock()
	p.mu.Lock()
	asked := p.asked
	p.asked = nil
	if p.closed || len(asked) == 0 {
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	var pause, resume []Partition
	for part, paused := range asked {
		if paused {
			pause = append(pause, part)
		} else {
			resume = append(resume, part)
		}
	}
	began := time.Now()
	if len(pause) > 0 { // without partitions the client would list all
		p.client.PauseFetchPartitions(byTopic(pause))
	}
	if len(resume) > 0 {
		p.client.ResumeFetchPartitions(byTopic(resume))
	}
	end := time.Now()
	p.mu.Lock()
	p.rest = end.Add(restFactor * end.Sub(began))
	p.mu.Unlock()
}

// forget takes back all that was asked for partitions that aren't read any more.
func (p *pauses) forget(parts []Partition) {
	p.applying.Lock()
	defer p.applying.Unlock()
	p.mu.Lock()
	for _, part := range parts {
		delete(p.asked, part)
	}
	p.mu.Unlock()
	p.client.ResumeFetchPartitions(byTopic(parts))
}

// close waits until nothing is told to the client any more, and nothing will be.
func (p *pauses) close() {
	p.applying.Lock()
	defer p.applying.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.waiting != nil {
		p.waiting.Stop()
	}
}
