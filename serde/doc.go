// Package serde turns the bytes of Kafka records into Go values and back.
//
// A stream names its serdes where it begins, and derived streams find theirs by type:
//
//	orders := b.Stream("orders", serde.String, serde.JSON[Order]())
//
// # Built-ins and their wire formats
//
// They are those of Kafka's own serializers, so that a topic, a changelog or a repartition topic can be read by Java clients
// and the other way round:
//
//	serde        Go type      bytes                                          Kafka's serializer
//	String       string       UTF-8, as it is                                StringSerializer
//	Bytes        []byte       as they are                                    ByteArraySerializer, BytesSerializer
//	Int16        int16        2, big endian, two's complement                ShortSerializer
//	Int32        int32        4, big endian, two's complement                IntegerSerializer
//	Int64        int64        8, big endian, two's complement                LongSerializer
//	Int          int          as Int64                                       LongSerializer
//	Float32      float32      4, IEEE 754, big endian                        FloatSerializer
//	Float64      float64      8, IEEE 754, big endian                        DoubleSerializer
//	Bool         bool         1: 0x01 or 0x00                                BooleanSerializer
//	UUID         uuid.UUID    36, the text form in lower case                UUIDSerializer
//	Time         time.Time    as Int64: milliseconds since 1970, UTC         LongSerializer over epoch milliseconds
//
// A length that doesn't fit is a *LengthError and never a guess. Default finds a built-in by the exact Go type; Ptr lifts one
// to a pointer, which can hold a null.
//
// JSON, and Avro in Confluent's wire format with a schema registry, serve structs; AvroBytes lands Avro records as they are. Func
// makes a serde of two functions.
//
// # How a record passes through
//
// The task that reads a record asks a Codec, which pairs a serde with the null rule of its Go type. A Kafka null never
// reaches a serde. Decoded strings and byte slices may alias the record's bytes (see Serde); Append writes behind what is
// already in the buffer, so a hot path encodes without allocating.
//
// # Errors
//
// An error of Decode is the record's fault unless Retriable says otherwise: a registry that can't be reached says nothing
// about the record, and such a record must be tried again instead of being skipped or dead-lettered.
//
// # What this package must not know
//
// No topology, task, store or broker: serdes see bytes, and at most the name of a topic. Each Avro library is named in one file
// only (hamba.go, avro_other.go).
package serde
