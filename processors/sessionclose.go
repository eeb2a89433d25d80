package processors

import "github.com/tributary-io/tributary/state"

// sessionCloser sends the results of closed sessions: windowCloser for sessions, which are closed when their end is before the close
// time.
type sessionCloser[K, A any] struct {
	rounds
	rows *sessionRows[K, A]
	out  *updates[Windowed[K], A]
}

// close sends what is closed at closeTime, with the headers of the record that brought it about. incoming is that record's time.
func (c *sessionCloser[K, A]) close(closeTime, incoming int64, headers []Header) error {
	if !c.advanced(closeTime) {
		return nil
	}
	from, to := max(0, c.last), closeTime-1
	if to < from || !c.due(from, incoming) {
		return nil
	}
	it, err := c.rows.bytes.FindEnded(from, to)
	if err != nil {
		return c.rows.failed("find", err)
	}
	if err := c.sendAll(it, headers); err != nil {
		return err
	}
	c.done(closeTime)
	return nil
}

func (c *sessionCloser[K, A]) sendAll(it state.SessionIterator, headers []Header) error {
	return sendClosed(c.rt.NodeName(), c.out, it, headers, func() (key Windowed[K], row Row[A], err error) {
		key.Window = Window{Start: it.Start(), End: it.End()}
		if key.Key, err = c.rows.decodeKeyShared(it.Key()); err != nil {
			return key, row, err
		}
		row, err = c.rows.decodeShared(it.Value(), it.End())
		return key, row, err
	})
}
