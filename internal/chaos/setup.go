package chaos

import (
	"fmt"
	"math/rand/v2"

	"github.com/tributary-io/tributary/engine"
)

// Setup is how the instances of a run share tasks and state.
type Setup struct {
	Protocol engine.Protocol
	Standbys int
	Ship     bool // checkpoints of tasks, from instance to instance
}

// drawSetup draws a run's setup from its seed, independently of the input and the weather.
func drawSetup(seed uint64) Setup {
	rnd := rand.New(rand.NewPCG(seed, 0x5e70))
	s := Setup{Standbys: rnd.IntN(2), Ship: rnd.IntN(2) == 0}
	if rnd.IntN(2) == 0 {
		s.Protocol = engine.Streams
	}
	return s
}

func (s Setup) String() string {
	return fmt.Sprintf("%v protocol, %d standbys, checkpoints shipped: %v", s.Protocol, s.Standbys, s.Ship)
}

func (s Setup) options() []engine.Option {
	opts := []engine.Option{engine.GroupProtocol(s.Protocol), engine.Standbys(s.Standbys)}
	if s.Ship {
		opts = append(opts, engine.ShipCheckpoints())
	}
	return opts
}
