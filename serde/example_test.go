package serde_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tributary-io/tributary/serde"
)

func Example() {
	key, err := serde.Int64.Append(nil, 42)
	fmt.Printf("% x %v\n", key, err)

	_, err = serde.Int64.Decode([]byte("42"))
	fmt.Println(err)
	// Output:
	// 00 00 00 00 00 00 00 2a <nil>
	// int64 takes 8 bytes, got 2: the topic is written with another serializer
}

func ExampleDefault() {
	s, ok := serde.Default[time.Time]()
	b, _ := s.Append(nil, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	fmt.Printf("%v % x\n", ok, b)

	type orderID string
	_, ok = serde.Default[orderID]()
	fmt.Println(ok)
	// Output:
	// true 00 00 01 9e 80 7a ec 00
	// false
}

func ExampleJSON() {
	type order struct {
		ID    string `json:"id"`
		Total int    `json:"total"`
	}
	s := serde.JSON[order]()
	b, _ := s.Append(nil, order{"o-1", 1250})
	fmt.Println(string(b))

	_, err := s.Decode([]byte(`null`))
	fmt.Println(err)
	// Output:
	// {"id":"o-1","total":1250}
	// JSON null for serde_test.order: declare it as *serde_test.order
}

func ExamplePtr() {
	codec := serde.NewCodec(serde.Ptr(serde.String))
	_, null, _ := codec.Encode(nil, nil, false)
	fmt.Println("a nil is a Kafka null:", null)

	v, null, _ := codec.DecodeNull([]byte("x"))
	fmt.Println(*v, null)
	// Output:
	// a nil is a Kafka null: true
	// x false
}

func ExampleAvro() {
	type payment struct {
		Order  string        `avro:"order"`
		Amount serde.Decimal `avro:"amount"`
	}
	const schema = `{"type":"record","name":"Payment","fields":[
		{"name":"order","type":"string"},
		{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}}]}`

	registry := serde.NewMemoryRegistry() // serde.NewRegistry("http://localhost:8081") for a real one
	defer registry.Close()
	s := serde.Bind(serde.Avro[payment](registry, schema), "payments", false)

	// At start-up: what is wrong with schema or type is said now, and the schema is registered.
	if err := serde.Check(s); err != nil {
		fmt.Println(err)
		return
	}
	if err := serde.Prepare(context.Background(), s); err != nil {
		fmt.Println(err)
		return
	}

	b, _ := s.Append(nil, payment{"o-1", serde.DecimalOf(1250)})
	fmt.Printf("% x\n", b)
	p, err := s.Decode(b)
	fmt.Println(p.Order, p.Amount.Text(2), err)
	// Output:
	// 00 00 00 00 01 06 6f 2d 31 04 04 e2
	// o-1 12.50 <nil>
}

func ExampleRetriable() {
	registry, err := serde.NewRegistry("http://127.0.0.1:1", serde.RegistryTimeout(time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer registry.Close()
	s := serde.Avro[string](registry, `"string"`)

	_, err = s.Decode([]byte("\x00\x00\x00\x00\x07\x02x"))
	fmt.Println("registry down:", serde.Retriable(err))
	_, err = s.Decode([]byte("not Avro"))
	fmt.Println("not Avro:", serde.Retriable(err))
	// Output:
	// registry down: true
	// not Avro: false
}
