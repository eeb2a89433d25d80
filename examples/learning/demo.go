package learning

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// Demo is the whole platform on one machine: it produces generated days, runs all products until they have caught up, computes course_day, and
// reconciles the days.
type Demo struct {
	Setting
	Lake string // empty: below Dir
	Spec Spec
	Out  io.Writer
	Now  func() time.Time
}

// LakePlace is where the lake is.
func (d *Demo) LakePlace() string {
	if d.Lake != "" {
		return d.Lake
	}
	return filepath.Join(d.Dir, "lake")
}

// Run does it. Running it again with another first day adds days.
func (d *Demo) Run(ctx context.Context) error {
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return err
	}
	products, err := Products(d.LakePlace())
	if err != nil {
		return err
	}
	producer, err := NewProducer(d.Brokers, d.Client...)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := CreateTopics(ctx, producer.Client()); err != nil {
		return err
	}
	records, want := Generate(d.Spec)
	producer.Unchecked = true // its faults are on purpose
	if err := producer.Produce(ctx, records...); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "produced %d progress records (%d distinct events, %d rejected) and %d changes of enrollments over %d days\n",
		want.Progress, want.Distinct, sum(want.Rejected), want.Enrollment, d.Spec.Days)
	if err := d.runUntilCaughtUp(ctx, products); err != nil {
		return err
	}
	return d.Batch(ctx, producer)
}

// runUntilCaughtUp runs the products until they have committed everything.
func (d *Demo) runUntilCaughtUp(ctx context.Context, products []Product) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	g, running := errgroup.WithContext(running)
	g.Go(func() error { return d.Setting.Run(running, products) })
	g.Go(func() error {
		defer stop()
		return d.AwaitCaughtUp(running, products)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// Batch hands the days off as of now, computes them, and reconciles them.
func (d *Demo) Batch(ctx context.Context, producer *Producer) error {
	h, err := CheckHandoff(ctx, producer.Client(), d.LakePlace(), d.Now().Add(time.Second)) // what was appended now counts
	if err != nil {
		return err
	}
	fmt.Fprint(d.Out, h)
	for n := range d.Spec.Days {
		day := d.Spec.FirstDay.AddDate(0, 0, n)
		if _, err := RunCourseDay(ctx, d.LakePlace(), day, h, d.Now()); err != nil {
			return err
		}
	}
	for n := range d.Spec.Days {
		r, err := Reconcile(ctx, producer.Client(), clientOptions(d.Brokers, d.Client), d.LakePlace(), d.Spec.FirstDay.AddDate(0, 0, n))
		if err != nil {
			return err
		}
		fmt.Fprint(d.Out, r)
		if u := r.Unexplained(); u != 0 {
			return fmt.Errorf("%s: %d events that nothing explains", r.Day, u)
		}
	}
	return nil
}

func sum(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}
