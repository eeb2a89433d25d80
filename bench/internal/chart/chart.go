package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Chart is one picture. Its x axis is logarithmic; its y axis begins at 0.
type Chart struct {
	Title string
	X, Y  string // what the axes show, with the unit
	Lines []Line
}

// Line is what one thing does.
type Line struct {
	Name   string
	Points []Point // by X
}

// Point is a value that was measured. X is above 0.
type Point struct{ X, Y float64 }

// The picture's measures, in pixels.
const (
	width, height            = 640, 360
	left, right, top, bottom = 70, 20, 40, 50
	plotWidth, plotHeight    = width - left - right, height - top - bottom
	legendHeight             = 16
)

// colours can be told apart by those who don't see all of them (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7"}

// SVG draws the chart.
func (c Chart) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text(&b, width/2, 22, "middle", 14, c.Title)
	text(&b, left+plotWidth/2, height-12, "middle", 12, c.X)
	fmt.Fprintf(&b, `<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", top+plotHeight/2, html.EscapeString(c.Y))
	a := c.axes()
	a.draw(&b)
	for i, l := range c.Lines {
		a.line(&b, l, colours[i%len(colours)])
		if len(c.Lines) > 1 {
			y := top + 8 + i*legendHeight
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="3" fill="%s"/>`+"\n", left+12, y, colours[i%len(colours)])
			text(&b, left+30, y+5, "start", 12, l.Name)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func text(b *strings.Builder, x, y int, anchor string, size int, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s" font-size="%d">%s</text>`+"\n", x, y, anchor, size, html.EscapeString(s))
}

// axes turn values into places.
type axes struct {
	minX, maxX float64 // logarithms
	step, maxY float64
	ticks      []float64 // of x
}

func (c Chart) axes() axes {
	a := axes{minX: math.Inf(1), maxX: math.Inf(-1)}
	seen := map[float64]bool{}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			a.minX, a.maxX = min(a.minX, math.Log10(p.X)), max(a.maxX, math.Log10(p.X))
			a.maxY = max(a.maxY, p.Y)
			if !seen[p.X] {
				seen[p.X] = true
				a.ticks = append(a.ticks, p.X)
			}
		}
	}
	if len(a.ticks) == 0 {
		a.minX, a.maxX = 0, 1
	}
	if a.maxX == a.minX {
		a.minX, a.maxX = a.minX-0.5, a.maxX+0.5
	}
	a.step = niceStep(a.maxY)
	a.maxY = a.step * max(1, math.Ceil(a.maxY/a.step))
	return a
}

// niceStep divides an axis into about five parts of 1, 2 or 5 times a power of ten.
func niceStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most/5)))
	for _, f := range []float64{1, 2, 5} {
		if most/(f*power) <= 6 {
			return f * power
		}
	}
	return 10 * power
}

func (a axes) x(v float64) float64 {
	return left + (math.Log10(v)-a.minX)/(a.maxX-a.minX)*plotWidth
}

func (a axes) y(v float64) float64 { return top + plotHeight - v/a.maxY*plotHeight }

func (a axes) draw(b *strings.Builder) {
	for v := 0.0; v <= a.maxY+a.step/2; v += a.step {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/>`+"\n", left, a.y(v), left+plotWidth)
		text(b, left-6, int(a.y(v))+4, "end", 12, strconv.FormatFloat(v, 'g', 6, 64))
	}
	for _, v := range a.ticks {
		fmt.Fprintf(b, `<path d="M%.1f %dv5" stroke="black"/>`+"\n", a.x(v), top+plotHeight)
		text(b, int(a.x(v)), top+plotHeight+18, "middle", 12, short(v))
	}
	fmt.Fprintf(b, `<path d="M%d %dV%dH%d" stroke="black" fill="none"/>`+"\n", left, top, top+plotHeight, left+plotWidth)
}

func (a axes) line(b *strings.Builder, l Line, colour string) {
	if len(l.Points) == 0 {
		return
	}
	var path strings.Builder
	for i, p := range l.Points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], a.x(p.X), a.y(p.Y))
	}
	fmt.Fprintf(b, `<path d="%s" stroke="%s" stroke-width="2" fill="none"/>`+"\n", path.String(), colour)
	for _, p := range l.Points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s</title></circle>`+"\n", a.x(p.X), a.y(p.Y), colour, short(p.X), strconv.FormatFloat(p.Y, 'g', 4, 64))
	}
}

// short writes a number as one says it.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + " M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + " k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
