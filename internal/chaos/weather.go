package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// event is a kind of weather.
type event struct {
	name   string
	weight int
	on     func(*weather, int) (back func() error, after time.Duration, err error)
	broker bool
}

// The events. Each happens to something that is well, and has an end that makes it well again.
var events = []event{
	{name: "instance killed", weight: 6, on: (*weather).killInstance},
	{name: "instance stopped beyond its session", weight: 3, on: (*weather).zombie},
	{name: "instance stopped for a moment", weight: 2, on: (*weather).hiccup},
	{name: "instance closed and started again", weight: 3, on: (*weather).scale},
	{name: "broker killed", weight: 3, on: (*weather).killBroker, broker: true},
	{name: "broker stopped for a while", weight: 2, on: (*weather).pauseBroker, broker: true},
	{name: "broker restarted", weight: 1, on: (*weather).restartBroker, broker: true},
}

// weather makes things happen to instances and brokers.
type weather struct {
	rnd       *rand.Rand
	log       *slog.Logger
	kafka     *realkafka.Cluster
	brokers   int
	instances []*child.Process // the last one is an extra that comes and goes
	zombies   bool             // may instances be stopped beyond their session?

	mu      sync.Mutex
	busy    map[string]bool // what is not well
	counts  map[string]int
	errs    []error
	struck  time.Time // when the last strike at a broker was over
	healing sync.WaitGroup
}

func newWeather(seed uint64, cfg *Config, kafka *realkafka.Cluster, instances []*child.Process) *weather {
	return &weather{
		rnd: rand.New(rand.NewPCG(seed, 2)), log: cfg.Log, kafka: kafka, brokers: brokerCount, instances: instances, zombies: !cfg.NoZombies,
		busy: map[string]bool{}, counts: map[string]int{},
	}
}

// blow makes events happen until ctx ends, and waits until all is well again.
func (w *weather) blow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			w.healing.Wait()
			return
		case <-time.After(w.between(300*time.Millisecond, 2500*time.Millisecond)):
			w.revive()
			w.happen()
		}
	}
}

func (w *weather) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rnd.Int64N(int64(to-from)))
}

// revive starts instances again that have ended by themselves, which they must not.
func (w *weather) revive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.instances {
		if w.busy[fmt.Sprint("instance ", i)] || p.Running() {
			continue
		}
		last := child.LastLines(string(p.Log()), 1)
		w.log.Error("an instance has ended by itself", "which", i, "last", last)
		w.errs = append(w.errs, fmt.Errorf("instance %d has ended by itself: %s", i, last), p.Restart())
	}
}

// happen draws an event and what it happens to. If that isn't well, nothing happens.
func (w *weather) happen() {
	total := 0
	for _, e := range events {
		total += e.weight
	}
	draw := w.rnd.IntN(total)
	for _, e := range events {
		if draw -= e.weight; draw < 0 {
			w.start(e)
			return
		}
	}
}

func (w *weather) start(e event) {
	i, key := w.rnd.IntN(len(w.instances)), ""
	if e.broker {
		i, key = 1+w.rnd.IntN(w.brokers), "broker" // one at a time, so that a majority is always there
	} else {
		key = fmt.Sprint("instance ", i)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[key] || !e.broker && !w.instances[i].Running() {
		return
	}
	back, after, err := e.on(w, i)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("%s: %w", e.name, err))
		return
	}
	w.log.Info(e.name, "which", i, "for", after.Round(10*time.Millisecond))
	w.counts[e.name]++
	w.busy[key] = true
	w.healing.Go(func() { w.heal(e, i, key, back, after) })
}

func (w *weather) heal(e event, i int, key string, back func() error, after time.Duration) {
	time.Sleep(after)
	err := back()
	w.log.Debug("over: "+e.name, "which", i)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, key)
	if e.broker {
		w.struck = time.Now()
	}
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("after %s: %w", e.name, err))
	}
}

func (w *weather) killInstance(i int) (func() error, time.Duration, error) {
	w.instances[i].Kill()
	return w.instances[i].Restart, w.between(0, 6*time.Second), nil
}

func (w *weather) zombie(i int) (func() error, time.Duration, error) {
	if !w.zombies {
		return w.hiccup(i)
	}
	return w.stop(i, w.between(sessionTimeout+time.Second, 3*sessionTimeout))
}

func (w *weather) hiccup(i int) (func() error, time.Duration, error) {
	return w.stop(i, w.between(200*time.Millisecond, sessionTimeout/2))
}

func (w *weather) stop(i int, d time.Duration) (func() error, time.Duration, error) {
	err := w.instances[i].Signal(syscall.SIGSTOP)
	return func() error { return w.instances[i].Signal(syscall.SIGCONT) }, d, err
}

// scale closes an instance in order; another one, or the same with its state, comes later.
func (w *weather) scale(i int) (func() error, time.Duration, error) {
	p := w.instances[i]
	ended := make(chan error, 1)
	go func() { ended <- w.close(p) }()
	return func() error {
		err := <-ended
		if err != nil {
			err = fmt.Errorf("closing instance %d: %w", i, err)
		}
		return errors.Join(err, p.Restart())
	}, w.between(time.Second, 8*time.Second), nil
}

// aftermath is how long after a strike at a broker leaders may still be elected, and groups and transactions loaded.
const aftermath = 15 * time.Second

// close ends an instance in order. A strike at a broker, meanwhile or shortly before, may cost it its last commit; nothing else may, and an error of another
// kind no strike explains.
func (w *weather) close(p *child.Process) error {
	began := time.Now()
	err := p.Stop(stopLimit)
	if err == nil {
		return nil
	}
	last := child.LastLines(string(p.Log()), 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasPrefix(last, brokersLacked) && (w.busy["broker"] || w.struck.After(began.Add(-aftermath))) {
		return nil
	}
	return fmt.Errorf("%w: %s", err, last)
}

func (w *weather) killBroker(i int) (func() error, time.Duration, error) {
	return func() error { return w.kafka.Restart(i) }, w.between(500*time.Millisecond, 8*time.Second), w.kafka.Kill9(i)
}

// pauseBroker stops a broker for less than its session, or for more.
func (w *weather) pauseBroker(i int) (func() error, time.Duration, error) {
	return func() error { return w.kafka.Resume(i) }, w.between(time.Second, 10*time.Second), w.kafka.Pause(i)
}

func (w *weather) restartBroker(i int) (func() error, time.Duration, error) {
	return func() error { return w.kafka.Restart(i) }, 0, nil
}
