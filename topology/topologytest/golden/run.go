package golden

import (
	"fmt"
	"time"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// config is a scenario's configuration.
type config struct {
	applicationID        string
	optimization         string
	cacheMaxBytes        int64
	timestampExtractor   string
	deserialization      string
	processing           string
	production           string
	dlqTopic             string
	wallClockStart       int64
	inMemory             bool
	ensureExplicitNaming bool
	exactlyOnce, maxIdle bool // nothing in the driver depends on them
}

func parseConfig(s *Scenario) (config, error) {
	var failed error
	o := newObject("config", s.config, &failed)
	c := config{
		applicationID: o.strOr("applicationId", "golden"), optimization: o.strOr("topologyOptimization", "none"),
		cacheMaxBytes: o.int("cacheMaxBytes"), timestampExtractor: o.str("timestampExtractor"),
		deserialization: o.strOr("deserializationHandler", "logAndFail"), processing: o.strOr("processingHandler", "logAndFail"),
		production: o.strOr("productionHandler", "default"), dlqTopic: o.str("dlqTopic"), wallClockStart: o.int("wallClockStart"),
		inMemory: o.strOr("dslStore", "rocksDB") == "inMemory", ensureExplicitNaming: o.boolOr("ensureExplicitNaming", false),
		exactlyOnce: o.str("processingGuarantee") == "exactly_once_v2", maxIdle: o.has("maxTaskIdleMs"),
	}
	o.finish()
	return c, failed
}

// handler turns the name of one of Kafka Streams' exception handlers into an error handler. With a dead letter topic the handlers for
// deserialization and processing that go on write to it.
func (c config) handler(name string, deadLetters bool) processors.ErrorHandler {
	switch name {
	case "logAndContinue", "continue":
		if c.dlqTopic != "" && deadLetters {
			return processors.DeadLetterOnError(c.dlqTopic)
		}
		return processors.SkipOnError()
	}
	return processors.FailOnError()
}

// handlers are those of the configuration. Of global tables the driver leaves out what can't be decoded whatever it says, and asks no other
// handler unless processing.exception.handler.global.enabled is set.
func (c config) handlers() processors.Handlers {
	h := processors.Handlers{
		Global:          &processors.Handlers{Deserialization: processors.SkipOnError()},
		Deserialization: c.handler(c.deserialization, true), Processing: c.handler(c.processing, true), Production: c.handler(c.production, false),
	}
	if c.production == "default" && c.dlqTopic != "" {
		// Kafka Streams' default handler writes a dead letter and fails; the latter is the processing handler's to judge.
		h.Production = processors.HandleErrors(func(*processors.ErrorContext) processors.Verdict {
			return processors.Verdict{Fail: true, DeadLetterTopic: c.dlqTopic}
		})
	}
	return h
}

// Run runs a scenario and returns what came out, section by section. An error wraps ErrUnsupported where the scenario has words that the
// runner doesn't know; any other is the runner's own failure. Errors that the scenario provokes are in the result.
func Run(s *Scenario) (Result, error) {
	cfg, err := parseConfig(s)
	if err != nil {
		return nil, err
	}
	r := &run{scenario: s, cfg: cfg, step: -1, result: Result{}, observed: map[string]any{}, outputs: map[string][]any{}, changelogs: map[string][]any{}, repartitions: map[string][]any{}}
	r.build = newBuild(s, cfg, r.observe)
	built, err := r.build.plan(s.topology)
	if buildErr := asBuildError(err); buildErr != nil {
		return Result{"error": map[string]any{"at": "build", "kind": kindOfBuild(buildErr), "message": buildErr.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := topologytest.Open(built, topologytest.ErrorHandlers(cfg.handlers()), topologytest.StartTime(time.UnixMilli(cfg.wallClockStart).UTC()))
	if err != nil {
		return nil, fmt.Errorf("starting the topology: %w", err)
	}
	r.driver, r.plan = d, built.Internal()
	err = r.run()
	if closeErr := d.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("closing the driver: %w", closeErr)
	}
	return r.result, err
}

// run is one run of a scenario.
type run struct {
	scenario *Scenario
	cfg      config
	build    *build
	driver   *topologytest.Driver
	plan     *plan.Plan
	step     int
	result   Result

	outputs, changelogs, repartitions map[string][]any
	observed                          map[string]any
	queries                           []any
}

// observe is called by peek and foreach.
func (r *run) observe(label string, key, value any) {
	list, _ := r.observed[label].([]any)
	r.observed[label] = append(list, map[string]any{"step": r.step, "key": show(key), "value": show(value)})
}

func (r *run) run() error {
	r.describe()
	failed, err := r.steps()
	if err != nil {
		return err
	}
	r.result["outputs"] = lists(r.outputs)
	r.result["changelogs"] = lists(r.changelogs)
	r.result["repartitions"] = lists(r.repartitions)
	for _, label := range r.build.labels {
		if r.observed[label] == nil { // nothing came by
			r.observed[label] = []any{}
		}
	}
	if len(r.observed) > 0 {
		r.result["observed"] = r.observed
	}
	if len(r.queries) > 0 {
		r.result["queries"] = r.queries
	}
	var dropped int64
	for _, n := range r.driver.Dropped() {
		dropped += n
	}
	r.result["droppedRecords"] = dropped + r.build.expired
	if failed != nil {
		r.result["error"] = map[string]any{"at": fmt.Sprintf("step %d", r.step), "kind": kindOfRun(failed), "message": failed.Error()}
		return nil
	}
	return r.dumpStores()
}

func lists(m map[string][]any) map[string]any {
	out := make(map[string]any, len(m))
	for name, list := range m {
		out[name] = list
	}
	return out
}

// steps runs the steps until one fails. failed is the topology's error, err the runner's.
func (r *run) steps() (failed, err error) {
	for i, raw := range r.scenario.steps {
		r.step = i
		o := newObject(fmt.Sprintf("step %d", i), raw, &err)
		failed = r.one(o, &err)
		o.finish()
		if err == nil {
			err = r.drain()
		}
		if failed != nil || err != nil {
			return failed, err
		}
	}
	return nil, nil
}

func (r *run) one(o *object, err *error) (failed error) {
	switch {
	case o.has("pipe"):
		return r.pipe(o.obj("pipe"))
	case o.has("advanceWallClock"):
		return r.driver.AdvanceWallClock(ms(o.int("advanceWallClock")))
	case o.has("query"):
		r.query(o.obj("query"), err)
	default:
		o.unsupported("step of an unknown kind")
	}
	return nil
}

func (r *run) pipe(o *object) (failed error) {
	rec := r.encode(o)
	if err := *o.first; is[*refusedError](err) { // the oracle takes it for an error of the topology
		*o.first = nil
		return err
	}
	if *o.first != nil {
		return nil
	}
	return r.driver.Pipe(rec)
}

// encode makes the record that a step describes; what is wrong with it is noted in o.
func (r *run) encode(o *object) topologytest.Record {
	topic := o.str("topic")
	types := r.typesOf(topic, true)
	rec := topologytest.Record{Topic: topic, Timestamp: o.int("timestamp"), Headers: parseHeaders(o.objs("headers"))}
	var err error
	if o.has("keyBase64") {
		o.into("keyBase64", &rec.Key)
	} else if rec.Key, err = types.key.encode(o.raw("key")); err != nil {
		o.fail(err)
	}
	switch {
	case o.has("valueBase64"):
		o.into("valueBase64", &rec.Value)
	case o.there("valueText"):
		rec.Value = []byte(o.str("valueText"))
	default:
		if rec.Value, err = types.value.encode(o.raw("value")); err != nil {
			o.fail(err)
		}
	}
	o.finish()
	return rec
}

func (r *run) query(o *object, err *error) {
	store, line := o.str("store"), o.str("command")
	o.finish()
	if *err != nil {
		return
	}
	lines, failed := r.runQuery(store, line)
	if failed != nil {
		*err = failed
		return
	}
	shown := make([]any, len(lines))
	for i, l := range lines {
		shown[i] = l
	}
	r.queries = append(r.queries, map[string]any{"step": r.step, "result": shown})
}

func (r *run) runQuery(store, line string) ([]string, error) {
	stores, err := r.driver.Stores(store, 0)
	if err != nil {
		return nil, err
	}
	types, err := r.storeTypes(store)
	if err != nil {
		return nil, err
	}
	v, err := openStore(stores, store, types)
	if err != nil {
		return nil, err
	}
	return runCommand(v, line, func() { r.build.expired++ })
}
