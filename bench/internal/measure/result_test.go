package measure

import (
	"bytes"
	"testing"
	"time"
)

func TestAResultIsReadAsItWasWritten(t *testing.T) {
	from := Snapshot{At: time.Unix(0, 0), Self: 1, Broker: 1, Machine: 5, Mallocs: 100}
	to := Snapshot{At: time.Unix(2, 0), Self: 2, Broker: 3, Machine: 9, Mallocs: 300}
	r := Result{"w": "a"}
	r.Add(from, to, 1_000_000)
	var out bytes.Buffer
	out.WriteString("something else\n")
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	all, err := Parse(out.String() + "more\n")
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	for name, want := range map[string]float64{RecordsPerS: 500_000, CPUPerRecord: 1, BrokerCPUPerRecord: 2, "other_cpu_s": 1, "allocs_per_rec": 0.0002} {
		if got := all[0].Number(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if all[0]["w"] != "a" || all[0].Number("nothing") != 0 {
		t.Errorf("got %v", all[0])
	}
}

func TestCPUAndMemoryAreSeen(t *testing.T) {
	from := Take()
	to := Take()
	for to.Self <= from.Self && time.Since(from.At) < time.Minute {
		to = Take()
	}
	if to.Self <= from.Self || to.Machine < from.Machine {
		t.Errorf("from %+v to %+v", from, to)
	}
	if PeakMemory() < 1 || Memory() < 1 {
		t.Error("no memory")
	}
}
