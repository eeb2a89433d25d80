package readers

import (
	"path/filepath"
	"testing"

	"github.com/tributary-io/tributary/internal/pyenv"
)

// process is a helper process that answers requests about Delta tables. It ends with the test that started it.
type process struct{ *pyenv.Helper }

// start starts a program and waits until it answers.
func start(t testing.TB, python, program string, args ...string) (process, error) {
	t.Helper()
	h, err := pyenv.Serve(python, program, args...)
	if err != nil {
		return process{}, err
	}
	t.Cleanup(h.Close)
	return process{h}, nil
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

// into asks and decodes the answer.
func (p process) into(q request, out any) error {
	abs, err := filepath.Abs(q.Table)
	if err != nil {
		return err
	}
	q.Table = abs
	return p.AskInto(q, out)
}

// python runs the text of a Python program in the process and decodes its variable out.
func (p process) python(t testing.TB, table, text string, out any) {
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

func (p process) table(op, table string, opts []Option) (*Table, error) {
	q := request{Op: op, Table: table}
	for _, o := range opts {
		o(&q)
	}
	d := &Table{}
	return d, p.into(q, d)
}
