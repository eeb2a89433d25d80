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

// process is a helper process that answers requests, one after the other. It ends with the test that started it.
type process struct {
	mu     sync.Mutex
	stdin  io.WriteCloser
	stdout *bufio.Reader
	errors string // file with what the process wrote to standard error
}

var errEnded = errors.New("the helper process ended")

// start starts a program and waits until it answers.
func start(t testing.TB, python, program string, args ...string) (*process, error) {
	t.Helper()
	stderr, err := os.CreateTemp(t.TempDir(), "readers-*.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	cmd := exec.Command(python, append([]string{"-c", serveProgram + "\n\n" + program}, args...)...)
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
		return nil, err
	}
	t.Cleanup(func() {
		stdin.Close() // the process ends at the end of its input
		_ = cmd.Wait()
	})
	p := &process{stdin: stdin, stdout: bufio.NewReader(stdout), errors: stderr.Name()}
	_, err = p.ask(request{Op: "ping"})
	return p, err
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

func (p *process) ask(q request) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		return nil, p.ended(err)
	}
	reply, err := p.stdout.ReadBytes('\n')
	if err != nil {
		return nil, p.ended(err)
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

func (p *process) ended(err error) error {
	said, _ := os.ReadFile(p.errors)
	return errors.Join(errEnded, err, errors.New(strings.TrimSpace(string(said))))
}

// into asks and decodes the answer. Numbers in untyped places stay json.Number.
func (p *process) into(q request, out any) error {
	abs, err := filepath.Abs(q.Table)
	if err != nil {
		return err
	}
	q.Table = abs
	result, err := p.ask(q)
	if err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(result)))
	d.UseNumber()
	return d.Decode(out)
}

// python runs the text of a Python program in the process and decodes its variable out.
func (p *process) python(t testing.TB, table, text string, out any) {
	t.Helper()
	if out == nil {
		out = new(any)
	}
	if err := p.into(request{Op: "python", Table: table, Program: text}, out); err != nil {
		t.Fatalf("Python program on %s: %v", table, err)
	}
}

// Option asks delta-rs or Spark for more.
type Option func(*request)

// Txns asks for the progress of application ids.
func Txns(appIDs ...string) Option { return func(q *request) { q.Txns = append(q.Txns, appIDs...) } }

// Query asks for the rows of an SQL query in which the table is named t.
func Query(sql string) Option { return func(q *request) { q.SQL = sql } }

// Version asks for an older version.
func Version(v int64) Option { return func(q *request) { q.Version = &v } }

func (p *process) table(op, table string, opts []Option) (*Table, error) {
	q := request{Op: op, Table: table}
	for _, o := range opts {
		o(&q)
	}
	d := &Table{}
	return d, p.into(q, d)
}
