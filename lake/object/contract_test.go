package object_test

import (
	"testing"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/object/storetest"
)

// TestContract has the stores here do what those in clouds must.
func TestContract(t *testing.T) {
	t.Run("local", func(t *testing.T) { storetest.Contract(t, storetest.Open(t, t.TempDir())) })
	t.Run("memory", func(t *testing.T) { storetest.Contract(t, object.NewMemory("test")) })
	t.Run("faulty", func(t *testing.T) { storetest.Contract(t, &object.Faulty{Inner: object.NewMemory("inner")}) })
}

func TestSink(t *testing.T) { storetest.Sink(t, t.TempDir()) }
