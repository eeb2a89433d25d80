package readers

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Readers is a running helper process with both readers loaded. It ends with the test that opened it. Its methods may be called
// concurrently; requests are answered one after the other.
type Readers struct {
	mu     sync.Mutex
	stdin  io.WriteCloser
	stdout *bufio.Reader
	errors string // file with what the process wrote to standard error
}

// Open starts the readers, or skips the test where they can't be had. The first call on a machine downloads them.
func Open(t testing.TB) *Readers {
	t.Helper()
	python, err := environment()
	if err != nil {
		unavailable(t, err)
	}
	// Not T.TempDir: the file must outlive the process, which ends in a cleanup that may run after it is removed.
	stderr, err := os.CreateTemp(t.TempDir(), "readers-*.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	cmd := exec.Command(python, "-c", program)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		stdin.Close() // the process ends at the end of its input
		_ = cmd.Wait()
	})
	r := &Readers{stdin: stdin, stdout: bufio.NewReader(stdout), errors: stderr.Name()}
	if _, err := r.ask(request{Op: "ping"}); err != nil {
		unavailable(t, err)
	}
	return r
}

// request is one line to the helper process.
type request struct {
	Op      string   `json:"op"`
	Table   string   `json:"table,omitempty"`
	Version *int64   `json:"version,omitempty"`
	Txns    []string `json:"txns,omitempty"`
	SQL     string   `json:"sql,omitempty"`
	Program string   `json:"program,omitempty"`
}

func (r *Readers) ask(q request) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if _, err := r.stdin.Write(append(line, '\n')); err != nil {
		return nil, r.ended(err)
	}
	reply, err := r.stdout.ReadBytes('\n')
	if err != nil {
		return nil, r.ended(err)
	}
	var answer struct {
		Result json.RawMessage
		Error  string
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Result, nil
}

func (r *Readers) ended(err error) error {
	said, _ := os.ReadFile(r.errors)
	return errors.Join(errEnded, err, errors.New(strings.TrimSpace(string(said))))
}

// into asks and decodes the answer. Numbers in untyped places stay json.Number.
func (r *Readers) into(q request, out any) error {
	abs, err := filepath.Abs(q.Table)
	if err != nil {
		return err
	}
	q.Table = abs
	result, err := r.ask(q)
	if err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(result)))
	d.UseNumber()
	return d.Decode(out)
}

// Option asks delta-rs for more.
type Option func(*request)

// Txns asks for the progress of application ids.
func Txns(appIDs ...string) Option { return func(q *request) { q.Txns = append(q.Txns, appIDs...) } }

// Query asks for the rows of an SQL query (DataFusion) in which the table is named t.
func Query(sql string) Option { return func(q *request) { q.SQL = sql } }

// Version asks for an older version.
func Version(v int64) Option { return func(q *request) { q.Version = &v } }

// DeltaRS reads a table with delta-rs and fails the test if that fails.
func (r *Readers) DeltaRS(t testing.TB, table string, opts ...Option) *DeltaTable {
	t.Helper()
	d, err := r.TryDeltaRS(table, opts...)
	if err != nil {
		t.Fatalf("delta-rs can't read %s: %v", table, err)
	}
	return d
}

// TryDeltaRS is DeltaRS for tests in which the table may be unreadable.
func (r *Readers) TryDeltaRS(table string, opts ...Option) (*DeltaTable, error) {
	q := request{Op: "deltaRS", Table: table}
	for _, o := range opts {
		o(&q)
	}
	d := &DeltaTable{}
	return d, r.into(q, d)
}

// DuckDB runs a query in which the table is named t, and fails the test if that fails.
func (r *Readers) DuckDB(t testing.TB, table, sql string) *Result {
	t.Helper()
	res := &Result{}
	if err := r.into(request{Op: "duckDB", Table: table, SQL: sql}, res); err != nil {
		t.Fatalf("DuckDB can't read %s: %v", table, err)
	}
	return res
}

// Python runs the text of a Python program in the helper process, with the modules deltalake, duckdb and pa (pyarrow) imported and
// the table's path in the variable table, and decodes its variable out into out (nil to drop it): for tests in which others
// write.
func (r *Readers) Python(t testing.TB, table, text string, out any) {
	t.Helper()
	if out == nil {
		out = new(any)
	}
	if err := r.into(request{Op: "python", Table: table, Program: text}, out); err != nil {
		t.Fatalf("Python program on %s: %v", table, err)
	}
}
