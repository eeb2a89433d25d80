// Package plainjson reads the JSON texts that most records are, into structs of strings, numbers and booleans, faster than encoding/json does.
//
// It knows only what needs no thought: objects whose names are those of the fields to the letter, strings without escapes, valid UTF-8,
// numbers that fit. Of everything else it says that it can't, and the caller asks encoding/json, which then decides what the text
// means or what is wrong with it. So there is one authority on JSON, and what is read here is read as there: a fuzz test compares them.
//
// A text passes through like this. [For] looks at a Go type once and makes a [Plan], or none if the type has anything in it that takes more than
// this: methods of its own for JSON or text, embedded structs, slices, maps, interfaces, options in tags that change how a value is read.
// [Plan.Decode] walks over the text once and writes values to their fields' places in memory. Short strings of a text share one
// allocation.
//
// It must not know serdes, topics or errors' wording.
package plainjson
