package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/internal/task"
)

// A conductor that is busy, or closes, isn't flooded by an input whose log has no longer what comes next: brokers say so at once, each time.
func TestAnInputOutOfRangeIsToldOnce(t *testing.T) {
	c := brokertest.Embedded(t)
	a := newApp(t, c, "range")
	a.create("in", 2)
	e, spec := withoutBrokers(t)
	var err error
	e.inputs, err = fetch.NewInputs(fetch.InputsConfig{
		Client: []kgo.Opt{kgo.SeedBrokers(c.Addrs...)}, MaxBytes: 1 << 20, MaxPartitionBytes: 1 << 20, MaxWait: readersWait,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.inputs.Close()
	ctx, cancel := context.WithCancel(t.Context())
	e.life = ctx
	lost, fine := fetch.Partition{Topic: a.topic("in")}, fetch.Partition{Topic: a.topic("in"), Partition: 1}
	r := e.newRunner(&taskSpec{id: spec.id, inputs: []task.TopicPartition{task.TopicPartition(lost)}}, 0)
	e.routes.add(r)
	arrived := make(chan struct{}, 100)
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		e.inputs.Run(ctx, func(batches []fetch.Batch) {
			e.deliver(batches)
			for _, b := range batches {
				for range b.Records {
					arrived <- struct{}{}
				}
			}
		})
	}()
	e.inputs.Add(map[fetch.Partition]int64{lost: 1000, fine: 0})
	client := c.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	const rounds = 30
	for n := range rounds { // each is brought by a fetch of its own, in which the other partition would be out of range again
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: fine.Topic, Partition: 1, Value: fmt.Append(nil, n)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		<-arrived
	}
	cancel()
	<-ran
	if told := len(e.mail.take()); told == 0 || told > rounds/3 {
		t.Errorf("told %d times in %d fetches", told, rounds)
	}
}
