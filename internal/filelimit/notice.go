package filelimit

import (
	"sync/atomic"
	"time"
)

// Notice keeps what is said of the limit to once a minute: where it is reached, it is by many at once. The zero value is ready, and safe for concurrent use.
type Notice struct{ last atomic.Int64 }

const noticeEvery = time.Minute

// Due reports whether something is to be said now, to one of those who ask.
func (n *Notice) Due() bool {
	now, last := time.Now().UnixNano(), n.last.Load()
	return (last == 0 || now-last >= int64(noticeEvery)) && n.last.CompareAndSwap(last, now)
}
