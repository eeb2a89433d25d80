package processors

import (
	"bytes"
	"strconv"
)

// RawHooks is implemented by a Runtime that can tell whether anyone asks for Context.RawKey and RawValue: an error handler, or the ledger of
// what is left out. Nodes that hold updates back keep these bytes only then.
type RawHooks interface{ UsesRaw() bool }

func usesRaw(rt Runtime) bool {
	hooks, ok := rt.(RawHooks)
	return ok && hooks.UsesRaw()
}

// rawRecords keeps the bytes of the records whose updates a node holds back, for the dead letters of what it sends later. They are kept in
// memory only: after a restart they are null, as a suppression's are in Kafka Streams.
type rawRecords struct {
	ctx  *Context
	held map[string]*rawRecord // nil if nobody asks
}

type rawRecord struct {
	key, value []byte
	updates    int
}

func newRawRecords(rt Runtime) rawRecords {
	r := rawRecords{ctx: rt.Context()}
	if usesRaw(rt) {
		r.held = map[string]*rawRecord{}
	}
	return r
}

// keep keeps the current record's bytes under the key of its update, in place of those of the update before.
func (r *rawRecords) keep(key []byte) {
	if r.held != nil {
		r.held[string(key)] = &rawRecord{bytes.Clone(r.ctx.RawKey), bytes.Clone(r.ctx.RawValue), 1}
	}
}

// enter makes the bytes kept under a key the current ones, and forgets them.
func (r *rawRecords) enter(key []byte) {
	r.ctx.RawKey, r.ctx.RawValue = nil, nil
	if raw := r.held[string(key)]; raw != nil {
		r.ctx.RawKey, r.ctx.RawValue = raw.key, raw.value
		if raw.updates--; raw.updates == 0 {
			delete(r.held, string(key))
		}
	}
}

// keepRecord keeps the current record's bytes for one of its updates, of which there may be several.
func (r *rawRecords) keepRecord() {
	if r.held == nil {
		return
	}
	key := r.place()
	if raw := r.held[string(key)]; raw != nil {
		raw.updates++
	} else {
		r.keep(key)
	}
}

// enterRecord makes the bytes of the record in the context the current ones.
func (r *rawRecords) enterRecord() { r.enter(r.place()) }

// place names the record in the context. A task reads one partition of a topic.
func (r *rawRecords) place() []byte {
	if r.held == nil {
		return nil
	}
	return append(strconv.AppendInt(nil, r.ctx.Offset, 10), r.ctx.Topic...)
}
