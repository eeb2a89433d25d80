package embedded

import (
	"encoding/binary"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// epochs are those that transactional producers were given.
type epochs struct {
	mu sync.Mutex
	of map[int64]epoch
}

type epoch struct {
	newest int16
	taken  int16 // the last one that was given to who came without an epoch: a successor
}

// refuseZombies refuses requests of epochs that are over before kfake sees them. kfake refuses their batches too, but first begins a transaction in the name of the
// producer that has the id now, which is fenced and loses what it writes once that times out. It takes the end of a transaction for a repetition, and
// gives who asks for a newer epoch one that fences the successor.
func (e *epochs) refuseZombies(cluster *kfake.Cluster) {
	control := func(key kmsg.Key, refused func(kmsg.Request) kmsg.Response) {
		cluster.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
			resp := refused(req)
			if resp != nil {
				cluster.KeepControl()
			}
			return resp, nil, resp != nil
		})
	}
	control(kmsg.Produce, func(r kmsg.Request) kmsg.Response {
		if req := r.(*kmsg.ProduceRequest); e.over(req) {
			return refuse(req, kerr.InvalidProducerEpoch)
		}
		return nil
	})
	control(kmsg.EndTxn, func(r kmsg.Request) kmsg.Response {
		req := r.(*kmsg.EndTxnRequest)
		if !e.succeeded(req.ProducerID, req.ProducerEpoch) {
			return nil
		}
		resp := req.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ErrorCode = fenced(req.Version >= 2)
		return resp
	})
	control(kmsg.InitProducerID, func(r kmsg.Request) kmsg.Response {
		req := r.(*kmsg.InitProducerIDRequest)
		if !e.succeeded(req.ProducerID, req.ProducerEpoch) {
			return nil
		}
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = fenced(req.Version >= 4)
		return resp
	})
}

// fenced is the error for a producer that has a successor; older clients don't know PRODUCER_FENCED (KIP-588).
func fenced(known bool) int16 {
	if known {
		return kerr.ProducerFenced.Code
	}
	return kerr.InvalidProducerEpoch.Code
}

// succeeded says whether somebody else took the producer's id over since it was given this epoch.
func (e *epochs) succeeded(producer int64, given int16) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return producer >= 0 && given >= 0 && given < e.of[producer].taken
}

// over says whether a batch is of an epoch that is over. All batches of a request are of one producer.
func (e *epochs) over(req *kmsg.ProduceRequest) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			if len(p.Records) < batchRecordsAt || p.Records[batchAttributesAt+1]&batchTransactionalBit == 0 {
				continue
			}
			newest, known := e.of[int64(binary.BigEndian.Uint64(p.Records[batchProducerIDAt:]))]
			if known && int16(binary.BigEndian.Uint16(p.Records[batchProducerEpochAt:])) < newest.newest {
				return true
			}
		}
	}
	return false
}

func refuse(req *kmsg.ProduceRequest, err *kerr.Error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, err.Code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// answer takes in the answer to a request, from behind its correlation id.
func (e *epochs) answer(to *waiting, p []byte) {
	if to.key != int16(kmsg.InitProducerID) && to.key != int16(kmsg.EndTxn) {
		return
	}
	resp := kmsg.ResponseForKey(to.key)
	resp.SetVersion(to.version)
	if resp.IsFlexible() && len(p) > 0 {
		p = p[1:] // no tags
	}
	if resp.ReadFrom(p) != nil {
		return
	}
	switch r := resp.(type) {
	case *kmsg.InitProducerIDResponse:
		e.given(r.ErrorCode, r.ProducerID, r.ProducerEpoch, to.successor)
	case *kmsg.EndTxnResponse:
		e.given(r.ErrorCode, r.ProducerID, r.ProducerEpoch, false)
	}
}

func (e *epochs) given(code int16, producer int64, newest int16, successor bool) {
	if code != 0 || producer < 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil {
		e.of = map[int64]epoch{}
	}
	known := e.of[producer]
	if successor && newest == 0 { // kfake had forgotten the transactional id, and the id it makes of it is the same
		known = epoch{}
	}
	known.newest = max(known.newest, newest)
	if successor {
		known.taken = max(known.taken, newest)
	}
	e.of[producer] = known
}
