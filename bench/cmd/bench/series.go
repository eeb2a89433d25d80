package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
)

// all runs every workload. What was measured before an error is in the report.
func (s *session) all(ctx context.Context) (*report, error) {
	rep := newReport(s.opts)
	field, err := s.field()
	if err != nil {
		return rep, err
	}
	for _, w := range s.opts.workloads {
		if figures[w] == nil {
			return rep, fmt.Errorf("there is no workload %q: they are a to i", w)
		}
		if err := s.series(ctx, rep, w, field); err != nil {
			return rep, err
		}
		fmt.Println(rep.section(w))
	}
	return rep, nil
}

// warmFor is how long a workload is run for nothing before it is measured, at least once. After one pass-through, which takes a second or two, the broker
// still took twice the CPU of later rounds.
const warmFor = 10 * time.Second

// warmUp runs a workload for nothing: the broker compiles the code that it takes meanwhile, which the first contestants would pay for.
func (s *session) warmUp(ctx context.Context, workload string, own contestant) error {
	if s.cluster == nil || !strings.Contains("abcdi", workload) {
		return nil // no throughput of a broker's
	}
	say("warming the broker up with %s", workload)
	for began := time.Now(); time.Since(began) < warmFor; {
		if _, err := own.run(ctx, workload); err != nil {
			return fmt.Errorf("warm the broker up: %w", err)
		}
	}
	return nil
}

// field is everyone who is compared, this build first.
func (s *session) field() ([]contestant, error) {
	own, err := s.thisBuild()
	if err != nil {
		return nil, err
	}
	others, err := s.otherBuilds()
	if err != nil {
		return nil, err
	}
	peers, err := s.peers()
	return slices.Concat([]contestant{own}, others, []contestant{raw{s, own.program}, goka{s, own.program}}, peers), err
}

// series runs a workload on everyone who takes it, in turn, and each second round the other way round: what a run leaves to the next, such as code that the
// broker has compiled, is to nobody's advantage.
func (s *session) series(ctx context.Context, rep *report, workload string, field []contestant) error {
	if err := s.warmUp(ctx, workload, field[0]); err != nil {
		return err
	}
	for round := range s.opts.rounds {
		turn := slices.Clone(field)
		if round%2 == 1 {
			slices.Reverse(turn)
		}
		for _, c := range turn {
			if !c.takes(workload) {
				continue
			}
			results, err := c.run(ctx, workload)
			if err != nil {
				return fmt.Errorf("workload %s, %s: %w", workload, c.name(), err)
			}
			for _, r := range results {
				rep.add(workload, c.name(), round, r)
				say("%s %s round %d: %.0f records/s, %.2f us of CPU a record, %.0f MB, load %.1f", workload, variantOf(c.name(), r), round+1,
					r.Number(measure.RecordsPerS), r.Number(measure.CPUPerRecord), r.Number(measure.PeakMB), r.Number("load1"))
			}
		}
	}
	if own, ok := field[0].(tributary); ok && s.opts.profile {
		if err := own.profile(ctx, workload); err != nil {
			return fmt.Errorf("workload %s, profiles: %w", workload, err)
		}
	}
	return nil
}

func variantOf(name string, r measure.Result) string {
	if v, ok := r["variant"].(string); ok {
		return name + " (" + v + ")"
	}
	return name
}
