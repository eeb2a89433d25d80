package measure

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is what /proc counts CPU time in (USER_HZ), on every Linux that Go runs on.
const ticksPerSecond = 100

// BrokerEnv names the environment variable with the broker's process id.
const BrokerEnv = "BROKER_PID"

// Snapshot is what had been used at a moment, in seconds of CPU.
type Snapshot struct {
	At      time.Time
	Self    float64
	Broker  float64
	Machine float64
	GC      float64
	Mallocs uint64
}

// Take takes a snapshot.
func Take() Snapshot {
	s := Snapshot{At: time.Now(), Self: selfCPU(), Machine: machineCPU(), GC: gcCPU()}
	if pid := os.Getenv(BrokerEnv); pid != "" {
		s.Broker = processCPU(pid)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.Mallocs = m.Mallocs
	return s
}

func selfCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return seconds(u.Utime) + seconds(u.Stime)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

func processCPU(pid string) float64 {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before may hold anything
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	return ticks(f[11]) + ticks(f[12])
}

func machineCPU() float64 {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	f := strings.Fields(line)
	if len(f) < 9 {
		return 0
	}
	return ticks(f[1]) + ticks(f[2]) + ticks(f[3]) + ticks(f[6]) + ticks(f[7])
}

func ticks(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return n / ticksPerSecond
}

// gcCPU is an estimate by the runtime, as of the last collection, without what it does on processors that are idle anyway.
func gcCPU() float64 {
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() != metrics.KindFloat64 {
			return 0
		}
	}
	return samples[0].Value.Float64() - samples[1].Value.Float64()
}

// PeakMemory is the largest resident size of the own process so far, in MB (2^20 bytes).
func PeakMemory() int { return statusMB("VmHWM:") }

// Memory is the resident size now, in MB.
func Memory() int { return statusMB("VmRSS:") }

func statusMB(field string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				kb, _ := strconv.Atoi(f[0])
				return kb / 1024
			}
		}
	}
	return 0
}

// Load is the machine's load over the last minute.
func Load() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	n, _ := strconv.ParseFloat(first, 64)
	return n
}

// DirSize is the number of bytes of the files below a directory.
func DirSize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // files may go while they are counted
		}
		if i, err := d.Info(); err == nil {
			n += i.Size()
		}
		return nil
	})
	return n
}
