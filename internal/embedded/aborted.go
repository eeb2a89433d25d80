package embedded

import (
	"math"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// readCommitted is a fetch's isolation level.
const readCommitted = 1

// tellAborted has answers end where the limits of their partitions are, and not in the middle of one for the limit of the whole: kfake leaves out there which
// transactions were aborted, so that who reads committed records takes aborted ones for committed.
func tellAborted(cluster *kfake.Cluster) {
	cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if f := req.(*kmsg.FetchRequest); f.IsolationLevel == readCommitted {
			f.MaxBytes = math.MaxInt32
		}
		return nil, nil, false
	})
}
