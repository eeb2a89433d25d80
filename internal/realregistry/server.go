package realregistry

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/child"
)

const (
	startLimit = 8 * time.Minute // to be ready, on a busy machine
	stopLimit  = 20 * time.Second
)

// Server is a running registry.
type Server struct {
	dir     string
	port    int
	process *exec.Cmd
	ended   chan struct{}
}

// Start starts a registry for one test, and stops it when the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := start()
	if errors.Is(err, errUnavailable) && os.Getenv("TRIBUTARY_REQUIRE_REGISTRY") == "" {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatalf("start Apicurio Registry %s: %v", Version, err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stop the registry: %v", err)
		}
	})
	return s
}

// URL is the base of Confluent's interface.
func (s *Server) URL() string { return fmt.Sprintf("http://127.0.0.1:%d/apis/ccompat/v7", s.port) }

// Pause stops the registry's process without ending it; Resume lets it go on. In between it is a registry that doesn't answer.
func (s *Server) Pause() error { return s.process.Process.Signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() error { return s.process.Process.Signal(syscall.SIGCONT) }

func start() (*Server, error) {
	program, err := java()
	if err != nil {
		return nil, err
	}
	dist, err := distribution()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tributary-registry-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, ended: make(chan struct{})}
	if err := s.run(program, dist); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.waitReady(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *Server) run(program, dist string) error {
	ports, err := child.FreePorts(2)
	if err != nil {
		return err
	}
	s.port = ports[0]
	log, err := os.Create(s.log())
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = exec.Command(program, "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Djava.io.tmpdir="+s.dir, "-Dquarkus.http.host=127.0.0.1", fmt.Sprintf("-Dquarkus.http.port=%d", ports[0]),
		"-Dquarkus.management.host=127.0.0.1", fmt.Sprintf("-Dquarkus.management.port=%d", ports[1]),
		"-Dapicurio.storage.kind=sql", "-Dapicurio.storage.sql.kind=h2",
		"-Dapicurio.datasource.url=jdbc:h2:mem:registry;DB_CLOSE_DELAY=-1",
		"-Dapicurio.datasource.username=sa", "-Dapicurio.datasource.password=sa",
		"-Dquarkus.log.level=WARN", "-Dapicurio.log.level=WARN", "-Dquarkus.otel.sdk.disabled=true",
		"-jar", filepath.Join(dist, "quarkus-run.jar"))
	s.process.Dir, s.process.Stdout, s.process.Stderr, s.process.SysProcAttr = s.dir, log, log, child.Attributes()
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("start the registry: %w", err)
	}
	go func() {
		s.process.Wait() // the way it ends is in its log
		close(s.ended)
	}()
	return nil
}

func (s *Server) log() string { return filepath.Join(s.dir, "registry.log") }

func (s *Server) waitReady() error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	limit := time.After(startLimit)
	for {
		if resp, err := client.Get(s.URL() + "/subjects"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the registry ended while starting: %s", s.lastWords())
		case <-limit:
			return fmt.Errorf("the registry isn't ready within %v: %s", startLimit, s.lastWords())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (s *Server) lastWords() string {
	log, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	return child.LastLines(string(log), 8)
}

func (s *Server) stop() error {
	s.Resume()                                // a paused process doesn't hear anything
	s.process.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-s.ended:
	case <-time.After(stopLimit):
		s.process.Process.Kill()
		<-s.ended
	}
	return os.RemoveAll(s.dir)
}
