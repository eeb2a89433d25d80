package realkafka

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/internal/mavenjars"
)

// Version is the Kafka release that is started. pom.xml names the same one.
const Version = "4.3.1"

//go:embed pom.xml
var pom []byte

// errUnavailable is wrapped where the machine lacks what a broker needs.
var errUnavailable = errors.New("a real Kafka can't be started here")

// jars returns the directory with the broker's jars, fetching them at the first time.
func jars() (string, error) {
	dir, err := mavenjars.Dir("kafka-"+Version, pom)
	if errors.Is(err, mavenjars.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", errUnavailable, err)
	}
	return dir, err
}
