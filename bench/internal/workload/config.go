package workload

import "time"

// Config says what one run is.
type Config struct {
	Workload    string
	Brokers     []string
	Application string // its topics and group begin with this
	Out         string // the output topic
	StateDir    string
	Commit      time.Duration
	Memory      int64 // the engine's budget, in bytes; 0: none
	// Launched is when the process was asked for: start-up is counted from there. Zero: unknown.
	Launched time.Time
	// KillAt kills the own process without warning once so many records are processed. 0: never.
	KillAt int64
	// Profile is a directory for cpu.pprof and allocs.pprof of the measured span. Empty: none.
	Profile string
	// ProfileStart profiles the start, until the engine runs, in place of what follows.
	ProfileStart bool

	// Of scaling:
	Topic  string        // the input
	Skip   int64         // so many records are processed before what is measured
	Window time.Duration // size of the windows
	Start  string        // a file: nothing is processed before it exists. Empty: don't wait

	// Of the harness:
	Records, Keys int
	Rounds        int
	OnDisk        bool
}

func (c Config) profileOfStart() string {
	if c.ProfileStart {
		return c.Profile
	}
	return ""
}

func (c Config) profileOfWork() string {
	if c.ProfileStart {
		return ""
	}
	return c.Profile
}
