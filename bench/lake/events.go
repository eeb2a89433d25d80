package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
)

// eventSchema declares the input: an order event of ten columns.
const eventSchema = `{"type":"record","name":"OrderEvent","fields":[
 {"name":"event_id","type":"string"},{"name":"order_id","type":"string"},{"name":"customer_id","type":"string"},
 {"name":"status","type":"string"},{"name":"currency","type":"string"},{"name":"amount","type":"double"},{"name":"quantity","type":"int"},
 {"name":"event_time","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"ingest_time","type":{"type":"long","logicalType":"timestamp-micros"}},
 {"name":"kafka_offset","type":"long"}]}`

const (
	schemaID   = 1                // in front of each event, in Confluent's wire format
	firstEvent = 1767225600000000 // µs; 2026-01-01
	eventPace  = 1800             // µs between two events
)

// appendEvent appends the i-th event in Confluent's wire format.
func appendEvent(dst []byte, r *rand.Rand, i int) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, 0), schemaID)
	text := func(s string) { dst = append(binary.AppendVarint(dst, int64(len(s))), s...) }
	order := i * 611953 % 1_000_000
	h, l := r.Uint64(), r.Uint64()
	text(fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", h>>32, h>>16&0xffff, h&0xffff, l>>48, l&0xffffffffffff))
	text(fmt.Sprintf("o-%d", order))
	text(fmt.Sprintf("c-%d", order%100_000))
	text([]string{"placed", "shipped", "delivered", "returned"}[r.IntN(4)])
	text([]string{"EUR", "USD", "GBP"}[r.IntN(3)])
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(100+r.IntN(50_000))/100))
	dst = binary.AppendVarint(dst, int64(1+r.IntN(9)))
	at := int64(firstEvent) + int64(i)*eventPace
	dst = binary.AppendVarint(dst, at)
	dst = binary.AppendVarint(dst, at+r.Int64N(500_000))
	return binary.AppendVarint(dst, int64(i))
}

// writeEvents writes n events to a file, each behind its length in four bytes.
func writeEvents(path string, n int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	var event, length []byte
	for i := range n {
		event = appendEvent(event[:0], r, i)
		length = binary.LittleEndian.AppendUint32(length[:0], uint32(len(event)))
		if _, err := w.Write(length); err != nil {
			return err
		}
		if _, err := w.Write(event); err != nil {
			return err
		}
	}
	return w.Flush()
}

// readEvents reads at most so many of the events that writeEvents has written; 0: all of them.
func readEvents(path string, most int) (all [][]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for most == 0 || len(all) < most {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("input %s: %w", path, err)
		}
		event := make([]byte, binary.LittleEndian.Uint32(length[:]))
		if _, err := io.ReadFull(r, event); err != nil {
			return nil, fmt.Errorf("input %s: %w", path, err)
		}
		all = append(all, event)
	}
	return all, nil
}
