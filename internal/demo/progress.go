package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/tributary-io/tributary/engine"
)

// progress shows how far the demonstration has come: one line that is written over on a terminal, a line every few seconds elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	total    int64 // records of the day
	emission *Emission
	engine   *engine.Engine
	all      atomic.Bool // emitted
	told     bool        // where the console is
	began    time.Time
	width    int
}

func newProgress(out io.Writer, terminal bool, total int64, emission *Emission, e *engine.Engine) *progress {
	return &progress{out: out, terminal: terminal, total: total, emission: emission, engine: e, began: time.Now()}
}

// emitted notes that the emission is over.
func (p *progress) emitted() { p.all.Store(true) }

func (p *progress) run(ctx context.Context) {
	every := 2 * time.Second
	if p.terminal {
		every = 200 * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.show()
		}
	}
}

// announce says where the console is, once it is there.
func (p *progress) announce(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !p.tell() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tell says where the console is; false as long as nobody listens there.
func (p *progress) tell() bool {
	if addr := p.engine.HTTPAddr(); addr != "" && !p.told {
		p.told = true
		text := "console: " + consoleAt(addr)
		if p.terminal { // over the line that shows the progress
			text = "\r" + text + strings.Repeat(" ", p.width)
		}
		fmt.Fprintln(p.out, text)
	}
	return p.told
}

// consoleAt is the console's URL on this machine.
func consoleAt(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		addr = net.JoinHostPort("localhost", port)
	}
	return "http://" + addr + "/console/"
}

func (p *progress) show() {
	p.tell()
	line := p.line()
	if !p.terminal {
		fmt.Fprintln(p.out, line)
		return
	}
	if columns := p.columns(); len(line) >= columns { // a line that wraps can't be written over
		line = line[:columns-1]
	}
	fmt.Fprintf(p.out, "\r%s%s", line, strings.Repeat(" ", max(0, p.width-len(line))))
	p.width = len(line)
}

// columns is the width of the terminal.
func (p *progress) columns() int {
	if f, ok := p.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			return width
		}
	}
	return 80
}

func (p *progress) line() string {
	s := p.engine.Stats()
	var landed int64
	for _, l := range s.Lake {
		landed += l.Rows
	}
	emitted := p.emission.Produced.Load() + p.emission.Skipped.Load()
	of := fmt.Sprintf(" of %d", p.total)
	if p.all.Load() {
		of = ""
	}
	rate := float64(s.Processed) / time.Since(p.began).Seconds()
	return fmt.Sprintf("%s: emitted %d%s, processed %d (%.0f/s), lag %d, landed %d", s.State, emitted, of, s.Processed, rate, s.Lag, landed)
}

// end leaves the last line behind.
func (p *progress) end() {
	p.show()
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}
