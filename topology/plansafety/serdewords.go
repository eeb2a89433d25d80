package plansafety

import "regexp"

// Plans name serdes by their Go types, which are compared from version to version and so stay what they are. People know a serde by the function or
// variable that makes it.
var (
	plainSerde = regexp.MustCompile(`^serde\.(\w+?)(?:Serde)? of \S+$`)
	typedSerde = regexp.MustCompile(`^(serde|processors)\.(\w+?)(?:Serde|NonAliasing)\[`)
	serdeMaker = map[string]string{
		"string": "String", "bytes": "Bytes", "int16": "Int16", "int32": "Int32", "int64": "Int64", "int": "Int", "float32": "Float32", "float64": "Float64",
		"bool": "Bool", "uuid": "UUID", "time": "Time", "avroBytes": "AvroBytes", "json": "JSON", "avro": "Avro", "ptr": "Ptr", "func": "Func",
		"timeWindowed": "TimeWindowedSerde", "sessionWindowed": "SessionWindowedSerde",
	}
)

// SerdeWords is a serde of a Store or a Topic as programs write it: serde.String, serde.JSON[orders.Order]. One of which it knows no such form stays what the
// plan calls it.
func SerdeWords(name string) string {
	if m := plainSerde.FindStringSubmatch(name); m != nil && serdeMaker[m[1]] != "" {
		return "serde." + serdeMaker[m[1]]
	}
	if m := typedSerde.FindStringSubmatch(name); m != nil && serdeMaker[m[2]] != "" {
		return m[1] + "." + serdeMaker[m[2]] + name[len(m[0])-1:]
	}
	return name
}
