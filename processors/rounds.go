package processors

// rounds decides when an operator looks for closed windows or sessions to send (KIP-825). How far it has come, the close time of the
// last round, is kept with the committed offsets, so a restart neither repeats nor leaves out a result.
type rounds struct {
	rt        Runtime
	emit      Emit
	retention int64  // of the store, in ms
	key       string // of the progress

	last     int64 // close time of the last round, or NoTimestamp
	nextTime int64 // wall clock in ms before which no round is due
}

func newRounds(rt Runtime, emit Emit, retention int64) rounds {
	r := rounds{rt: rt, emit: emit, retention: retention, key: rt.NodeName() + "/closed", last: NoTimestamp}
	if last, ok := rt.Progress(r.key); ok {
		r.last = last
	}
	return r
}

// advanced tells whether the close time has moved since the last round.
func (r *rounds) advanced(closeTime int64) bool {
	return r.emit.OnClose && (r.last == NoTimestamp || r.last < closeTime)
}

// due tells whether the throttle allows a round, or the store forces one: results from the time oldest on may expire when a record of
// the time incoming is stored.
func (r *rounds) due(oldest, incoming int64) bool {
	if r.emit.IntervalMs <= 0 {
		return true
	}
	now := r.rt.Now().UnixMilli()
	if now < r.nextTime && oldest > incoming-r.retention {
		return false
	}
	r.nextTime = now + r.emit.IntervalMs
	return true
}

func (r *rounds) done(closeTime int64) {
	r.last = closeTime
	r.rt.SetProgress(r.key, closeTime)
}

// closedRows is an iterator over the rows of closed windows or sessions.
type closedRows interface {
	Next() bool
	Close() error
}

// sendClosed sends each row of it as a final result, at the row's time, and closes it. read makes the window and the row of where it is.
func sendClosed[K, A any](node string, out *updates[Windowed[K], A], it closedRows, headers []Header, read func() (Windowed[K], Row[A], error)) (err error) {
	defer func() {
		if closed := it.Close(); err == nil {
			err = fatal(closed)
		}
	}()
	for it.Next() {
		key, row, err := read()
		if err != nil {
			return err
		}
		if row.Timestamp < 0 {
			return &NegativeTimeError{Node: node, Timestamp: row.Timestamp}
		}
		change := Change[A]{New: row.Value, NewNull: row.Null, OldNull: true, IsLatest: true}
		if err := out.send(key, change, row.Timestamp, headers); err != nil {
			return err
		}
	}
	return nil
}
