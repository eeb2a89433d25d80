package console

import (
	"context"
	"sync"
	"time"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/plan"
)

// How old what is shown may be, and how long a page waits for what others are asked. Rates need two looks, at least rateOver apart, of which the
// older one is no older than rateForgets.
const (
	lookLives   = 500 * time.Millisecond
	askedLives  = 2 * time.Second
	askedAtMost = 300 * time.Millisecond
	askingLasts = 10 * time.Second
	rateOver    = time.Second
	rateForgets = 30 * time.Second
)

// look looks at an engine for all who ask: nothing is done while nobody does, and little more for many than for one.
type look struct {
	source source
	plan   *plan.Plan

	mu    sync.Mutex
	seen  *sight
	older *sight // for rates
	sizes asked[[]engine.StoreSize]
	group asked[[]engine.Member]
}

// source is the engine, as far as it is looked at.
type source interface {
	Stats() engine.Stats
	Instance() string
	Members(context.Context) ([]engine.Member, error)
	StoreSizes(context.Context) ([]engine.StoreSize, error)
}

// sight is what was seen at a moment.
type sight struct {
	at    time.Time
	stats engine.Stats
	rates map[string]float64 // records a second by task, as far as known
	// What takes longer to find out, of a little earlier; nil before the first answer.
	sizes   []engine.StoreSize
	members []engine.Member
	problem error // of asking for members
}

// asked is an answer that somebody else gives, or that costs more than a look. It is asked for in the background, once at a time.
type asked[T any] struct {
	at     time.Time // of the answer
	took   time.Duration
	value  T
	err    error
	asking chan struct{} // closed with the answer; nil while nobody asks
}

// lives is for how long the answer is good: so that asking takes a fiftieth of the time at most, and less after an error.
func (a *asked[T]) lives() time.Duration {
	if a.err != nil {
		return rateOver
	}
	return max(askedLives, 50*a.took)
}

// take gives the last answer, which may be empty, and asks for a new one where that is too old; the first one it waits for, for a moment. l.mu must
// be held; it is given away meanwhile.
func (a *asked[T]) take(l *look, now time.Time, ask func(context.Context) (T, error)) (T, error) {
	if a.asking == nil && (a.at.IsZero() || now.Sub(a.at) > a.lives()) {
		done := make(chan struct{})
		a.asking = done
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), askingLasts)
			defer cancel()
			began := time.Now()
			value, err := ask(ctx)
			l.mu.Lock()
			defer l.mu.Unlock()
			if a.err = err; err == nil {
				a.value = value
			}
			a.at, a.asking = time.Now(), nil
			a.took = a.at.Sub(began)
			close(done)
		}()
	}
	if waiting := a.asking; waiting != nil && a.at.IsZero() {
		l.mu.Unlock()
		select {
		case <-waiting:
		case <-time.After(askedAtMost):
		}
		l.mu.Lock()
	}
	return a.value, a.err
}

func newLook(e *engine.Engine) *look { return &look{source: e, plan: e.Plan().Internal()} }

// now gives what is to be seen.
func (l *look) now(now time.Time) *sight {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen != nil && now.Sub(l.seen.at) < lookLives {
		return l.seen
	}
	s := &sight{at: now}
	s.sizes, _ = l.sizes.take(l, now, l.source.StoreSizes) // what can't be read is told by the tasks
	s.members, s.problem = l.group.take(l, now, l.source.Members)
	s.stats = l.source.Stats()
	if l.older != nil && now.Sub(l.older.at) < rateForgets {
		s.rates = ratesBetween(l.older, s)
	}
	if l.older == nil || now.Sub(l.older.at) >= rateOver {
		l.older = s
	}
	l.seen = s
	return s
}

// ratesBetween gives the records a second of the tasks that were there at both times.
func ratesBetween(older, newer *sight) map[string]float64 {
	span := newer.at.Sub(older.at)
	if span < rateOver {
		return older.rates // what was known then
	}
	before := make(map[string]int64, len(older.stats.Tasks))
	for i := range older.stats.Tasks {
		before[older.stats.Tasks[i].Name] = older.stats.Tasks[i].Processed
	}
	rates := make(map[string]float64, len(newer.stats.Tasks))
	for i := range newer.stats.Tasks {
		t := &newer.stats.Tasks[i]
		if n, known := before[t.Name]; known && t.Processed >= n {
			rates[t.Name] = float64(t.Processed-n) / span.Seconds()
		}
	}
	return rates
}

// picture gives what a request has chosen to see.
func (l *look) picture(now time.Time, c choice) *picture {
	return newPicture(l.plan, l.source.Instance(), l.now(now), c)
}
