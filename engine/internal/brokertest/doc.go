// Package brokertest runs a test against the embedded broker and against real Kafka: what holds on one of them only is a trap. Its own tests compare the two.
package brokertest
