package serde

// AvroBytes is a serde for records that are to be landed as they are: the value is the record's own bytes, in Confluent's wire
// format, and stays in the schema that it was written with.
//
// Decode checks that the bytes are a whole value of a schema that the registry knows and that can be read as the
// declared one; it makes no Go value of them. Whoever decodes the bytes later may still refuse a value (a number beyond its
// decimal's precision, a string that isn't UTF-8). Append takes the bytes as they are.
func AvroBytes(reg *Registry, schema string) Serde[[]byte] {
	return avroBytes{Avro[struct{}](reg, schema, func(c *avroConfig) { c.skim = true })}
}

type avroBytes struct{ skim Serde[struct{}] }

// Check implements Checker.
func (s avroBytes) Check() error { return Check(s.skim) }

func (s avroBytes) Append(dst []byte, v []byte) ([]byte, error) {
	if _, _, err := ParseFrame(v); err != nil {
		return dst, err
	}
	return append(dst, v...), nil
}

func (s avroBytes) Decode(data []byte) ([]byte, error) {
	if _, err := s.skim.Decode(data); err != nil {
		return nil, err
	}
	return Bytes.Decode(data)
}
