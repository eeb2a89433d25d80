package console

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/tributary-io/tributary/console/internal/layered"
)

// svg writes the drawing. It takes its color from what is around it, by currentColor, and the rest from classes, so that it needs no style of its own:
// in the page a style sheet adds to it, by itself it is black lines.
func (d *drawing) svg() string {
	const margin = 8
	w := &svgWriter{}
	w.add(`<svg xmlns="http://www.w3.org/2000/svg" class="topology" role="img" aria-labelledby="topology-title" width="%s" height="%s" viewBox="%s %s %s %s" `+
		`fill="none" stroke="currentColor" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="12">`,
		px(d.width+2*margin), px(d.height+2*margin), px(-margin), px(-margin), px(d.width+2*margin), px(d.height+2*margin))
	w.add(`<title id="topology-title">The topology; the same stands as text below</title>`)
	w.add(`<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0.5L7.5 4L0 7.5z" fill="currentColor" stroke="none"/></marker></defs>`)
	for _, f := range d.frames {
		w.add(`<rect class="frame" x="%s" y="%s" width="%s" height="%s" rx="8" stroke-opacity="0.35"/>`, px(f.x), px(f.y), px(f.w), px(f.h))
	}
	for _, l := range d.lines {
		if l.store {
			w.add(`<path class="line" d="%s" stroke-dasharray="3 3" stroke-opacity="0.7"/>`, path(l.way))
		} else {
			w.add(`<path class="line" d="%s" stroke-opacity="0.7" marker-end="url(#arrow)"/>`, path(l.way))
		}
	}
	for _, f := range d.frames { // above the lines, which it hides where there is a style sheet
		w.add(`<g class="frame">`)
		w.text(f.x+framePad, f.y+16, "start", f.title)
		w.add(`</g>`)
	}
	for i := range d.shapes {
		w.shape(&d.shapes[i])
	}
	w.add("</svg>")
	return w.b.String()
}

type svgWriter struct{ b strings.Builder }

// add writes a line of its own. The arguments must be safe.
func (w *svgWriter) add(format string, args ...any) {
	fmt.Fprintf(&w.b, format, args...)
	w.b.WriteByte('\n')
}

// text writes a line of text.
func (w *svgWriter) text(x, y float64, anchor, text string) {
	w.add(`<text x="%s" y="%s" text-anchor="%s" fill="currentColor" stroke="none">%s</text>`, px(x), px(y), anchor, escaped(text))
}

func (w *svgWriter) shape(s *shape) {
	w.add(`<g class="%s"><title>%s</title>`, s.kind, escaped(s.full))
	box := fmt.Sprintf(`x="%s" y="%s" width="%s" height="%s"`, px(s.x), px(s.y), px(s.w), px(s.h))
	first := s.y + padY + lineHeight - 4
	switch s.kind {
	case "topic":
		w.add(`<rect %s rx="%s"/>`, box, px(min(s.h/2, 18)))
	case "internal":
		w.add(`<rect %s rx="%s" stroke-dasharray="5 3"/>`, box, px(min(s.h/2, 18)))
	case "store":
		first += 7
		w.cylinder(s.rect)
	case "table":
		w.add(`<rect %s/>`, box)
		w.add(`<path d="M%s %sh%sM%s %sv%s"/>`, px(s.x), px(s.y+4), px(s.w), px(s.x+4), px(s.y), px(s.h))
	case "processor":
		w.add(`<rect %s rx="4"/>`, box)
	default: // source, sink
		w.add(`<rect %s rx="4" stroke-width="2"/>`, box)
	}
	for i, t := range s.text {
		w.text(s.x+s.w/2, first+float64(i)*lineHeight, "middle", t)
	}
	w.add(`</g>`)
}

func (w *svgWriter) cylinder(r rect) {
	const lid = 5.0
	arc := fmt.Sprintf("a%s %s 0 0 0 %s 0", px(r.w/2), px(lid), px(r.w))
	w.add(`<path d="M%s %s%sv%sa%s %s 0 0 1 %s 0zM%s %sa%s %s 0 0 1 %s 0"/>`,
		px(r.x), px(r.y+lid), arc, px(r.h-2*lid), px(r.w/2), px(lid), px(-r.w), px(r.x), px(r.y+lid), px(r.w/2), px(lid), px(r.w))
}

// path goes straight within layers and in a curve between them.
func path(way []layered.Point) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%s %s", px(way[0].X), px(way[0].Y))
	for i := 1; i < len(way); i++ {
		from, to := way[i-1], way[i]
		if from == to {
			continue
		}
		if from.X == to.X {
			fmt.Fprintf(&b, "V%s", px(to.Y))
			continue
		}
		middle := px((from.Y + to.Y) / 2)
		fmt.Fprintf(&b, "C%s %s %s %s %s %s", px(from.X), middle, px(to.X), middle, px(to.X), px(to.Y))
	}
	return b.String()
}

// px writes a length with a tenth of a pixel.
func px(v float64) string {
	s := strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// escaped is text for an element or an attribute, of XML as of HTML. What may not stand in XML becomes U+FFFD.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes all
	return b.String()
}
