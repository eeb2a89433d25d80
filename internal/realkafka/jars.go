package realkafka

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"

	"github.com/tributary-io/tributary/internal/mavenjars"
)

// defaultVersion is the Kafka release that pom.xml names.
const defaultVersion = "4.3.1"

// Version is the Kafka release that is started. TRIBUTARY_KAFKA_VERSION chooses another one, to try the tests on.
func Version() string {
	if v := os.Getenv("TRIBUTARY_KAFKA_VERSION"); v != "" {
		return v
	}
	return defaultVersion
}

//go:embed pom.xml
var pom []byte

// errUnavailable is wrapped where the machine lacks what a broker needs.
var errUnavailable = errors.New("a real Kafka can't be started here")

// jars returns the directory with the broker's jars, fetching them at the first time.
func jars() (string, error) {
	dir, err := mavenjars.Dir("kafka-"+Version(), bytes.ReplaceAll(pom, []byte(defaultVersion), []byte(Version())))
	if errors.Is(err, mavenjars.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", errUnavailable, err)
	}
	return dir, err
}
