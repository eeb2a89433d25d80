package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/child"
)

// endsWith is the role of a child that ends with an error of given words, once it is asked to end.
const endsWith = "ends-with"

func TestOnlyBrokersExplainAMissingCommit(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("no commit, and no reason"), false},
		{context.DeadlineExceeded, false}, // it isn't the last commit that failed
		{&engine.UncommittedError{Err: errors.New("no reason")}, false},
		{&engine.UncommittedError{Err: fmt.Errorf("commit: %w", kerr.TopicAuthorizationFailed)}, false},
		{&engine.UncommittedError{Err: fmt.Errorf("commit: %w", kerr.NotCoordinator)}, true},
		{&engine.UncommittedError{Err: fmt.Errorf("commit: %w", kerr.ProducerFenced)}, true},
		{fmt.Errorf("application: %w", &engine.UncommittedError{Err: context.DeadlineExceeded}), true},
		{&engine.UncommittedError{Err: syscall.ECONNREFUSED}, true},
	} {
		if got := lackedBrokers(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

func TestOnlyStrikesExcuseAnInstance(t *testing.T) {
	lacked := brokersLacked + ": closed without the last commit"
	for name, c := range map[string]struct {
		words string
		sky   *weather
		want  bool
	}{
		"a broker is away":             {lacked, &weather{busy: map[string]bool{"broker": true}}, true},
		"a broker came back":           {lacked, &weather{struck: time.Now()}, true},
		"a broker came back long ago":  {lacked, &weather{struck: time.Now().Add(-2 * aftermath)}, false},
		"no broker was struck":         {lacked, &weather{}, false},
		"a broker, and another reason": {"closed without the last commit: no reason", &weather{struck: time.Now()}, false},
	} {
		p, err := child.Start(endsWith, c.words, filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.sky.close(p); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
