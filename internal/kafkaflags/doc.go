// Package kafkaflags gives commands one set of flags and environment variables for secured Kafka clusters, and makes client options of
// them: TLS, client certificates, SASL.
//
// A flag goes before its environment variable. Secrets appear in no help text, error or log; files with secrets and certificates are
// read again for each connection, so that they can be renewed while the program runs. The package knows neither brokers' addresses nor
// what the client is for.
package kafkaflags
