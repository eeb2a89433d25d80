package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"

	"github.com/spf13/cobra"
	"github.com/twmb/avro"

	"github.com/tributary-io/tributary/serde"
)

func addDevRegistry(cmd *cobra.Command, url *string) {
	cmd.Flags().StringVar(url, "registry", "http://localhost:8081", "URL of the schema registry, for Avro")
}

// avroReader shows records in Confluent's wire format as JSON, by the schemas that they were written with.
type avroReader struct {
	registry *serde.Registry
	schemas  map[int32]*avro.Schema
}

func newAvroReader(url string) (*avroReader, error) {
	registry, err := serde.NewRegistry(url)
	return &avroReader{registry, map[int32]*avro.Schema{}}, err
}

// show fails where the registry can't be asked. What is no Avro is "", as with the other formats.
func (a *avroReader) show(ctx context.Context, b []byte) (string, error) {
	id, body, err := serde.ParseFrame(b)
	if err != nil {
		return "", nil
	}
	schema := a.schemas[id]
	if schema == nil {
		text, err := a.registry.WriterSchema(ctx, int(id))
		if err != nil {
			if serde.Retriable(err) {
				return "", err
			}
			return "", nil
		}
		if schema, err = avro.Parse(text); err != nil {
			return "", fmt.Errorf("schema %d: %w", id, err)
		}
		a.schemas[id] = schema
	}
	var v any
	if rest, err := schema.Decode(body, &v); err != nil || len(rest) > 0 {
		return "", nil
	}
	text, err := json.Marshal(readable(v))
	if err != nil { // a float that is no number
		text, err = schema.EncodeJSON(v)
	}
	return string(text), err
}

// readable has decimals as text in place of fractions, which JSON doesn't know.
func readable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = readable(v[name])
		}
	case []any:
		for i := range v {
			v[i] = readable(v[i])
		}
	case *big.Rat:
		digits, _ := v.FloatPrec()
		return v.FloatString(digits)
	}
	return v
}

// avroWriter makes such records of JSON.
type avroWriter struct {
	schema *avro.Schema
	id     int
}

// newAvroWriter registers the schema of a file for a topic's values.
func newAvroWriter(ctx context.Context, url, file, topic string) (*avroWriter, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	schema, err := avro.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	registry, err := serde.NewRegistry(url)
	if err != nil {
		return nil, err
	}
	defer registry.Close()
	id, err := registry.Register(ctx, serde.Subject(topic, false), string(text))
	return &avroWriter{schema, id}, err
}

// value reads JSON: times as RFC 3339 or numbers, fields that are missing by their defaults.
func (a *avroWriter) value(text []byte) ([]byte, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	var v any
	if err := in.Decode(&v); err != nil || in.More() {
		return nil, errors.Join(fmt.Errorf("the value is no JSON: %s", text), err)
	}
	return a.schema.AppendEncode(serde.AppendFrame(nil, int32(a.id)), v)
}
