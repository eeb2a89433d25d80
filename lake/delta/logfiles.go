package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

const (
	logDir         = "_delta_log/"
	sidecarDir     = logDir + "_sidecars/"
	lastCheckpoint = logDir + "_last_checkpoint"
	versionDigits  = 20
)

func logName(version int64, suffix string) string {
	return fmt.Sprintf("%s%0*d%s", logDir, versionDigits, version, suffix)
}

func commitName(version int64) string     { return logName(version, ".json") }
func checksumName(version int64) string   { return logName(version, ".crc") }
func checkpointName(version int64) string { return logName(version, ".checkpoint.parquet") }

// logKind is what a file of the log is, by its name.
type logKind int

const (
	kindOther logKind = iota
	kindCommit
	kindChecksum
	kindClassic   // N.checkpoint.parquet
	kindMultipart // N.checkpoint.O.P.parquet
	kindV2        // N.checkpoint.UUID.parquet or .json
	kindCompacted // X.Y.compacted.json
)

// logFile is a file of the log.
type logFile struct {
	name        string // with the log's folder
	version     int64  // of compacted files, the first
	kind        logKind
	part, parts int // of multi-part checkpoints
	size        int64
	modified    time.Time
}

// parseLogName tells what a file in the log's folder is.
func parseLogName(name string) logFile {
	f := logFile{name: name}
	base := strings.TrimPrefix(name, logDir)
	digits, rest, _ := strings.Cut(base, ".")
	version, ok := parseVersion(digits)
	if !ok {
		return f
	}
	f.version = version
	words := strings.Split(rest, ".")
	switch {
	case rest == "json":
		f.kind = kindCommit
	case rest == "crc":
		f.kind = kindChecksum
	case rest == "checkpoint.parquet":
		f.kind = kindClassic
	case len(words) == 3 && words[0] == "checkpoint" && (words[2] == "parquet" || words[2] == "json"):
		f.kind = kindV2
	case len(words) == 4 && words[0] == "checkpoint" && words[3] == "parquet":
		part, ok1 := parseVersion(strings.Repeat("0", max(0, versionDigits-len(words[1]))) + words[1])
		parts, ok2 := parseVersion(strings.Repeat("0", max(0, versionDigits-len(words[2]))) + words[2])
		if ok1 && ok2 && part >= 1 && part <= parts && parts <= maxParts {
			f.kind, f.part, f.parts = kindMultipart, int(part), int(parts)
		}
	case len(words) == 3 && words[1] == "compacted" && words[2] == "json":
		f.kind = kindCompacted
	}
	return f
}

// maxParts bounds the parts of a checkpoint, against names that would make us allocate without end.
const maxParts = 1_000_000

func parseVersion(digits string) (int64, bool) {
	if len(digits) != versionDigits {
		return 0, false
	}
	var n int64
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' || n > (1<<63-1-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// checkpoint is a complete checkpoint: one file, or all parts of a multi-part one.
type checkpoint struct {
	version int64
	files   []logFile
}

func (c *checkpoint) String() string { return c.files[0].name }

// logListing is what one listing of the log found, each in ascending order.
type logListing struct {
	commits     []logFile
	checksums   []logFile
	checkpoints []checkpoint // of one version, later ones are preferred
	others      []logFile    // compacted files
}

// listLog lists the log from a version on.
func listLog(ctx context.Context, store object.Store, from int64) (*logListing, error) {
	l := &logListing{}
	parts := map[string][]logFile{} // of multi-part checkpoints, by version and number of parts
	// The names of all files of a version start with its digits and a dot, which is less than any digit.
	after := strings.TrimSuffix(logName(from, ""), ".")
	for info, err := range store.List(ctx, logDir, after) {
		if err != nil {
			return nil, fmt.Errorf("list the log: %w", err)
		}
		if c := info.Name[len(logDir)]; c > '9' {
			break // _last_checkpoint, _sidecars and the like sort behind all versions
		}
		f := parseLogName(info.Name)
		f.size, f.modified = info.Size, info.Modified
		l.add(f, parts)
	}
	slices.SortStableFunc(l.checkpoints, func(a, b checkpoint) int {
		if a.version != b.version {
			return int(min(max(a.version-b.version, -1), 1))
		}
		return int(a.files[0].kind) - int(b.files[0].kind)
	})
	return l, nil
}

func (l *logListing) add(f logFile, parts map[string][]logFile) {
	switch f.kind {
	case kindCommit:
		l.commits = append(l.commits, f)
	case kindChecksum:
		l.checksums = append(l.checksums, f)
	case kindClassic, kindV2:
		if f.size > 0 {
			l.checkpoints = append(l.checkpoints, checkpoint{f.version, []logFile{f}})
		}
	case kindMultipart:
		key := fmt.Sprint(f.version, "/", f.parts)
		parts[key] = append(parts[key], f)
		if len(parts[key]) == f.parts {
			l.checkpoints = append(l.checkpoints, checkpoint{f.version, parts[key]})
		}
	case kindCompacted:
		l.others = append(l.others, f)
	}
}

// newest returns the newest version that the listing shows, -1 for none.
func (l *logListing) newest() int64 {
	v := int64(-1)
	if n := len(l.commits); n > 0 {
		v = l.commits[n-1].version
	}
	if n := len(l.checkpoints); n > 0 {
		v = max(v, l.checkpoints[n-1].version)
	}
	return v
}

// errGap says that a listing lacks a commit between others. A folder's listing is no snapshot: of two commits that are made while it is read, it may
// show the second one only. So a gap counts only if another listing has it, too.
var errGap = errors.New("a commit is missing between others")

// lacks is the error of a listing without a version.
func lacks(v, last int64) error {
	return fmt.Errorf("the log lacks version %d, which is needed to rebuild version %d: %w", v, last, errGap)
}

// tail returns the commits first..last, or an error that names the first missing one.
func (l *logListing) tail(first, last int64) ([]logFile, error) {
	if first > last {
		return nil, nil
	}
	i, found := slices.BinarySearchFunc(l.commits, first, func(f logFile, v int64) int { return int(min(max(f.version-v, -1), 1)) })
	if !found {
		return nil, lacks(first, last)
	}
	for v := first; v <= last; v++ {
		if j := i + int(v-first); j >= len(l.commits) || l.commits[j].version != v {
			return nil, lacks(v, last)
		}
	}
	return l.commits[i : i+int(last-first)+1], nil
}
