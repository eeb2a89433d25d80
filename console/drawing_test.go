package console

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

var update = flag.Bool("update", false, "write the golden files anew")

func built(t testing.TB, b *topology.Builder) *topology.Plan {
	t.Helper()
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// counting counts by value behind a repartition, and lands what it counts.
func counting(t testing.TB, place string) *topology.Plan {
	b := topology.NewBuilder("counting")
	b.Stream("words", serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }, topology.Name("by-word")).
		Count(topology.Store("counts")).
		ToStream().
		ToLake(lake.Delta(place), topology.Name("landed"))
	return built(t, b)
}

// joining has what counting hasn't: joins of all kinds, a pattern, a global table, a topic that is read and written, topics by record.
func joining(t testing.TB) *topology.Plan {
	b := topology.NewBuilder("joining")
	first := func(v, _ string) string { return v }
	orders := b.StreamPattern("orders-.*", serde.String, serde.String, topology.Name("orders"))
	payments := b.Stream("payments", serde.String, serde.String)
	customers := b.Table("customers", serde.String, serde.String, topology.Store("customers"))
	rates := b.GlobalTable("rates", serde.String, serde.String, topology.Store("rates"))
	paid := orders.JoinStream(payments, first, topology.JoinWithin(time.Minute), topology.Name("paid"))
	paid.Join(customers, first, topology.Name("with-customer")).
		JoinGlobal(rates, func(k, _ string) string { return k }, first, topology.Name("with-rate")).
		ToDynamic(func(k, _ string) string { return k }, topology.Name("by-country"))
	orders.Filter(func(string, string) bool { return true }, topology.Name("again")).To("payments", topology.Name("back"))
	return built(t, b)
}

// wide is an application of many streams that have nothing to do with one another, as landing is.
func wide(t testing.TB, streams int) *topology.Plan {
	b := topology.NewBuilder("wide")
	for i := range streams {
		b.Stream(fmt.Sprintf("ods.shop.stream_%03d", i), serde.String, serde.String).ToLake(lake.Delta(fmt.Sprintf("lake/raw/%03d", i)), topology.Name(fmt.Sprintf("stream-%03d", i)))
	}
	return built(t, b)
}

// deep is a chain of operators with branches that come together again.
func deep(t testing.TB, steps int) *topology.Plan {
	b := topology.NewBuilder("deep")
	s := b.Stream("in", serde.String, serde.String)
	all := func(string, string) bool { return true }
	for n := range steps {
		if s = s.Filter(all); n%10 == 0 {
			s = s.Merge(s.Filter(all)).Merge(s.Filter(all))
		}
	}
	s.To("out")
	return built(t, b)
}

func TestGoldenDrawings(t *testing.T) {
	for name, p := range map[string]*topology.Plan{"counting": counting(t, "lake/counts"), "joining": joining(t), "deep": deep(t, 4), "wide": wide(t, 7)} {
		got := draw(p.Internal()).svg()
		file := filepath.Join("testdata", name+".svg")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is drawn differently than %s; look at both, and write it anew with -update", name, file)
		}
	}
}

// texts parses a drawing as XML, and gives what stands in it.
func texts(t *testing.T, svg string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var b strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatalf("the drawing isn't XML: %v\n%s", err, svg)
		}
		if text, ok := token.(xml.CharData); ok {
			b.Write(text)
		}
	}
}

// All that the plan names stands in the drawing: nodes, stores, topics, tables.
func TestDrawingHasAllNames(t *testing.T) {
	for _, p := range []*topology.Plan{counting(t, "lake/counts"), joining(t)} {
		text := texts(t, draw(p.Internal()).svg())
		in := p.Internal()
		var names []string
		for name, n := range in.Nodes {
			names = append(append(names, name, n.Topic, n.Pattern), n.Topics...)
		}
		for name := range in.Stores {
			names = append(names, name)
		}
		for _, name := range names {
			if !strings.Contains(text, name) {
				t.Errorf("%s: %q isn't in the drawing", p.ApplicationID(), name)
			}
		}
	}
}

const hostile = `<script>alert("x")</script>&amp;'` + "\x01\xff"

// Names that would be markup are text, and what XML can't have is replaced.
func TestDrawingEscapes(t *testing.T) {
	b := topology.NewBuilder("hostile")
	b.StreamPattern("<b>&.*", serde.String, serde.String).ToLake(lake.Delta(hostile), topology.Name("landed"))
	svg := draw(built(t, b).Internal()).svg()
	if text := texts(t, svg); !strings.Contains(text, `lands in delta:<script>alert("x")</script>&amp;'`) || !strings.Contains(text, "<b>&.*") {
		t.Errorf("what is named isn't there: %s", text)
	}
	if strings.Contains(svg, "<script") || strings.Contains(svg, "<b>") {
		t.Errorf("names are markup: %s", svg)
	}
}

// Nothing of a drawing lies outside of it, and no two shapes lie over each other, however large it is. It stays narrow enough to be looked at.
func TestDrawingOfLargePlans(t *testing.T) {
	for name, p := range map[string]*topology.Plan{"wide": wide(t, 300), "deep": deep(t, 80), "joining": joining(t)} {
		began := time.Now()
		d := draw(p.Internal())
		svg := d.svg()
		t.Logf("%s: %d shapes, %.0f x %.0f, %d kB, %v", name, len(d.shapes), d.width, d.height, len(svg)/1000, time.Since(began))
		if d.width > 2*shelf {
			t.Errorf("%s is %.0f wide", name, d.width)
		}
		for i, a := range d.shapes {
			if a.x < 0 || a.y < 0 || a.x+a.w > d.width+0.01 || a.y+a.h > d.height+0.01 {
				t.Errorf("%s: %q is outside of the drawing", name, a.full)
			}
			for _, b := range d.shapes[:i] {
				if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
					t.Errorf("%s: %q lies over %q", name, a.full, b.full)
				}
			}
		}
		for i, a := range d.frames {
			for _, b := range d.frames[:i] {
				if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
					t.Errorf("%s: %q lies over %q", name, a.title, b.title)
				}
			}
		}
		texts(t, svg)
	}
}

func TestDrawingOfAnEmptyPlan(t *testing.T) {
	texts(t, draw(built(t, topology.NewBuilder("empty")).Internal()).svg())
}

func TestWrap(t *testing.T) {
	for name, want := range map[string]string{
		"":                                     "",
		"short":                                "short",
		"KSTREAM-AGGREGATE-0000000012":         "KSTREAM-AGGREGATE-|0000000012",
		"abcdefghijklmnopqrstuvwxyz0123456789": "abcdefghijklmnopqrstuvwxyz|0123456789",
		strings.Repeat("part-", 30) + "end":    "part-part-part-part-part-|part-part-part-part-part-|…t-part-part-part-part-end",
	} {
		if got := strings.Join(wrap(name), "|"); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
