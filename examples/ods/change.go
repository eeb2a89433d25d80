package ods

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Change is a change of a declared schema: what people do with an editor.
type Change struct {
	Topic    string
	Old, New string // text of the schema's file; Old is there once
}

// Changes of the order events' declaration.
var (
	// Reword changes a doc and a tag. No record changes: it becomes a commit of metadata alone.
	Reword = Change{OrderTopic, `"doc": "The voucher that was used, null without one.",
      "ods.sensitivity": "internal",`, `"doc": "The code of the voucher that was used, null without one.",
      "ods.sensitivity": "confidential",`}
	// AddChannel adds an optional field: old producers go on, and their rows have a null there.
	AddChannel = Change{OrderTopic, `"fields": [`, `"fields": [
    {
      "name": "channel",
      "type": ["null", "string"],
      "default": null,
      "doc": "Where the order was placed, null from producers that don't say.",
      "ods.sensitivity": "internal",
      "ods.pii": false
    },`}
	// RequireWarehouse adds a field that every record must have. Records that were written before have none: the registry refuses it.
	RequireWarehouse = Change{OrderTopic, `"fields": [`, `"fields": [
    {
      "name": "warehouse",
      "type": "string",
      "doc": "Where the order is packed.",
      "ods.sensitivity": "internal",
      "ods.pii": false
    },`}
)

// Apply changes the declaration in a folder.
func (c Change) Apply(folder string) error { return replace(folder, c.Topic, c.Old, c.New) }

// Undo takes the change back.
func (c Change) Undo(folder string) error { return replace(folder, c.Topic, c.New, c.Old) }

func replace(folder, topic, from, to string) error {
	name := filepath.Join(folder, topic+".avsc")
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("change the declaration: %w", err)
	}
	if n := strings.Count(string(text), from); n != 1 {
		return fmt.Errorf("change the declaration: what is to be changed is %d times in %s", n, name)
	}
	return os.WriteFile(name, []byte(strings.Replace(string(text), from, to, 1)), 0o644)
}
