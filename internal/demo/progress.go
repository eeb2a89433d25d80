package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

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

func (p *progress) show() {
	line := p.line()
	if !p.terminal {
		fmt.Fprintln(p.out, line)
		return
	}
	fmt.Fprintf(p.out, "\r%s%s", line, strings.Repeat(" ", max(0, p.width-len(line))))
	p.width = len(line)
}

func (p *progress) line() string {
	s := p.engine.Stats()
	var landed int64
	for _, l := range s.Lake {
		landed += l.Rows
	}
	emitted := p.emission.Produced.Load() + p.emission.Skipped.Load()
	of := fmt.Sprintf(" of about %d", p.total)
	if p.all.Load() {
		of = ""
	}
	rate := float64(s.Processed) / time.Since(p.began).Seconds()
	return fmt.Sprintf("%-11s emitted %d%s, processed %d, landed %d rows, lag %d, %.0f records/s",
		s.State, emitted, of, s.Processed, landed, s.Lag, rate)
}

// end leaves the last line behind.
func (p *progress) end() {
	p.show()
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}
