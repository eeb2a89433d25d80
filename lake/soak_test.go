package lake

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

const (
	// soakVariable names the folder that a child process of the soak lands rows in, and behind a space its partition.
	soakVariable = "LAKE_TEST_SOAKS_IN"
	// soakCommits is the variable with the number of versions that the soak goes on for; `make lake-soak` sets it.
	soakCommits = "TRIBUTARY_LAKE_SOAK"
	// soakCompactVariable names the folder of the table that a child process of the soak compacts.
	soakCompactVariable = "LAKE_TEST_COMPACTS"
	soakShort           = 120
)

// soakRow is a row of the soak.
type soakRow struct {
	P int32  `lake:"p"`
	O int64  `lake:"o"`
	D string `lake:"d,partition"`
	S string `lake:"s"`
}

// soakUntilKilled lands records of one input partition, by soakRows or changeRows, until the process is killed.
func soakUntilKilled(place string, land func(dir string, p int32) error) {
	i := strings.LastIndexByte(place, ' ')
	n, err := strconv.ParseInt(place[i+1:], 10, 32)
	if err == nil {
		err = land(place[:i], int32(n))
	}
	sinktest.ExitUnless(err)
}

// soakRows lands rows, a few at a time.
func soakRows(dir string, p int32) error {
	w, err := tryOpen[string, soakRow](soakSink(dir), testEnv())
	if err != nil {
		return err
	}
	return sinktest.Advance(w, part(p), 1<<40, 20, func(b sink.Batch, o int64) error {
		return b.Append(nil, &soakRow{p, o, fmt.Sprint("d", o%3), "some text of the row"}, meta(o))
	})
}

func soakSink(dir string) sink.Sink {
	return Delta(dir, Properties(map[string]string{"delta.checkpointInterval": "20", "delta.checkpointPolicy": "v2", "delta.logRetentionDuration": "interval 1 hours"}))
}

// soak is a table that two processes land records in, one of which is killed now and then.
type soak struct {
	t        *testing.T
	dir      string
	variable string // that tells the processes what to do
	children [2]*exec.Cmd
}

func (s *soak) start(p int) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprint(s.variable, "=", s.dir, " ", p))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.children[p] = cmd
}

func (s *soak) kill(p int) {
	cmd := s.children[p]
	if cmd == nil {
		return
	}
	s.children[p] = nil
	_ = cmd.Process.Kill() // it may have ended by itself, which Wait tells
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		s.t.Errorf("the landing process of partition %d ended by itself: %v", p, err)
	}
}

// memory is the resident memory of a child in MB, 0 where the system doesn't tell.
func (s *soak) memory(p int) (mb int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.children[p].Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			mb = kb / 1024
		}
	}
	return mb
}

// TestSoak lands rows from two processes while the table is compacted and vacuumed, and kills one of them, and compactions, again and again. Then DuckDB
// closes the books: every offset up to the table's progress has its row, once.
func TestSoak(t *testing.T) {
	r := readers.Open(t)
	s := &soak{t: t, dir: t.TempDir(), variable: soakVariable}
	w, err := tryOpen[string, soakRow](soakSink(s.dir), testEnv()) // makes the table
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.run()
	s.close(r)
}

// run lets both processes land until the table has so many versions.
func (s *soak) run() {
	s.t.Helper()
	versions := int64(soakShort)
	if text := os.Getenv(soakCommits); text != "" {
		var err error
		if versions, err = strconv.ParseInt(text, 10, 64); err != nil {
			s.t.Fatal(err)
		}
	}
	defer func() { s.kill(0); s.kill(1) }()
	s.start(0)
	s.start(1)
	start := time.Now()
	done := s.watch(versions)
	s.t.Logf("%d versions in %v, %s", versions, time.Since(start).Round(time.Second), done)
}

// soakCounts says what was done.
type soakCounts struct {
	kills, compactions, conflicts, vacuums int
	filesBefore, filesAfter, deleted       int
	early, late                            int // memory of the process that isn't killed, MB
}

func (c soakCounts) String() string {
	return fmt.Sprintf("%d kills, %d compactions of %d files to %d with %d conflicts, %d vacuums of %d files, memory of the process that isn't killed %d MB after a tenth and %d MB at the end",
		c.kills, c.compactions, c.filesBefore, c.filesAfter, c.conflicts, c.vacuums, c.deleted, c.early, c.late)
}

// watch does what is due by the table's version: a kill for each thirtieth of the way, a compaction for each twentieth, a vacuum for each tenth.
func (s *soak) watch(versions int64) (c soakCounts) {
	store, err := object.NewLocal(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	step := max(versions/60, 5)
	last, moved := int64(0), time.Now()
	sampled := soakSample{at: time.Now()}
	for done := int64(0); done < versions; {
		head, err := table.Refresh(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if head.Version != last {
			last, moved = head.Version, time.Now()
		} else if time.Since(moved) > 8*time.Minute {
			s.t.Fatalf("no version after %d in eight minutes", last)
		}
		for ; done+step <= head.Version && done < versions; done += step {
			if done/step%6 == 0 {
				sampled = s.sample(store, head, sampled)
			}
			s.step(&c, store, table, int(done/step))
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.late = s.memory(1)
	return c
}

// soakSample is where the soak was at a moment.
type soakSample struct {
	at      time.Time
	version int64
}

// sample logs what may grow: memory, the log, a checkpoint, the time of a commit and that of opening the table.
func (s *soak) sample(store object.Store, head *delta.Head, last soakSample) soakSample {
	s.t.Helper()
	now := soakSample{time.Now(), head.Version}
	var objects int
	var size, checkpoint int64
	for info, err := range store.List(ctx, "_delta_log/", "") {
		if err != nil {
			s.t.Fatal(err)
		}
		objects++
		size += info.Size
		if strings.Contains(info.Name, ".checkpoint.") {
			checkpoint = info.Size
		}
	}
	if _, err := delta.Open(ctx, store, delta.Options{}); err != nil {
		s.t.Fatal(err)
	}
	open := time.Since(now.at)
	perVersion := now.at.Sub(last.at) / time.Duration(max(now.version-last.version, 1))
	s.t.Logf("version %d: %v a version, opened in %v, %d objects of %d KB in the log, the newest checkpoint %d KB, memory %d MB", now.version,
		perVersion.Round(100*time.Microsecond), open.Round(100*time.Microsecond), objects, size>>10, checkpoint>>10, s.memory(1))
	return now
}

// killCompaction starts a process that compacts the table, and kills it at some moment.
func (s *soak) killCompaction() {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), soakCompactVariable+"="+s.dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(20*time.Millisecond + rand.N(150*time.Millisecond))
	_ = cmd.Process.Kill() // it may have ended by itself, which Wait tells
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		s.t.Errorf("the compacting process ended by itself: %v", err)
	}
}

// compactUntilKilled compacts a table again and again.
func compactUntilKilled(dir string) error {
	for {
		if _, err := Optimize(ctx, dir, OptimizeOptions{}); err != nil {
			return err
		}
	}
}

func (s *soak) step(c *soakCounts, store object.Store, table *delta.Table, n int) {
	if n == 6 {
		c.early = s.memory(1)
	}
	if n%2 == 1 {
		s.kill(0)
		s.start(0)
		c.kills++
	}
	if n%3 == 2 {
		s.killCompaction()
		res := optimize(s.t, store, OptimizeOptions{})
		c.compactions++
		c.conflicts += res.Conflicts
		c.filesBefore += res.FilesRemoved
		c.filesAfter += res.FilesAdded
	}
	if n%6 == 5 {
		res, err := table.Vacuum(ctx, delta.VacuumOptions{Retention: time.Millisecond, Force: true, InFlight: 10 * time.Minute})
		if err != nil {
			s.t.Fatal(err)
		}
		c.vacuums++
		c.deleted += res.Removed + res.Orphans
	}
}

// close has DuckDB count, and compares with the table's progress.
func (s *soak) close(r *readers.Readers) {
	info, err := Show(ctx, s.dir, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(info.Progress) != 2 {
		s.t.Fatalf("progress %+v", info.Progress)
	}
	for _, p := range info.Progress {
		q := fmt.Sprintf("select count(*) as n, count(distinct o) as d, coalesce(max(o), -1) as top from t where p = %d", p.Partition)
		row := r.DuckDB(s.t, s.dir, q).Rows[0]
		if n, d, top := row.Int(s.t, "n"), row.Int(s.t, "d"), row.Int(s.t, "top"); n != p.Next || d != p.Next || top != p.Next-1 {
			s.t.Errorf("partition %d: DuckDB finds %d rows of %d offsets up to %d, the table's progress is %d", p.Partition, n, d, top, p.Next)
		}
	}
	s.t.Logf("%d rows in %d files, version %d", info.Rows, info.Files, info.Version)
}
