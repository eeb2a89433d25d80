package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// newRegistry makes the registry of an instance's metrics. Most are read from Stats when they are asked for.
func newRegistry(e *Engine) *prometheus.Registry {
	labels := prometheus.Labels{"application": e.plan.ApplicationID}
	reg := prometheus.NewRegistry()
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "tributary_commit_duration_seconds", Help: "Time that a commit took, with the workers stopped.", ConstLabels: labels,
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	})
	e.stats.observe = func(d time.Duration) { latency.Observe(d.Seconds()) }
	reg.MustRegister(slices.Concat(ofProcess(), []prometheus.Collector{latency, newStatsCollector(e, labels)})...)
	return reg
}

// ofProcess are the metrics that all instances of a process share. They are made once: the Go runtime's names some hundred metrics, and looks for
// each by regular expressions.
var ofProcess = sync.OnceValue(func() []prometheus.Collector {
	return []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
})

// Registry is where the metrics of the instance are, for an application to add its own or to serve them elsewhere.
func (e *Engine) Registry() *prometheus.Registry { return e.reg }

// statsCollector turns Stats into metrics.
type statsCollector struct {
	e     *Engine
	descs []*prometheus.Desc

	heartbeatAge                                                 *prometheus.Desc
	state, tasks, processed, produced, commits, aborted, dropped *prometheus.Desc
	lag, position, streamTime, inputTime, holds, enforced        *prometheus.Desc
	restored, restoredBytes, restoreLeft, restoreTime            *prometheus.Desc
	restoreRecords, restoreBytes, checkpointLeft                 *prometheus.Desc
	otherVersions, standbys, standbyLag, standbyRecords          *prometheus.Desc
	ckptMade, ckptSent, ckptAdopted, ckptFailed, ckptReceived    *prometheus.Desc
	ckptKept                                                     *prometheus.Desc
	lakeCommits, lakeRows, lakeRetries, lakeFenced, lakeOpen     *prometheus.Desc
	lakeVersion, lakeTime, lakeEarly, lakeParked                 *prometheus.Desc
	taskParked                                                   *prometheus.Desc
	memory                                                       *prometheus.Desc
}

func newStatsCollector(e *Engine, labels prometheus.Labels) *statsCollector {
	c := &statsCollector{e: e}
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		d := prometheus.NewDesc("tributary_"+name, help, variable, labels)
		c.descs = append(c.descs, d)
		return d
	}
	c.state = desc("state", "1 for the state that the instance is in.", "state")
	c.heartbeatAge = desc("heartbeat_age_seconds", "Seconds since the group's coordinator last took a heartbeat, or a join; missing before the first.")
	c.tasks = desc("tasks", "Tasks of this instance, by whether they run or are brought up to date.", "phase")
	c.processed = desc("processed_records_total", "Input records processed, work that was done twice included.")
	c.produced = desc("produced_records_total", "Records in committed transactions, changelogs included.")
	c.commits = desc("commits_total", "Commits.")
	c.aborted = desc("aborted_commits_total", "Commits whose work was taken back.")
	c.dropped = desc("dropped_records_total", "Records left out, by node and reason.", "node", "reason")
	c.lag = desc("input_lag_records", "Records of an input partition that wait to be processed.", "topic", "partition")
	c.position = desc("input_position", "The next offset of an input partition to be processed.", "topic", "partition")
	c.streamTime = desc("task_stream_time_seconds", "The largest event time that a task has seen, as a Unix time.", "task")
	c.inputTime = desc("input_time_seconds", "The largest event time processed of an input partition, as a Unix time.", "topic", "partition")
	c.holds = desc("input_holds_back_seconds", "For how long an empty input partition has kept its task from the records of others.", "topic", "partition")
	c.enforced = desc("task_enforced_records_total", "Records processed although an input was still empty after MaxTaskIdle.", "task")
	c.restoreRecords = desc("restore_records_total", "Records put into stores by restores, of tasks, standbys and global tables.")
	c.restoreBytes = desc("restore_bytes_total", "Bytes of keys and values put into stores by restores, of tasks, standbys and global tables.")
	c.restored = desc("restored_records", "Records put into stores by the last restore of a task.", "task")
	c.restoredBytes = desc("restored_bytes", "Bytes of keys and values put into stores by the last restore of a task.", "task")
	c.restoreLeft = desc("restore_left_offsets", "Changelog offsets still to be restored.", "task")
	c.restoreTime = desc("restore_time_left_seconds", "How long the rest of a restore takes at its pace so far.", "task")
	c.checkpointLeft = desc("checkpoint_left_bytes", "Bytes still to come of a checkpoint that a task is fetching.", "task")
	c.otherVersions = desc("other_versions", "1 while members of the group run another version of the topology, as far as this one knows.")
	c.standbys = desc("standbys", "Copies of tasks that run elsewhere, by whether they follow or are restored.", "phase")
	c.standbyLag = desc("standby_lag_records", "Changelog offsets that a copy is behind, as far as known.", "task")
	c.standbyRecords = desc("standby_records_total", "Changelog records applied to copies that follow.")
	c.ckptMade = desc("checkpoints_made_total", "Checkpoints of tasks made for other instances.")
	c.ckptSent = desc("checkpoint_sent_bytes_total", "Bytes of checkpoints sent to other instances.")
	c.ckptAdopted = desc("checkpoints_adopted_total", "Checkpoints of others that replaced local state.")
	c.ckptFailed = desc("checkpoint_failures_total", "Tries to take a checkpoint over, or to keep one, that failed.")
	c.ckptKept = desc("checkpoints_kept_total", "Checkpoints put into the object store.")
	c.ckptReceived = desc("checkpoint_received_bytes_total", "Bytes of checkpoints received.")
	c.lakeCommits = desc("lake_commits_total", "Commits to a table.", "sink")
	c.lakeRows = desc("lake_rows_total", "Rows landed in a table.", "sink")
	c.lakeRetries = desc("lake_retries_total", "Commits to a table that were tried again.", "sink")
	c.lakeFenced = desc("lake_fenced_total", "Batches dropped because another writer had moved the table's progress.", "sink")
	c.lakeOpen = desc("lake_open_rows", "Rows that wait in the open batch of a table.", "sink")
	c.lakeVersion = desc("lake_table_version", "Version of a table after the last commit.", "sink")
	c.lakeTime = desc("lake_last_commit_timestamp_seconds", "When the last commit to a table was, as a Unix time.", "sink")
	c.lakeParked = desc("lake_parked_seconds", "For how long a table has refused rows, or could not be opened; 0 while rows land.", "sink")
	c.taskParked = desc("task_parked_seconds", "For how long a lake task has been parked, or has waited to make its next row; 0 while it goes on.", "task")
	c.memory = desc("memory_bytes", "What is kept in memory of what the memory budget divides, by part.", "part")
	c.lakeEarly = desc("lake_sealed_early_total", "Batches closed early for lack of memory.")
	return c
}

// Describe implements prometheus.Collector.
func (c *statsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statsCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.e.Stats()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for i, name := range stateNames {
		v := 0.0
		if State(i) == s.State {
			v = 1
		}
		gauge(c.state, v, name)
	}
	if !s.Heard.IsZero() {
		gauge(c.heartbeatAge, max(0, time.Since(s.Heard).Seconds()))
	}
	for part, bytes := range map[string]int64{"rows": s.Memory.Rows, "cache": s.Memory.Cache, "spare": s.Memory.Spare, "write": s.Memory.Write, "input": s.Memory.Input} {
		gauge(c.memory, float64(bytes), part)
	}
	running := 0
	for _, t := range s.Tasks {
		if t.Running {
			running++
		}
		c.collectTask(gauge, t)
		count(c.enforced, t.Enforced, t.Name)
		if t.Lake {
			gauge(c.taskParked, c.since(t.Parked, t.ParkedSince), t.Name)
		}
	}
	gauge(c.tasks, float64(running), "running")
	gauge(c.tasks, float64(len(s.Tasks)-running), "opening")
	gauge(c.otherVersions, float64(min(1, len(s.OtherVersions))))
	following := 0
	for _, t := range s.Standbys {
		if t.Following {
			following++
		}
		if t.Lag >= 0 {
			gauge(c.standbyLag, float64(t.Lag), t.Name)
		}
	}
	gauge(c.standbys, float64(following), "following")
	gauge(c.standbys, float64(len(s.Standbys)-following), "restoring")
	count(c.standbyRecords, s.StandbyRecords)
	count(c.restoreRecords, s.RestoredRecords)
	count(c.restoreBytes, s.RestoredBytes)
	count(c.ckptMade, s.Checkpoints.Made)
	count(c.ckptSent, s.Checkpoints.SentBytes)
	count(c.ckptAdopted, s.Checkpoints.Adopted)
	count(c.ckptFailed, s.Checkpoints.Failed)
	count(c.ckptKept, s.Checkpoints.Kept)
	count(c.ckptReceived, s.Checkpoints.ReceivedBytes)
	count(c.processed, s.Processed)
	count(c.produced, s.Produced)
	count(c.commits, s.Commits)
	count(c.aborted, s.Aborted)
	count(c.lakeEarly, c.e.stats.sealedEarly.Load())
	for _, d := range s.Dropped {
		count(c.dropped, d.Count, d.Node, d.Reason)
	}
	for _, l := range s.Lake {
		count(c.lakeCommits, l.Commits, l.Sink)
		count(c.lakeRows, l.Rows, l.Sink)
		count(c.lakeRetries, l.Retries, l.Sink)
		count(c.lakeFenced, l.Fenced, l.Sink)
		gauge(c.lakeOpen, float64(l.OpenRows), l.Sink)
		gauge(c.lakeVersion, float64(l.Version), l.Sink)
		gauge(c.lakeParked, c.since(l.Parked, l.ParkedSince), l.Sink)
		if !l.LastCommit.IsZero() {
			gauge(c.lakeTime, float64(l.LastCommit.UnixMilli())/1000, l.Sink)
		}
	}
}

// since is for how many seconds something has been parked; 0 without a reason.
func (c *statsCollector) since(reason error, at time.Time) float64 {
	if reason == nil {
		return 0
	}
	return max(0, c.e.cfg.clock().Sub(at).Seconds())
}

func (c *statsCollector) collectTask(gauge func(*prometheus.Desc, float64, ...string), t TaskStats) {
	if t.StreamTime >= 0 {
		gauge(c.streamTime, float64(t.StreamTime)/1000, t.Name)
	}
	c.collectRestore(gauge, t)
	for _, in := range t.Inputs {
		if in.Position < 0 {
			continue
		}
		partition := itoa(in.Partition)
		gauge(c.lag, float64(in.Lag), in.Topic, partition)
		gauge(c.position, float64(in.Position), in.Topic, partition)
		if in.Time >= 0 {
			gauge(c.inputTime, float64(in.Time)/1000, in.Topic, partition)
		}
		holds := 0.0
		if !in.HoldsSince.IsZero() {
			holds = max(0, c.e.cfg.clock().Sub(in.HoldsSince).Seconds())
		}
		gauge(c.holds, holds, in.Topic, partition)
	}
}

// collectRestore gives how far a task's last restore has come. How long it still takes is left out while that can't be told.
func (c *statsCollector) collectRestore(gauge func(*prometheus.Desc, float64, ...string), t TaskStats) {
	r := t.Restore
	if r.CheckpointTotal > 0 {
		gauge(c.checkpointLeft, float64(max(0, r.CheckpointTotal-r.CheckpointBytes)), t.Name)
	}
	if !r.Active && r.Records == 0 {
		return
	}
	gauge(c.restored, float64(r.Records), t.Name)
	gauge(c.restoredBytes, float64(r.Bytes), t.Name)
	gauge(c.restoreLeft, float64(r.Left), t.Name)
	if r.Left == 0 || r.TimeLeft > 0 {
		gauge(c.restoreTime, r.TimeLeft.Seconds(), t.Name)
	}
}
