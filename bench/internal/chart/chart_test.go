package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestChartIsWellFormedAndShowsEachPoint(t *testing.T) {
	c := Chart{Title: "a < b & c", X: "keys", Y: "µs", Lines: []Line{
		{Name: "first", Points: []Point{{10_000, 1}, {1_000_000, 3.5}}},
		{Name: "second", Points: []Point{{10_000, 2}, {1_000_000, 2}}},
	}}
	svg := c.SVG()
	circles := 0
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 4 {
		t.Errorf("%d points are drawn, want 4", circles)
	}
	for _, want := range []string{"a &lt; b &amp; c", "first", "second", ">10 k<", ">1 M<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("lacks %q", want)
		}
	}
}

func TestPlacesFollowTheAxes(t *testing.T) {
	a := Chart{Lines: []Line{{Points: []Point{{1, 0}, {100, 7}}}}}.axes()
	if a.x(1) != left || a.x(100) != left+plotWidth || a.x(10) != left+plotWidth/2.0 {
		t.Errorf("x: %v %v %v", a.x(1), a.x(10), a.x(100))
	}
	if a.step != 2 || a.maxY != 8 || a.y(0) != top+plotHeight || a.y(8) != top {
		t.Errorf("y: step %v to %v", a.step, a.maxY)
	}
}

func TestOneOrNoPointDoesNotDivideByZero(t *testing.T) {
	for _, c := range []Chart{{}, {Lines: []Line{{Points: []Point{{5, 0}}}}}} {
		if svg := c.SVG(); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Error(svg)
		}
	}
}
