package schemas_test

import (
	"fmt"

	"github.com/tributary-io/tributary/schemas"
)

func ExampleStreams() {
	for _, s := range schemas.Streams() {
		fmt.Printf("%s: %d partitions, %s, key %s, %s\n", s.Topic, s.Partitions, s.Cleanup, s.Key.Field, s.Sensitivity)
	}
	// Output:
	// ods.demo.customers: 3 partitions, compact, key customer_id, restricted
	// ods.demo.order_events: 3 partitions, delete, key order_id, confidential
}
