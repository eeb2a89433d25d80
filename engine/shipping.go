package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/checkpoint"
	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/storehttp"
	"github.com/tributary-io/tributary/state"
)

// ShipCheckpoints lets instances give each other state as files: one that would have to restore much of a task first asks those that have it
// for a checkpoint of their database, takes that over, and reads only the rest from the changelogs. Where that fails the changelogs do. It
// works over the instances' HTTP servers (HTTP, Advertise), which show all state to whoever can reach them then; so it is off by default.
func ShipCheckpoints() Option { return func(c *config) { c.ship = true } }

// shipping is what giving and taking checkpoints needs.
type shipping struct {
	desk  atomic.Pointer[checkpoint.Desk] // nil unless the instance runs with ShipCheckpoints
	vault *checkpoint.Vault               // nil without KeepCheckpoints

	adopted, failed, received atomic.Int64 // checkpoints, tries, bytes
	keptCount                 atomic.Int64 // checkpoints put into the vault
}

// How checkpoints are fetched and kept.
const (
	checkpointsDir    = "checkpoints"
	incomingSuffix    = ".incoming"
	checkpointFresh   = 15 * time.Second
	checkpointIdle    = time.Minute
	filesAtOnce       = 3
	originsLook       = 250 * time.Millisecond
	originsLookFor    = 5 * time.Second
	checkpointGain    = 2 // a checkpoint has to save this part of what is to be read, at least: 1/2
	fetchAttempts     = 5
	fetchPause        = 200 * time.Millisecond
	fetchStall        = 20 * time.Second
	firstAnswerWithin = 2 * time.Minute // making a checkpoint, and once more reading it for its checksums
)

// openDesk lets others have checkpoints. Those that a killed process was still taking over are removed.
func (e *Engine) openDesk(started *closers) error {
	halves, _ := filepath.Glob(filepath.Join(e.appDir(), "*"+incomingSuffix)) // the pattern is fine
	for _, dir := range halves {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove half a checkpoint: %w", err)
		}
	}
	if e.cfg.vault != nil {
		e.shipping.vault = checkpoint.NewVault(e.cfg.vault, e.plan.ApplicationID)
	}
	if !e.cfg.ship {
		return nil
	}
	if e.advertised() == "" {
		e.log.Warn("ShipCheckpoints without an address: this instance takes checkpoints from others and gives none; set HTTP or Advertise")
	}
	desk, err := checkpoint.NewDesk(checkpoint.DeskConfig{
		Dir: filepath.Join(e.appDir(), checkpointsDir), Take: e.takeCheckpoint, Fresh: checkpointFresh, Idle: checkpointIdle, Log: e.log,
	})
	if err != nil {
		return err
	}
	e.shipping.desk.Store(desk)
	started.add(desk.Close)
	return nil
}

// serveCheckpoints adds the paths of checkpoints.
func (e *Engine) serveCheckpoints(mux *http.ServeMux) {
	at := func(serve func(*checkpoint.Desk, http.ResponseWriter, *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			desk := e.shipping.desk.Load()
			switch app := r.Header.Get(storehttp.ApplicationHeader); {
			case app != e.plan.ApplicationID:
				http.Error(w, "this is an instance of "+e.plan.ApplicationID+", not of "+app, http.StatusMisdirectedRequest)
			case desk == nil:
				http.Error(w, "the instance isn't running yet", http.StatusServiceUnavailable)
			default:
				serve(desk, w, r)
			}
		}
	}
	mux.HandleFunc("GET /checkpoints/{task}", at((*checkpoint.Desk).ServeManifest))
	mux.HandleFunc("GET /checkpoints/{task}/{id}", at((*checkpoint.Desk).ServeWhole))
	mux.HandleFunc("GET /checkpoints/{task}/{id}/{file}", at((*checkpoint.Desk).ServeFile))
	mux.HandleFunc("DELETE /checkpoints/{task}/{id}", at((*checkpoint.Desk).Release))
}

// takeCheckpoint makes a checkpoint of a task that runs here, or of a standby.
func (e *Engine) takeCheckpoint(name, dir string) (*checkpoint.Manifest, error) {
	at, err := assign.ParseTaskID(name)
	if err != nil {
		return nil, &checkpoint.NotHereError{Task: name}
	}
	id := taskID(at)
	lease, ok := e.queries.tasks.Acquire(id)
	if !ok {
		if lease, ok = e.queries.copies.Acquire(id); !ok {
			return nil, &checkpoint.NotHereError{Task: name}
		}
	}
	err = lease.View().Checkpoint(dir)
	lease.Release()
	if err != nil {
		return nil, err
	}
	m := e.manifestFor(e.catalog().tasks[id])
	if m.Offsets, err = state.InspectCheckpoint(dir, e.resources); err != nil {
		return nil, fmt.Errorf("look at the checkpoint that was made: %w", err)
	}
	m.Taken = e.cfg.clock()
	return m, nil
}

// manifestFor says what a checkpoint of a task is, as far as that doesn't depend on the checkpoint.
func (e *Engine) manifestFor(spec *taskSpec) *checkpoint.Manifest {
	m := &checkpoint.Manifest{
		Application: e.plan.ApplicationID, Task: spec.id.String(), Topics: map[string]string{},
		Signature: fmt.Sprintf("%016x", e.catalog().signatures[int32(spec.id.Subtopology)]),
	}
	for _, s := range e.storeSpecs(spec) {
		if topic := e.plan.Stores[s.Name].Changelog; topic != "" {
			m.Topics[topic] = fmt.Sprintf("%x", e.catalog().id(topic))
		}
	}
	return m
}

// adoptCheckpoint replaces the runner's state by a checkpoint if others have one that saves much of the restore. It gives where the changelogs
// begin and end by then. What goes wrong with checkpoints is logged, and leaves all to the changelogs; the error is about the local state.
func (e *Engine) adoptCheckpoint(ctx context.Context, r *runner, s *starts) (*starts, error) {
	if !e.cfg.ship && e.shipping.vault == nil || r.spec.id.Subtopology < 0 || e.missing(r, s, r.db.Offset) <= e.cfg.spread.AcceptableLag {
		return s, nil
	}
	origins, err := e.checkpointOrigins(ctx, r)
	if err != nil {
		e.log.Warn("who has checkpoints can't be found out", "task", taskOf(r.spec.id), "error", err)
	}
	if e.shipping.vault != nil {
		origins = append(origins, e.shipping.vault.Origin(r.spec.id.String()))
	}
	for _, from := range origins {
		fresh, err := e.adoptFrom(ctx, r, s, from)
		var broken *localStateError
		if err == nil || errors.As(err, &broken) || ctx.Err() != nil {
			return fresh, err
		}
		e.shipping.failed.Add(1)
		e.log.Warn("no checkpoint from there", "task", taskOf(r.spec.id), "from", from.String(), "error", err)
	}
	if len(origins) > 0 {
		e.log.Warn("no checkpoint can be had: the state is restored from changelogs", "task", taskOf(r.spec.id), "asked", len(origins))
	}
	return s, nil
}

// missing is how many offsets the runner's stores lack from where they are. One that doesn't fit its changelog lacks all of it, since it is built
// anew, and the others what they lack.
func (e *Engine) missing(r *runner, s *starts, at func(string) (int64, bool)) (n int64) {
	spans, stale := e.spansFrom(r, s, at)
	if stale != nil {
		spans, _ = e.spansFrom(r, s, func(store string) (int64, bool) {
			offset, ok := at(store)
			return offset, ok && !slices.Contains(stale.stores, store)
		})
	}
	for _, sp := range spans {
		n += max(0, sp.To-sp.From)
	}
	return n
}

// checkpointOrigins lists where checkpoints of a task may be had: standbys first, since that disturbs nobody. A new instance has to wait for
// the end of the rebalance that it came with to learn who they are.
func (e *Engine) checkpointOrigins(ctx context.Context, r *runner) ([]checkpoint.Origin, error) {
	if !e.cfg.ship {
		return nil, nil
	}
	client := &http.Client{Transport: e.queries.client.Transport}
	header := http.Header{storehttp.ApplicationHeader: {e.plan.ApplicationID}}
	for waited := time.Duration(0); ; waited += originsLook {
		seen, err := e.queries.holders.Look(ctx, 0)
		if err != nil {
			return nil, err
		}
		if seen == nil && waited < originsLookFor {
			if err := sleep(ctx, originsLook); err != nil {
				return nil, err
			}
			continue
		}
		candidates := seen.Copies(assignID(r.spec.id))
		if h, ok := seen.Of(assignID(r.spec.id)); ok {
			candidates = append(candidates[:len(candidates):len(candidates)], h)
		}
		var all []checkpoint.Origin
		for _, h := range candidates {
			if h.Endpoint != "" && h.Endpoint != e.advertised() {
				all = append(all, &checkpoint.HTTPOrigin{Client: client, Base: h.URL(), Task: r.spec.id.String(), Header: header})
			}
		}
		return all, nil
	}
}

// localStateError says that the local state can't be used any more.
type localStateError struct{ err error }

func (e *localStateError) Error() string { return e.err.Error() }
func (e *localStateError) Unwrap() error { return e.err }

// adoptFrom takes a checkpoint over from one origin, if it fits and is worth it.
func (e *Engine) adoptFrom(ctx context.Context, r *runner, s *starts, from checkpoint.Origin) (*starts, error) {
	began := e.cfg.clock()
	asking, cancel := context.WithTimeout(ctx, firstAnswerWithin)
	m, err := from.Manifest(asking)
	cancel()
	if err != nil {
		return s, err
	}
	defer from.Done(context.WithoutCancel(ctx), m)
	fresh, err := e.startsNow(ctx, r, s) // a checkpoint of a task that runs is ahead of what was read before
	if err != nil {
		return s, err
	}
	if err := e.fits(r, fresh, m); err != nil {
		return s, err
	}
	e.log.Info("taking a checkpoint over", "task", taskOf(r.spec.id), "standby", r.copy, "from", from.String(), "bytes", m.Bytes(), "files", len(m.Files))
	r.restore.ship(m.Bytes(), e.cfg.clock())
	defer r.restore.ship(0, time.Time{})
	dir := e.taskDir(r.spec.id) + incomingSuffix
	err = checkpoint.Fetch(ctx, from, m, dir, checkpoint.FetchConfig{
		AtOnce: filesAtOnce, Attempts: fetchAttempts, Pause: fetchPause, Stall: fetchStall, Sums: firstAnswerWithin,
		Progress: func(n int64) { e.checkpointComes(r, from, n) },
	})
	if err == nil {
		err = e.verify(dir, m)
	}
	if err != nil {
		return s, errors.Join(err, os.RemoveAll(dir))
	}
	if err := e.replaceState(ctx, r, dir); err != nil {
		return s, &localStateError{fmt.Errorf("replace state by a checkpoint: %w", err)}
	}
	took := e.cfg.clock().Sub(began)
	e.shipping.adopted.Add(1)
	e.log.Info("checkpoint taken over", "task", taskOf(r.spec.id), "standby", r.copy, "from", from.String(), "bytes", m.Bytes(),
		"took", took.Round(time.Millisecond), "left_to_read", e.missing(r, fresh, r.db.Offset))
	e.restoring(RestoreEvent{Task: taskOf(r.spec.id), Standby: r.copy, Phase: CheckpointAdopted, Bytes: m.Bytes(), From: from.String(), Took: took,
		Left: e.missing(r, fresh, r.db.Offset)})
	return fresh, nil
}

// startsNow reads anew where the runner's changelogs begin and end.
func (e *Engine) startsNow(ctx context.Context, r *runner, s *starts) (*starts, error) {
	if r.copy {
		return e.readStandbyStarts(ctx, r)
	}
	fresh, err := e.newStarts(ctx, r, s)
	if err != nil {
		return nil, err
	}
	fresh.high, err = fetch.Bounds(ctx, e.restoreClient, fetch.High, e.changelogs(r))
	return fresh, err
}

// UnfitCheckpointError says why a checkpoint isn't taken over.
type UnfitCheckpointError struct{ Why string }

func (e *UnfitCheckpointError) Error() string { return "the checkpoint doesn't fit: " + e.Why }

// fits checks that a checkpoint is one of this task as this instance knows it, within its changelogs, and worth the transfer.
func (e *Engine) fits(r *runner, s *starts, m *checkpoint.Manifest) error {
	want := e.manifestFor(r.spec)
	if m.Application != want.Application || m.Task != want.Task {
		return &UnfitCheckpointError{fmt.Sprintf("it is of task %s of %s", m.Task, m.Application)}
	}
	if m.Signature != want.Signature {
		return &UnfitCheckpointError{"it is of another version of the topology"}
	}
	for topic, id := range want.Topics {
		if m.Topics[topic] != id {
			return &UnfitCheckpointError{fmt.Sprintf("topic %s was made anew since: it has id %s here, and %q there", topic, id, m.Topics[topic])}
		}
	}
	at := offsetsIn(r, m)
	if _, stale := e.spansFrom(r, s, at); stale != nil {
		return &UnfitCheckpointError{stale.Error()}
	}
	if left, all := e.missing(r, s, at), e.missing(r, s, r.db.Offset); left > all-all/checkpointGain {
		return &UnfitCheckpointError{fmt.Sprintf("it would leave %d of %d records to be read", left, all)}
	}
	return nil
}

// offsetsIn gives the offsets that a checkpoint has of a runner's stores. Those in memory aren't in it.
func offsetsIn(r *runner, m *checkpoint.Manifest) func(store string) (int64, bool) {
	return func(store string) (int64, bool) {
		spec, _ := r.db.Spec(store)
		at, ok := m.Offsets[store]
		return at, ok && at != state.NoOffset && !spec.InMemory
	}
}

// verify checks that what came is a database with the offsets that the manifest promised.
func (e *Engine) verify(dir string, m *checkpoint.Manifest) error {
	offsets, err := state.InspectCheckpoint(dir, e.resources)
	if err != nil {
		return err
	}
	for store, at := range m.Offsets {
		if offsets[store] != at {
			return fmt.Errorf("store %s is at offset %d in the checkpoint, and at %d by its manifest", store, offsets[store], at)
		}
	}
	return nil
}

// replaceState puts the database in dir in the place of the runner's.
func (e *Engine) replaceState(ctx context.Context, r *runner, dir string) error {
	if err := r.db.Close(); err != nil {
		return err
	}
	r.db = nil
	place := e.taskDir(r.spec.id)
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	e.step(stepAdopting)
	if err := os.Rename(dir, place); err != nil {
		return err
	}
	return e.openStores(ctx, r)
}
