package icebergreaders

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/tributary-io/tributary/internal/pyenv"
)

//go:embed requirements.txt
var requirements string

//go:embed clients.py
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
type Readers struct{ *pyenv.Helper }

// environment makes or finds the virtual environment of PyIceberg and DuckDB, once in this process, and returns its Python.
var environment = sync.OnceValues(func() (python string, err error) {
	return pyenv.Python(context.Background(), "iceberg-readers", requirements)
})

// shared is one helper for all tests of a test binary: its start takes seconds.
var shared = sync.OnceValues(func() (*Readers, error) {
	python, err := environment()
	if err != nil {
		return nil, err
	}
	h, err := pyenv.Serve(python, program)
	return &Readers{h}, err
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
	if err := t.r.AskInto(q, out); err != nil {
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
	python, err := environment()
	if err != nil {
		unavailable(t, err)
	}
	h, err := pyenv.Start(python, restProgram, folder)
	if err != nil {
		t.Fatalf("the REST catalog doesn't start: %v", err)
	}
	t.Cleanup(h.Close)
	uri, err := h.Line()
	if err != nil {
		t.Fatalf("the REST catalog doesn't start: %v", err)
	}
	return &RESTServer{uri, t}
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
