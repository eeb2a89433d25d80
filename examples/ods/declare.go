package ods

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

//go:embed streams
var shipped embed.FS

// Names of the example. Streams and tables are named after source and entity.
const (
	OrderTopic   = "ods.demo.order_events"        // what the shop's systems send
	StagedTopic  = "ods.demo.order_events_staged" // what is published back
	RawTable     = "raw/demo__order_events"
	StagingTable = "staging/demo__order_events"
)

// Init writes the declarations that ship into a folder: a <topic>.yaml with owner, domain and sensitivity, and a <topic>.avsc with the fields'
// docs and ods attributes. Files that are there stay as they are.
func Init(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("declarations: %w", err)
	}
	entries, err := shipped.ReadDir("streams")
	if err != nil {
		return fmt.Errorf("declarations: %w", err)
	}
	for _, e := range entries {
		text, err := shipped.ReadFile(path.Join("streams", e.Name()))
		if err != nil {
			return fmt.Errorf("declarations: %w", err)
		}
		if err := writeNew(filepath.Join(folder, e.Name()), text); err != nil {
			return fmt.Errorf("declarations: %w", err)
		}
	}
	return nil
}

// writeNew writes a file that isn't there.
func writeNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
