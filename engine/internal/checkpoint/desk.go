package checkpoint

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Desk makes and serves checkpoints. Its paths are
//
//	GET    /checkpoints/{task}              the manifest of a checkpoint, made for the purpose or a moment ago;
//	                                        at once, without checksums, with ?sums=later
//	GET    /checkpoints/{task}/{id}         the manifest of that checkpoint, with checksums
//	GET    /checkpoints/{task}/{id}/{file}  a file of it, whole or in part (Range)
//	DELETE /checkpoints/{task}/{id}         the one who asked for it doesn't need it any more
//
// A checkpoint that nobody has asked for in a while is removed. Its methods may be called from any goroutine.
type Desk struct {
	cfg DeskConfig

	Taken, Sent atomic.Int64 // checkpoints made; bytes of files sent

	making sync.Mutex // one at a time
	mu     sync.Mutex
	kept   map[string]*kept // by id
	closed bool

	summing sync.WaitGroup
	life    context.Context // of what reads checksums
	end     context.CancelFunc
}

// DeskConfig says where checkpoints are made, and how.
type DeskConfig struct {
	Dir string // on the disk of the state; what is in it belongs to the desk
	// Take makes a checkpoint of a task in dir, which doesn't exist, and says what it is, but for its id and files. An error is told to
	// the one who asks: *NotHereError if the task isn't here.
	Take func(task, dir string) (*Manifest, error)
	// Fresh is how long a checkpoint is given to others who ask, too; Idle how long one is kept that nobody reads.
	Fresh, Idle time.Duration
	Log         *slog.Logger
}

// NotHereError says that the state of a task can't be had from this instance.
type NotHereError struct{ Task string }

func (e *NotHereError) Error() string { return "the state of task " + e.Task + " isn't here" }

// kept is a checkpoint that can be read.
type kept struct {
	manifest *Manifest                 // without checksums
	whole    func() (*Manifest, error) // with them, as soon as they are there
	dir      string
	made     time.Time
	files    map[string]bool
	timer    *time.Timer
	users    int // that were given the manifest, and haven't said that they are through
	open     int // requests that read it
}

// NewDesk makes a desk. What a former one has left in its directory is removed. Close it.
func NewDesk(cfg DeskConfig) (*Desk, error) {
	if err := os.RemoveAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("remove old checkpoints: %w", err)
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory for checkpoints: %w", err)
	}
	d := &Desk{cfg: cfg, kept: map[string]*kept{}}
	d.life, d.end = context.WithCancel(context.Background())
	return d, nil
}

// Close removes all checkpoints. Those who read one get an error. It waits for one that is just being made.
func (d *Desk) Close() error {
	d.end()
	d.making.Lock()
	defer d.making.Unlock()
	d.summing.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for id, k := range d.kept {
		k.timer.Stop()
		delete(d.kept, id)
	}
	return os.RemoveAll(d.cfg.Dir)
}

// ServeManifest answers with the manifest of a checkpoint of the task.
func (d *Desk) ServeManifest(w http.ResponseWriter, r *http.Request) {
	k, err := d.take(r.PathValue("task"))
	if err != nil {
		status := http.StatusInternalServerError
		if _, absent := err.(*NotHereError); absent {
			status = http.StatusNotFound
		}
		http.Error(w, err.Error(), status)
		return
	}
	if r.FormValue("sums") == "later" {
		answer(w, k.manifest, nil)
		return
	}
	if k = d.use(r.PathValue("task"), k.manifest.ID); k == nil { // while it is summed up nobody fetches from it
		http.Error(w, gone, http.StatusGone)
		return
	}
	defer d.release(k)
	m, err := k.whole()
	answer(w, m, err)
}

// ServeWhole answers with the manifest of a checkpoint that was made before, with its checksums.
func (d *Desk) ServeWhole(w http.ResponseWriter, r *http.Request) {
	k := d.use(r.PathValue("task"), r.PathValue("id"))
	if k == nil {
		http.Error(w, gone, http.StatusGone)
		return
	}
	defer d.release(k)
	m, err := k.whole()
	answer(w, m, err)
}

const gone = "there is no such checkpoint (any more)"

func answer(w http.ResponseWriter, m *Manifest, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m) // the one who asked may have gone
}

// take gives a checkpoint of a task.
func (d *Desk) take(task string) (*kept, error) {
	d.making.Lock()
	defer d.making.Unlock()
	if k, err := d.fresh(task); k != nil || err != nil {
		return k, err
	}
	began := time.Now()
	k, err := d.make(task)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k.timer = time.AfterFunc(d.cfg.Idle, func() { d.expire(k) })
	d.kept[k.manifest.ID] = k
	d.Taken.Add(1)
	d.cfg.Log.Info("checkpoint made for another instance", "task", task, "files", len(k.manifest.Files), "bytes", k.manifest.Bytes(), "took", time.Since(began).Round(time.Millisecond))
	return k, nil
}

// fresh finds a checkpoint that will do.
func (d *Desk) fresh(task string) (*kept, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, &NotHereError{task}
	}
	for _, k := range d.kept {
		if k.manifest.Task == task && time.Since(k.made) < d.cfg.Fresh {
			k.users++
			k.timer.Reset(d.cfg.Idle)
			return k, nil
		}
	}
	return nil, nil
}

func (d *Desk) make(task string) (*kept, error) {
	id := newID()
	k := &kept{dir: filepath.Join(d.cfg.Dir, id), made: time.Now(), files: map[string]bool{}, users: 1}
	m, err := d.cfg.Take(task, k.dir)
	if err == nil {
		m.ID, m.SumsLater = id, true
		err = m.list(k.dir)
	}
	if err != nil {
		_ = os.RemoveAll(k.dir)
		return nil, err
	}
	for _, f := range m.Files {
		k.files[f.Name] = true
	}
	k.manifest = m
	k.whole = sync.OnceValues(func() (*Manifest, error) {
		whole := *m
		whole.SumsLater, whole.Files = false, slices.Clone(m.Files)
		return &whole, whole.sum(d.life, k.dir)
	})
	d.summing.Go(func() { _, _ = k.whole() }) // whoever asks for it is told the error
	return k, nil
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// expire drops a checkpoint that nobody reads.
func (d *Desk) expire(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed || d.kept[k.manifest.ID] != k:
	case k.open > 0:
		k.timer.Reset(d.cfg.Idle)
	default:
		d.drop(k)
	}
}

func (d *Desk) drop(k *kept) {
	k.timer.Stop()
	delete(d.kept, k.manifest.ID)
	if err := os.RemoveAll(k.dir); err != nil {
		d.cfg.Log.Warn("a checkpoint can't be removed", "directory", k.dir, "error", err)
	}
}

// ServeFile answers with a file of a checkpoint.
func (d *Desk) ServeFile(w http.ResponseWriter, r *http.Request) {
	k, f := d.open(r.PathValue("task"), r.PathValue("id"), r.PathValue("file"))
	if f == nil {
		http.Error(w, gone, http.StatusGone)
		return
	}
	defer f.Close()
	defer d.release(k)
	w.Header().Set("Content-Type", "application/octet-stream")
	counted := &countingWriter{ResponseWriter: w, n: &d.Sent}
	http.ServeContent(counted, r, "", time.Time{}, f)
}

func (d *Desk) open(task, id, name string) (*kept, *os.File) {
	k := d.use(task, id)
	if k == nil {
		return nil, nil
	}
	if k.files[name] {
		if f, err := os.Open(filepath.Join(k.dir, name)); err == nil {
			return k, f
		}
	}
	d.release(k)
	return nil, nil
}

// use keeps a checkpoint from being removed until it is released; nil if there is no such one.
func (d *Desk) use(task, id string) *kept {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[id]
	if k == nil || k.manifest.Task != task {
		return nil
	}
	k.open++
	return k
}

func (d *Desk) release(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k.open--
	k.timer.Reset(d.cfg.Idle)
}

// Release tells that one who asked for a checkpoint has it whole.
func (d *Desk) Release(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.kept[r.PathValue("id")]; k != nil && k.manifest.Task == r.PathValue("task") {
		if k.users--; k.users <= 0 && k.open == 0 {
			d.drop(k)
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// countingWriter counts what is sent.
type countingWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.n.Add(int64(n))
	return n, err
}

// ReadFrom lets the server send a file without copying it.
func (w *countingWriter) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, r)
	w.n.Add(n)
	return n, err
}
