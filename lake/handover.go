package lake

import (
	"slices"
	"strings"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/sink"
)

// A table is handed over from a sink with one form of progress to a sink with the other (see PlatformProgress) without a step by
// hand: the new sink begins where the old one has ended. From then on it keeps the old one's progress, too, in the old one's form,
// and compares it as strictly as its own. So the old sink, if it still runs, is fenced instead of landing rows a second time, and it
// can take over again at any time.

// handedOver is a partition whose progress the table has in the other form, too.
type handedOver struct {
	own    delta.Txn // zero AppID: the table has none
	others []delta.Txn
	next   int64 // the farthest of all
}

// otherTxns returns what the table says of a partition in the form that the sink doesn't use.
func (w *writer) otherTxns(h *delta.Head, p sink.Partition) (out []delta.Txn) {
	_, platform := w.sink.scheme().(platformScheme)
	if !platform {
		if txn, ok := h.Txns[platformScheme{}.appID(&w.env, p)]; ok {
			out = append(out, txn)
		}
		return out
	}
	for _, txn := range h.Txns {
		if q := parseProgress(txn); q.Topic == p.Topic && q.TopicID == p.TopicID && q.Partition == p.Partition && q.Sink != platformName {
			out = append(out, txn)
		}
	}
	slices.SortFunc(out, func(a, b delta.Txn) int { return strings.Compare(a.AppID, b.AppID) })
	return out
}

// progressOf decides where the sink goes on in a partition, and remembers whose progress it has to keep beside its own.
func (w *writer) progressOf(h *delta.Head, p sink.Partition) int64 {
	next := w.offset(h, p)
	others := w.otherTxns(h, p)
	if len(others) == 0 {
		delete(w.handed, p)
		return next
	}
	state := handedOver{own: h.Txns[w.sink.scheme().appID(&w.env, p)], others: others, next: next}
	for _, txn := range others {
		state.next = max(state.next, parseProgress(txn).Next)
	}
	if state.next > next {
		w.log.Warn("another sink has landed this partition in another form of progress: going on where it has ended, and keeping its progress, too",
			"partition", p.String(), "from", state.next, "own_progress", next, "other", others[0].AppID)
	}
	if w.handed == nil {
		w.handed = map[sink.Partition]*handedOver{}
	}
	w.handed[p] = &state
	return state.next
}

// moves translates a partition's move: its own, and those of the progress that is kept beside it.
func (w *writer) moves(m sink.Move) (out []delta.Move) {
	own, ok := w.move(m)
	if !ok {
		return nil
	}
	state := w.handed[m.Partition]
	if state == nil || state.next != m.From {
		return []delta.Move{own} // where From is not what was told, the comparison with the table fails, as it should
	}
	own.First, own.From = state.own.AppID == "", state.own.Version
	out = append(out, own)
	for _, txn := range state.others {
		if to, ok := formOf(txn.AppID).version(m.To); ok {
			out = append(out, delta.Move{AppID: txn.AppID, From: txn.Version, To: to})
		}
	}
	return out
}

// formOf is the form of an application id that this package has written.
func formOf(appID string) progressScheme {
	if parseProgress(delta.Txn{AppID: appID}).Sink == platformName {
		return platformScheme{}
	}
	return nextScheme{}
}

// moved notes what a commit has written.
func (w *writer) moved(moves []sink.Move) {
	for _, m := range moves {
		state := w.handed[m.Partition]
		if state == nil || m.From == m.To {
			continue
		}
		state.next = m.To
		scheme := w.sink.scheme()
		if v, ok := scheme.version(m.To); ok {
			state.own.AppID, state.own.Version = scheme.appID(&w.env, m.Partition), v
		}
		for i, txn := range state.others {
			if v, ok := formOf(txn.AppID).version(m.To); ok {
				state.others[i].Version = v
			}
		}
	}
}
