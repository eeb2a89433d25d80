package workload

import (
	"fmt"
	"os"
	"strings"

	"github.com/tributary-io/tributary/bench/internal/input"
	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// harnessOut is the output topic of the harness.
const harnessOut = "out"

// RunHarness pipes records one by one through a workload's topology in the test harness, reading what comes out after each, as a test
// does. It gives a result for each round; each has a driver of its own.
func RunHarness(cfg Config) ([]measure.Result, error) {
	in := newHarnessInput(cfg)
	stop, err := profile(cfg.Profile)
	if err != nil {
		return nil, err
	}
	var all []measure.Result
	for round := range cfg.Rounds {
		r, err := harnessRound(cfg, in)
		if err != nil {
			return nil, err
		}
		r["round"] = round
		all = append(all, r)
	}
	return all, stop()
}

// harnessInput is the input: strings, as the peer has them, in one piece of memory and without pointers into it, as if they were read from a file; else the
// collector had some 400,000 pointers to follow time and again that are none of the harness.
type harnessInput struct {
	text    string
	records []harnessRecord
}

// harnessRecord says where a record lies in the text: key and value, one behind the other.
type harnessRecord struct {
	from, mid, to int
	time          int64
}

func newHarnessInput(cfg Config) harnessInput {
	var text strings.Builder
	var in harnessInput
	g := input.NewGenerator(1, cfg.Keys, cfg.Records)
	for range cfg.Records {
		e := g.Next()
		key := input.OrderKey(e.Order)
		if cfg.Workload == "c" {
			key = input.CustomerKey(e.Order)
		}
		from := text.Len()
		text.WriteString(key)
		mid := text.Len()
		text.Write(e.Value)
		in.records = append(in.records, harnessRecord{from, mid, text.Len(), e.Timestamp})
	}
	in.text = text.String()
	return in
}

func harnessRound(cfg Config, from harnessInput) (measure.Result, error) {
	plan, err := Build(cfg.Workload, "harness", harnessOut)
	if err != nil {
		return nil, err
	}
	var opts []topologytest.Option
	store := "mem"
	if cfg.OnDisk {
		dir, err := os.MkdirTemp(cfg.StateDir, "harness-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		opts, store = append(opts, topologytest.PebbleStores(dir)), "disk"
	}
	d, err := topologytest.Open(plan, opts...)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if cfg.Workload == "c" {
		table := topologytest.Input(d, input.CustomerTable, serde.String, serde.Bytes)
		for c := range input.Customers {
			if err := table.Pipe(input.CustomerKey(c), input.CustomerValue(c), input.Base-1000); err != nil {
				return nil, err
			}
		}
	}
	in, out := topologytest.Input(d, Input(cfg.Workload), serde.String, serde.String), 0
	reads := cfg.Workload != "d" // whose results go nowhere
	start := measure.Take()
	for i, r := range from.records {
		if err := in.Pipe(from.text[r.from:r.mid], from.text[r.mid:r.to], r.time); err != nil {
			return nil, fmt.Errorf("record %d: %w", i, err)
		}
		if reads {
			out += len(d.Read(harnessOut))
		}
	}
	r := measure.Result{"what": "tributary-harness", "w": cfg.Workload, "store": store, "out": out}
	r.Add(start, measure.Take(), int64(len(from.records)))
	return r, nil
}
