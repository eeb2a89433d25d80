package engine

import (
	"sync"
	"time"

	"github.com/tributary-io/tributary/engine/internal/checkpoint"
)

// restoreProgress is how far a runner's stores are restored. Any goroutine may look.
type restoreProgress struct {
	mu      sync.Mutex
	active  bool
	over    bool  // has been, to the end
	records int64 // put into stores
	bytes   int64 // of their keys and values
	left    int64 // offsets still to be read
	all     int64 // offsets that were to be read
	began   time.Time
	took    time.Duration // once it has ended
	told    time.Time     // when it was last said how far it is

	shipped, shipping int64     // bytes of a checkpoint that have come, and of all of it
	sent              time.Time // when the checkpoint began to come
}

// beginRestore notes and tells that so many offsets are about to be read for a runner's stores.
func (e *Engine) beginRestore(r *runner, offsets int64) {
	r.restore.start(offsets, e.cfg.clock())
	e.restoring(RestoreEvent{Task: taskOf(r.spec.id), Standby: r.copy, Phase: RestoreBegan, Left: offsets})
}

// restored notes what was just put into a runner's stores, and tells now and then how far it is.
func (e *Engine) restored(r *runner, records, bytes int, offsets int64) {
	e.stats.restoredRecords.Add(int64(records))
	e.stats.restoredBytes.Add(int64(bytes))
	now := e.cfg.clock()
	if r.restore.add(records, bytes, offsets, now, e.cfg.reportEvery) {
		e.tellRestore(r, RestoreGoesOn, "state is being restored", now)
	}
}

// endRestore notes and tells that all has been read.
func (e *Engine) endRestore(r *runner, message string) {
	now := e.cfg.clock()
	r.restore.finish(now)
	e.tellRestore(r, RestoreEnded, message, now)
}

// tellRestore tells the listener how far a restore is, and the log unless there was nothing to restore.
func (e *Engine) tellRestore(r *runner, phase RestorePhase, message string, now time.Time) {
	p := r.restore.seen(now)
	event := RestoreEvent{
		Task: taskOf(r.spec.id), Standby: r.copy, Phase: phase, Records: p.Records, Bytes: p.Bytes, Left: p.Left, Took: p.Took, Rate: p.Rate, TimeLeft: p.TimeLeft,
	}
	e.restoring(event)
	if phase == RestoreEnded && event.Records == 0 {
		return
	}
	said := []any{"task", event.Task, "standby", event.Standby, "records", event.Records, "bytes", event.Bytes, "records_per_second", int64(event.Rate),
		"took", event.Took.Round(time.Millisecond)}
	if phase == RestoreGoesOn {
		said = append(said, "offsets_left", event.Left, "time_left", event.TimeLeft.Round(time.Second))
	}
	e.log.Info(message, said...)
}

// checkpointComes notes that bytes of a checkpoint have come, and tells now and then how far it is. Several goroutines call it.
func (e *Engine) checkpointComes(r *runner, from checkpoint.Origin, bytes int64) {
	e.shipping.received.Add(bytes)
	event, total, due := r.restore.shippedMore(bytes, e.cfg.clock(), e.cfg.reportEvery)
	if !due {
		return
	}
	event.Task, event.Standby, event.From = taskOf(r.spec.id), r.copy, from.String()
	e.restoring(event)
	e.log.Info("a checkpoint is coming", "task", event.Task, "standby", event.Standby, "from", event.From, "bytes", event.Bytes, "of_bytes", total,
		"bytes_per_second", int64(float64(event.Bytes)/max(event.Took.Seconds(), 0.001)), "time_left", event.TimeLeft.Round(time.Second))
}

// RestoreStats is a picture of the last restore of a task or a standby from its changelogs, of the one that is going on if there is one.
type RestoreStats struct {
	Active  bool  // it is going on
	Records int64 // put into stores
	Bytes   int64 // of their keys and values
	Left    int64 // changelog offsets still to be read
	Total   int64 // changelog offsets that were to be read when it began
	Began   time.Time
	Took    time.Duration // until it ended, or so far
	// Rate is how many records a second it was.
	Rate float64
	// TimeLeft is how long what is left takes if it goes on as it did so far; 0 when nothing is left, and while nothing has been read.
	TimeLeft time.Duration
	// CheckpointBytes are the bytes that have come of a checkpoint of another instance that is being fetched, CheckpointTotal all of its bytes;
	// both are 0 otherwise.
	CheckpointBytes, CheckpointTotal int64
}

// seen gives a picture.
func (p *restoreProgress) seen(now time.Time) RestoreStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := RestoreStats{
		Active: p.active, Records: p.records, Bytes: p.bytes, Left: p.left, Total: p.all, Began: p.began, Took: p.took, CheckpointBytes: p.shipped, CheckpointTotal: p.shipping,
	}
	if p.active && !p.over {
		s.Took = now.Sub(p.began)
	}
	if seconds := s.Took.Seconds(); seconds > 0 {
		s.Rate = float64(p.records) / seconds
	}
	if read := p.all - p.left; p.active && read > 0 {
		s.TimeLeft = time.Duration(float64(s.Took) * float64(p.left) / float64(read))
	}
	return s
}

func (p *restoreProgress) start(offsets int64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active, p.over, p.records, p.bytes, p.left, p.all, p.began, p.told, p.took = true, false, 0, 0, offsets, offsets, now, now, 0
}

// add notes what was read. due tells that it is time to say how far it is.
func (p *restoreProgress) add(records, bytes int, offsets int64, now time.Time, every time.Duration) (due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records += int64(records)
	p.bytes += int64(bytes)
	p.left = max(0, p.left-offsets)
	if now.Sub(p.told) < every {
		return false
	}
	p.told = now
	return true
}

// finish notes that all has been read.
func (p *restoreProgress) finish(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.left, p.took = true, 0, now.Sub(p.began)
}

// end notes that nothing more is read, whatever the reason.
func (p *restoreProgress) end(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = false
	if !p.over {
		p.took = now.Sub(p.began)
	}
}

// ship notes that a checkpoint of so many bytes is coming; 0 ends it.
func (p *restoreProgress) ship(bytes int64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shipped, p.shipping, p.sent, p.told = 0, bytes, now, now
}

// shippedMore notes that bytes of the checkpoint have come. due tells that it is time to say how far it is, which is in event; total is all of it.
func (p *restoreProgress) shippedMore(bytes int64, now time.Time, every time.Duration) (event RestoreEvent, total int64, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shipped += bytes
	if now.Sub(p.told) < every || p.shipped <= 0 {
		return RestoreEvent{}, 0, false
	}
	p.told = now
	event = RestoreEvent{Phase: CheckpointComes, Bytes: p.shipped, Took: now.Sub(p.sent)}
	event.TimeLeft = time.Duration(float64(event.Took) * float64(max(0, p.shipping-p.shipped)) / float64(p.shipped))
	return event, p.shipping, true
}
