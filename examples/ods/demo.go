package ods

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/land"
)

// Demo is the life of a stream, from its declaration to what is published of it. It starts on a topic that holds nothing, so that it can compare
// everything with what the generator says.
type Demo struct {
	*Platform
	Spec shop.Spec // the first day
	Rows int       // of the proof
	Out  io.Writer
}

// ErrNotEmpty says that the demonstration can't count, since there is something already.
var ErrNotEmpty = errors.New("the demonstration starts from nothing")

// Run does it. An error says what did not come out as it must.
func (d *Demo) Run(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	want := d.days(2)
	for _, step := range []func(context.Context) error{d.firstDay, d.reword, d.addChannel, d.refuse, d.prove, d.stage, d.publish} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return d.check(ctx, want)
}

// days is what the shop sends on the first days.
func (d *Demo) days(n int) *shop.Model {
	m := shop.NewModel(d.Spec)
	for i := range n {
		m.AddDay(d.Spec.Date.AddDate(0, 0, i))
	}
	return m
}

// channel is the newer producer's day.
func (d *Demo) channel() (records, events int64) {
	seen := map[[16]byte]bool{}
	for e := range d.Spec.Next().Events() {
		if e.Flaw == shop.Sound {
			records++
			seen[e.ID] = true
		}
	}
	return records, int64(len(seen))
}

func (d *Demo) say(format string, args ...any) { fmt.Fprintf(d.Out, format+"\n", args...) }

func (d *Demo) prepare(ctx context.Context) error {
	if err := Init(d.Declarations); err != nil {
		return err
	}
	if err := d.Declare(ctx, OrderTopic, StagedTopic); err != nil {
		return err
	}
	for _, topic := range []string{OrderTopic, StagedTopic} {
		s, err := d.Status(ctx, topic)
		if err != nil {
			return err
		}
		if s.Events > 0 || s.TableVersion >= 0 {
			return fmt.Errorf("%w, but %s has %d records, and its table %s the version %d: give another --dir, or another cluster", ErrNotEmpty, topic, s.Events, s.Table, s.TableVersion)
		}
	}
	d.say("declared %s and %s, as %s says", OrderTopic, StagedTopic, d.Declarations)
	return nil
}

func (d *Demo) firstDay(ctx context.Context) error {
	n, err := d.Emit(ctx, d.Spec)
	if err != nil {
		return err
	}
	d.say("%s: the shop sent %d records", d.Spec.Date.Format("2006-01-02"), n)
	return d.land(ctx)
}

// land lands what there is, and says how the table has changed.
func (d *Demo) land(ctx context.Context) error {
	if err := d.Land(ctx, OrderTopic, true); err != nil {
		return err
	}
	s, err := d.Status(ctx, OrderTopic)
	if err != nil {
		return err
	}
	d.say("  landed %d of %d offsets in %s, version %d", s.Landed, s.Landed+s.Lag, s.Table, s.TableVersion)
	return nil
}

func (d *Demo) reword(ctx context.Context) error {
	if err := Reword.Apply(d.Declarations); err != nil {
		return err
	}
	d.say("changed a doc and a tag of the field coupon")
	if err := d.land(ctx); err != nil {
		return err
	}
	info, err := lake.Show(ctx, d.place(RawTable), 1)
	if err != nil {
		return err
	}
	last := info.History[0]
	if !last.Metadata || last.Added != 0 {
		return fmt.Errorf("version %d of the raw table is no commit of metadata alone: %+v", last.Version, last)
	}
	for _, c := range info.Columns {
		if c.Name == "coupon" {
			d.say("  version %d has metadata alone: coupon is %q, %v", last.Version, c.Comment, c.Tags)
		}
	}
	return nil
}

func (d *Demo) addChannel(ctx context.Context) error {
	if err := AddChannel.Apply(d.Declarations); err != nil {
		return err
	}
	day := d.Spec.Next()
	old, err := d.Emit(ctx, day)
	if err != nil {
		return err
	}
	newer, err := d.EmitChannel(ctx, day, "web")
	if err != nil {
		return err
	}
	d.say("added the optional field channel; %s: old producers sent %d records without it, a new one %d with it", day.Date.Format("2006-01-02"), old, newer)
	return d.land(ctx)
}

func (d *Demo) refuse(ctx context.Context) error {
	if err := RequireWarehouse.Apply(d.Declarations); err != nil {
		return err
	}
	err := d.Declare(ctx, OrderTopic)
	if undo := RequireWarehouse.Undo(d.Declarations); undo != nil {
		return undo
	}
	if err == nil {
		return errors.New("the registry took a schema with a new required field")
	}
	d.say("a required field warehouse is refused: %v", err)
	return d.Declare(ctx, OrderTopic)
}

func (d *Demo) prove(ctx context.Context) error {
	proof, err := d.Prove(ctx, OrderTopic, d.Rows)
	if err != nil {
		return err
	}
	return d.proved(proof)
}

func (d *Demo) proved(proof *land.Proof) error {
	if proof.Differing > 0 {
		return fmt.Errorf("%d of %d rows differ: %v", proof.Differing, proof.Rows, proof.Differences)
	}
	d.say("proved: %d generated rows came back identical, in %d commits", proof.Rows, proof.Batches)
	return nil
}

func (d *Demo) stage(ctx context.Context) error {
	r, err := d.Rebuild(ctx)
	if err != nil {
		return err
	}
	d.say("staging: %d events, %d repetitions left out, in %s", r.Added, r.Repeated, d.place(StagingTable))
	return nil
}

func (d *Demo) publish(ctx context.Context) error {
	n, err := d.Publish(ctx)
	if err != nil {
		return err
	}
	again, err := d.Publish(ctx)
	if err != nil {
		return err
	}
	if again != 0 {
		return fmt.Errorf("publishing again wrote %d records", again)
	}
	d.say("published %d events to %s; publishing again writes none", n, StagedTopic)
	return nil
}

// check compares what there is with what the generator says.
func (d *Demo) check(ctx context.Context, want *shop.Model) error {
	counts, err := d.Count(ctx)
	if err != nil {
		return err
	}
	published, err := d.published(ctx)
	if err != nil {
		return err
	}
	records, events := d.channel()
	var errs []error
	equal := func(what string, got, want int64) {
		if got != want {
			errs = append(errs, fmt.Errorf("%s: %d, and the generator says %d", what, got, want))
		}
	}
	equal("rows of the raw table", counts.Raw, want.Raw.Rows+records)
	equal("events in the raw table", counts.Events, want.Distinct+events)
	equal("rows of the staging table", counts.Staged, want.Distinct+events)
	equal("published events", published, want.Distinct+events)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	d.say("%v; published: %d. All as the generator says.", counts, published)
	return nil
}

// published counts the records that readers of the published stream see.
func (d *Demo) published(ctx context.Context) (n int64, err error) {
	for _, err := range d.Published(ctx) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
