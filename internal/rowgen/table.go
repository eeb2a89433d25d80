package rowgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/avro"
)

// Table is a random table. It is used by one goroutine.
type Table struct {
	r       *rand.Rand
	columns []*column
	rows    []map[string]value // by column; those that came later are absent
	names   int
	local   bool // there is a timestamp without a zone, which tables must be made for
	grown   bool
}

// column is a column, or a member of a struct.
type column struct {
	name     string
	typ      typ
	nullable bool
}

// value is a value as it is encoded, and as readers give it. nil is null.
type value struct {
	avro any
	want any    // nil, a string, or map[string]any and []any of these
	sql  string // a literal; "" where there is none to be compared with
}

// New makes a table with a column n, the number of each row, and some others.
func New(seed uint64) *Table {
	t := &Table{r: rand.New(rand.NewPCG(seed, 11))}
	t.columns = []*column{{name: "n", typ: scalar{kind: "long"}}}
	for range 3 + t.r.IntN(7) {
		t.columns = append(t.columns, t.column(2, t.r.IntN(3) > 0))
	}
	return t
}

func (t *Table) column(depth int, nullable bool) *column {
	t.names++
	return &column{fmt.Sprint("c", t.names), t.typ(depth), nullable}
}

// Partition draws a column to partition by; "" if none is fit. It has no empty texts. but, unless nil, excludes types, by their names in SQL.
func (t *Table) Partition(but func(sqlType string) bool) string {
	for _, c := range t.columns[1:] {
		if s, ok := c.typ.(scalar); ok && s.partitions() && (but == nil || !but(s.sqlType())) {
			s.partition = true
			c.typ = s
			return c.name
		}
	}
	return ""
}

// Grow adds columns: at the top, and in structs that aren't in lists or maps.
func (t *Table) Grow() {
	t.grown = true
	for range 1 + t.r.IntN(2) {
		t.columns = append(t.columns, t.column(1, true))
	}
	for _, c := range t.columns {
		if s, ok := c.typ.(*record); ok && t.r.IntN(2) == 0 {
			s.members = append(s.members, t.column(1, true))
		}
	}
}

// Schema is the Avro schema as it is now.
func (t *Table) Schema() string {
	text, err := json.Marshal(map[string]any{"type": "record", "name": "Row", "fields": fields(t.columns)})
	if err != nil {
		panic(err) // texts and maps of them marshal
	}
	return string(text)
}

func fields(columns []*column) (out []any) {
	for _, c := range columns {
		s := c.typ.schema()
		if c.nullable {
			s = []any{"null", s}
		}
		out = append(out, map[string]any{"name": c.name, "type": s})
	}
	return out
}

// Rows makes rows by the schema as it is now, encoded in Avro.
func (t *Table) Rows(tb testing.TB, n int) (out [][]byte) {
	tb.Helper()
	schema, err := avro.Parse(t.Schema())
	if err != nil {
		tb.Fatal(err)
	}
	for range n {
		row, in := map[string]value{}, map[string]any{}
		for _, c := range t.columns {
			v := t.value(c)
			if c.name == "n" {
				v = value{int64(len(t.rows)), fmt.Sprint(len(t.rows)), fmt.Sprint(len(t.rows))}
			}
			row[c.name], in[c.name] = v, v.avro
		}
		data, err := schema.Encode(in)
		if err != nil {
			tb.Fatalf("%s\n%v: %v", t.Schema(), in, err)
		}
		t.rows, out = append(t.rows, row), append(out, data)
	}
	return out
}

func (t *Table) value(c *column) value {
	if c.nullable && t.r.IntN(4) == 0 {
		return value{}
	}
	return c.typ.value(t)
}

// Len is the number of rows so far.
func (t *Table) Len() int { return len(t.rows) }

// Diff compares what a reader gives, in the order of n, with what it must, and names the first difference; "" is none.
func (t *Table) Diff(rows []map[string]any) string {
	if len(rows) != len(t.rows) {
		return fmt.Sprintf("%d rows, want %d", len(rows), len(t.rows))
	}
	for i, row := range rows {
		for _, c := range t.columns {
			got, ok := row[c.name]
			if !ok {
				return fmt.Sprintf("column %s is missing", c.name)
			}
			if d := c.diff(t.rows[i][c.name].want, got); d != "" {
				return fmt.Sprintf("row %d, column %s %v: %s", i, c.name, c.typ.schema(), d)
			}
		}
		if len(row) != len(t.columns) {
			return fmt.Sprintf("row %d has the columns %v", i, slices.Sorted(maps.Keys(row)))
		}
	}
	return ""
}

func (c *column) diff(want, got any) string {
	if want == nil || got == nil {
		if want != nil || got != nil {
			return fmt.Sprintf("%v, want %v", got, want)
		}
		return ""
	}
	return c.typ.diff(want, got)
}

// Probe is a condition and for how many rows it holds.
type Probe struct {
	Where string
	Rows  int
}

// Probes makes conditions on top-level columns. literal writes a value of a type (decimal, date, timestamp, double, …) as SQL; "" leaves it out.
func (t *Table) Probes(literal func(kind, text string) string) (out []Probe) {
	for _, c := range t.columns {
		s, ok := c.typ.(scalar)
		if !ok {
			continue
		}
		nulls, have := 0, map[string]int{}
		for _, row := range t.rows {
			if v := row[c.name]; v.want == nil {
				nulls++
			} else if v.sql != "" {
				have[v.sql]++
			}
		}
		out = append(out, Probe{c.name + " is null", nulls})
		all := slices.Sorted(maps.Keys(have))
		t.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, text := range all[:min(len(all), 4)] {
			if l := literal(s.sqlType(), text); l != "" {
				out = append(out, Probe{c.name + " = " + l, have[text]})
			}
		}
	}
	return out
}

// Query asks for all probes at once; the rows are i and n.
func Query(probes []Probe) string {
	parts := make([]string, len(probes))
	for i, p := range probes {
		parts[i] = fmt.Sprintf("select %d as i, count(*) as n from t where %s", i, p.Where)
	}
	return strings.Join(parts, " union all ") + " order by i"
}
