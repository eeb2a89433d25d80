package console

import (
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tributary-io/tributary/topology"
)

// page fills the template. What of it never changes is made when somebody looks for the first time.
type page struct {
	drawing func() string
	text    string // the topology, by Describe
}

func newPage(p *topology.Plan) *page {
	return &page{drawing: sync.OnceValue(func() string { return draw(p.Internal()).svg() }), text: withoutSecrets(p.Describe())}
}

// content is what the template gets.
type content struct {
	*picture
	Choice   choice
	Drawing  template.HTML
	Describe string
}

// write fills a part of the template, whose names are page and live.
func (p *page) write(w io.Writer, part string, pic *picture, c choice) error {
	in := content{picture: pic, Choice: c}
	if part == "page" {
		in.Drawing, in.Describe = template.HTML(p.drawing()), p.text // svg.go escapes all text
	}
	return pageTemplate().ExecuteTemplate(w, part, in)
}

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Funcs(template.FuncMap{
		"number": number[int64], "count": number[int], "whole": func(v float64) int64 { return int64(v + 0.5) }, "bytes": byteCount, "rate": rateText, "ago": ago, "stamp": stamp, "span": span, "join": strings.Join,
		"percent": percent, "plus": func(a, b int) int { return a + b }, "subName": subName, "peer": peer, "href": func(c choice, name string, value any) string { return c.With(name, value) },
	}).ParseFS(files, "page.html"))
})

// number writes a number in groups of three digits.
func number[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for at := len(s) - 3; at > first; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

func byteCount(n int64) string {
	v, units := float64(n), []string{"B", "kB", "MB", "GB", "TB", "PB"}
	for len(units) > 1 && v >= 999.5 {
		v, units = v/1000, units[1:]
	}
	if v >= 99.5 || units[0] == "B" {
		return fmt.Sprintf("%.0f %s", v, units[0])
	}
	return fmt.Sprintf("%.1f %s", v, units[0])
}

// rateText is a number of records a second; a dash where it isn't known.
func rateText(rate *float64) string {
	switch {
	case rate == nil:
		return "–"
	case *rate > 0 && *rate < 9.95:
		return fmt.Sprintf("%.1f", *rate)
	}
	return number(int64(*rate + 0.5))
}

// span is a time that something takes, in seconds.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

// ago tells how long before now something was; a dash where it isn't known, or never was.
func ago(now time.Time, at any) string {
	var then time.Time
	switch v := at.(type) {
	case time.Time:
		then = v
	case *time.Time:
		if v != nil {
			then = *v
		}
	}
	if then.IsZero() {
		return "–"
	}
	return span(max(0, now.Sub(then).Seconds())) + " ago"
}

func stamp(at any) string {
	switch v := at.(type) {
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case *time.Time:
		if v != nil {
			return v.UTC().Format(time.RFC3339)
		}
	}
	return ""
}

// percent is how much of a restore is done.
func percent(r *restore) int {
	done, of := r.Total-r.Left, r.Total
	if r.Whole > 0 {
		done, of = r.Checkpoint, r.Whole
	}
	if of <= 0 {
		return 0
	}
	return int(100 * min(max(done, 0), of) / of)
}

// peer is where another instance has its page, if it has one, by the address that it gives: host:port, or a URL.
func peer(endpoint string) string {
	if !strings.Contains(endpoint, "://") {
		endpoint = "http://" + endpoint
	}
	return strings.TrimSuffix(endpoint, "/") + "/console/"
}

func subName(id int) string {
	if id < 0 {
		return "global"
	}
	return strconv.Itoa(id)
}
