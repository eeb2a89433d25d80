package icebergreaders

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-io/tributary/internal/pyenv"
)

//go:embed requirements.txt
var requirements string

//go:embed serve.py
var program string

//go:embed rest.py
var restProgram string

// Catalog says where PyIceberg finds tables.
type Catalog struct {
	Name       string            `json:"name"`
	Properties map[string]string `json:"properties"`
}

// SQLite is a catalog in an SQLite file; warehouse is a folder.
func SQLite(file, warehouse string) Catalog {
	return Catalog{"default", map[string]string{"type": "sql", "uri": "sqlite:///" + file, "warehouse": "file://" + warehouse}}
}

// REST is a catalog behind an URL.
func REST(uri string) Catalog {
	return Catalog{"rest", map[string]string{"type": "rest", "uri": uri}}
}

// Readers is a running helper process. Its methods may be called concurrently; requests are answered one after the other.
type Readers struct {
	mu sync.Mutex
	*process
}

// process is a running Python program. It ends at the end of its input: when it is closed, or when this process ends.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *os.File
}

// shared is one helper for all tests of a test binary: its start takes seconds.
var shared = sync.OnceValues(func() (*Readers, error) {
	p, err := start(program)
	if err != nil {
		return nil, err
	}
	r := &Readers{process: p}
	_, err = r.ask(request{Op: "ping"})
	return r, err
})

// Open starts the readers, or skips the test where they can't be had. The first call on a machine downloads them.
func Open(t testing.TB) *Readers {
	t.Helper()
	r, err := shared()
	if err != nil {
		unavailable(t, err)
	}
	return r
}

// start runs a Python program.
func start(program string, args ...string) (*process, error) {
	python, err := pyenv.Python(context.Background(), "iceberg-readers", requirements)
	if err != nil {
		return nil, err
	}
	said, err := os.CreateTemp("", "iceberg-readers-*.txt")
	if err != nil {
		return nil, err
	}
	defer os.Remove(said.Name()) // what it holds is read through the open file
	p := &process{cmd: exec.Command(python, append([]string{"-c", program}, args...)...), stderr: said}
	p.cmd.Stderr = said
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdout = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// said is what the process wrote to standard error.
func (p *process) said() string {
	text, _ := io.ReadAll(io.NewSectionReader(p.stderr, 0, 1<<20))
	return strings.TrimSpace(string(text))
}

func (p *process) close() {
	p.stdin.Close()
	_ = p.cmd.Wait()
	p.stderr.Close()
}

// unavailable skips the test, or fails it where the readers are required.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("TRIBUTARY_REQUIRE_READERS") != "" {
		t.Fatalf("the independent Iceberg readers are required (TRIBUTARY_REQUIRE_READERS), but can't be had: %v", err)
	}
	t.Skipf("SKIPPED: the independent Iceberg readers can't be had, so nobody else reads what this test writes: %v", err)
}

// request is one line to the helper process.
type request struct {
	Op      string  `json:"op"`
	Catalog Catalog `json:"catalog"`
	Table   string  `json:"table,omitempty"`
	Filter  string  `json:"filter,omitempty"`
	SQL     string  `json:"sql,omitempty"`
	Program string  `json:"program,omitempty"`
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
	return fmt.Errorf("the helper process ended: %w: %s", err, r.said())
}

// Table is one table as PyIceberg and DuckDB see it, at the moment of each call.
type Table struct {
	t       testing.TB
	r       *Readers
	catalog Catalog
	name    string
}

// Table names a table.
func (r *Readers) Table(t testing.TB, c Catalog, name string) *Table { return &Table{t, r, c, name} }

func (t *Table) into(q request, out any) {
	t.t.Helper()
	q.Catalog, q.Table = t.catalog, t.name
	result, err := t.r.ask(q)
	if err != nil {
		t.t.Fatalf("%s on table %s: %v", q.Op, t.name, err)
	}
	d := json.NewDecoder(strings.NewReader(string(result)))
	d.UseNumber()
	if err := d.Decode(out); err != nil {
		t.t.Fatalf("%s on table %s: %v", q.Op, t.name, err)
	}
}

// Row is a row by column name. Numbers are json.Number, times are texts.
type Row = map[string]any

// Info is what PyIceberg says of a table.
type Info struct {
	Location, Metadata string
	Properties         map[string]string
	Columns            []struct {
		ID              int
		Name, Type, Doc string
		Required        bool
	}
	Spec      []struct{ Name, Transform string }
	Snapshots []struct {
		ID        int64
		Operation string
		Summary   map[string]string
	}
	Files int
}

// Info asks PyIceberg about the table.
func (t *Table) Info() (i Info) {
	t.t.Helper()
	t.into(request{Op: "table"}, &i)
	return i
}

// Rows scans the table with PyIceberg, filtered by an expression of its own, or "".
func (t *Table) Rows(filter string) (rows []Row) {
	t.t.Helper()
	t.into(request{Op: "rows", Filter: filter}, &rows)
	return rows
}

// Partitions lists the table's partitions as PyIceberg sees them.
func (t *Table) Partitions() (rows []Row) {
	t.t.Helper()
	t.Python("out = table.inspect.partitions().to_pylist()", &rows)
	return rows
}

// DuckDB runs a query in which the table is named t.
func (t *Table) DuckDB(sql string) (rows []Row) {
	t.t.Helper()
	t.into(request{Op: "duckDB", SQL: sql}, &rows)
	return rows
}

// Int is a number of a row.
func Int(t testing.TB, row Row, column string) int64 {
	t.Helper()
	n, ok := row[column].(json.Number)
	if !ok {
		t.Fatalf("column %s is %v, not a number", column, row[column])
	}
	i, err := n.Int64()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// Python runs a program with the variables catalog, table and pa (pyarrow), and decodes its variable out into out (nil to drop it):
// for tests in which others write.
func (t *Table) Python(text string, out any) {
	t.t.Helper()
	if out == nil {
		out = new(any)
	}
	t.into(request{Op: "python", Program: text}, out)
}

// RESTServer is a running REST catalog.
type RESTServer struct {
	URI string
	t   testing.TB
}

// ServeREST starts a REST catalog whose tables lie in a folder. It ends with the test.
func ServeREST(t testing.TB, folder string) *RESTServer {
	t.Helper()
	p, err := start(restProgram, folder)
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(p.close)
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("the REST catalog doesn't start: %v: %s", err, p.said())
	}
	return &RESTServer{strings.TrimSpace(line), t}
}

// Fail makes the next n commits fail with an HTTP status, 0 for a connection that breaks; done says that they are applied first.
func (s *RESTServer) Fail(n, status int, done bool) {
	s.t.Helper()
	after := 0
	if done {
		after = 1
	}
	reply, err := http.Post(fmt.Sprintf("%s/test/fail?n=%d&code=%d&after=%d", s.URI, n, status, after), "application/json", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	reply.Body.Close()
}
