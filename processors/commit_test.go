package processors_test

import (
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

func caching(s state.Spec) state.Spec {
	s.Caching = true
	return s
}

func TestEmitOnCommitSendsTheLastOfEachRow(t *testing.T) {
	e := newEnv(t, caching(tableSpec("s")))
	var out tap[string, stringChange]
	table := processors.NewAggregate(concat(), strings2("s", serde.String))
	table.EnableOldValues(true)
	n := e.node("aggregate", table, out.child("out"))
	e.start()
	must(e, n, "a", "1", 1)
	must(e, n, "b", "1", 2, processors.Header{Key: "b"})
	must(e, n, "a", "2", 3, processors.Header{Key: "a"})
	want(t, out.take(), "")
	e.commit()
	want(t, out.take(), "b=0+1<null@2 b; a=0+1+2<null@3 a")
	if e.ctx.Timestamp != 3 {
		t.Errorf("the context is not restored: %d", e.ctx.Timestamp)
	}
	e.commit()
	want(t, out.take(), "")
	must(e, n, "a", "3", 2)
	must(e, n, "a", "4", 2)
	e.commit()
	want(t, out.take(), "a=0+1+2+3+4<0+1+2@3")
}

func TestEmitOnCommitOfATable(t *testing.T) {
	e := newEnv(t, caching(tableSpec("rows")), caching(tableSpec("own")))
	source := processors.NewTableSource(strings2("rows", serde.String), true)
	own := strings2("own", serde.String)
	filter := processors.NewTableFilter(source, filterA, false, &own)
	var out tap[string, stringChange]
	n := e.node("rows", source, e.node("filter", filter, out.child("out")))
	e.start()
	must(e, n, "x", "a1", 1)
	remove(e, n, "x", 2) // nothing was there and nothing is
	must(e, n, "y", "a1", 3)
	e.commit()
	must(e, n, "y", "a2", 4)
	must(e, n, "y", "b1", 5)
	want(t, out.take(), "y=a1<null@3")
	e.commit() // the source's update reaches the filter within the same commit
	want(t, out.take(), "y=null<a1@5")
}

func TestEmitOnCommitOfWindowsAndSessions(t *testing.T) {
	e := newEnv(t, caching(windowSpec("w", 1000)), caching(sessionSpec("s", 1000)))
	var windows, sessions tap[windowedKey, stringChange]
	w := e.node("windows", processors.NewWindowAggregate(concat(), processors.TimeWindows{SizeMs: 10, AdvanceMs: 10}, processors.Emit{},
		strings2("w", serde.String)), windows.child("out"))
	table := processors.NewSessionAggregate(concat(), processors.SessionWindows{GapMs: 5, GraceMs: 10}, processors.Emit{}, strings2("s", serde.String))
	table.EnableOldValues(true)
	s := e.node("sessions", table, sessions.child("out"))
	e.start()
	for _, n := range []processors.Child{w, s} {
		must(e, n, "k", "a", 1)
		must(e, n, "k", "b", 3)
		must(e, n, "k", "c", 12)
	}
	e.commit()
	want(t, windows.take(), "k[0,10]=0+a+b<null@3; k[10,20]=0+c<null@12")
	want(t, sessions.take(), "k[1,3]=0&0+a+b<null@3; k[12,12]=0+c<null@12")
	must(e, s, "k", "d", 7)
	e.commit()
	want(t, sessions.take(), "k[1,3]=null<0&0+a+b@3; k[12,12]=null<0+c@12; k[1,12]=0&0&0+a+b&0+c+d<null@12")
}

// The inputs of a cogroup write one store: there is one update for what they have come to together.
func TestEmitOnCommitHoldsASharedStoreOnce(t *testing.T) {
	e := newEnv(t, caching(tableSpec("s")))
	store := strings2("s", serde.String)
	first, second := processors.NewAggregate(concat(), store), processors.NewAggregate(concat(), store)
	merged := processors.NewTablePassThrough([]processors.Table[string, string]{first, second}, store)
	var out tap[string, stringChange]
	end := e.node("merge", merged, out.child("out"))
	a, b := e.node("a", first, end), e.node("b", second, end)
	e.start()
	must(e, a, "k", "x", 1)
	must(e, b, "k", "y", 2)
	want(t, out.take(), "")
	e.commit()
	want(t, out.take(), "k=0+x+y<null@2")
}
