package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Process is a child: this program in one of its roles. It can be started again after its end. Its methods may be called from any
// goroutine, those that start and end it from one at a time.
type Process struct {
	env string
	log string

	mu    sync.Mutex
	cmd   *exec.Cmd
	heeds chan struct{} // closed once cmd minds SIGTERM, or has ended
	ended chan struct{} // closed at the end of cmd
	err   error         // of cmd, once it has ended
}

// Start starts this program as a child in that role, with args as JSON. What it prints is added to the file log.
func Start(role string, args any, log string) (*Process, error) {
	raw, err := json.Marshal(args)
	if err == nil {
		raw, err = json.Marshal(order{role, raw})
	}
	if err != nil {
		return nil, fmt.Errorf("start a child as %s: %w", role, err)
	}
	p := &Process{env: variable + "=" + string(raw), log: log}
	return p, p.Restart()
}

// Restart starts the process again, in its role and with its arguments, after killing one that still runs.
func (p *Process) Restart() error {
	p.Kill()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start a child: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), p.env)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, Attributes()
	heeding, child, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start a child: %w", err)
	}
	defer child.Close()
	cmd.ExtraFiles = []*os.File{child} // heedFile, which the child closes
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start a child: %w", err), heeding.Close())
	}
	heeds, ended := make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	p.cmd, p.heeds, p.ended, p.err = cmd, heeds, ended, nil
	p.mu.Unlock()
	go func() {
		_, _ = heeding.Read(make([]byte, 1)) // nothing comes, but the end
		heeding.Close()
		close(heeds)
	}()
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(ended)
	}()
	return nil
}

// Running tells whether the process has not ended.
func (p *Process) Running() bool {
	_, ended := p.current()
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

func (p *Process) current() (*exec.Cmd, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		never := make(chan struct{})
		close(never)
		return nil, never
	}
	return p.cmd, p.ended
}

// Signal sends a signal to the process, if it runs. SIGSTOP stops it without ending it, SIGCONT lets it go on.
func (p *Process) Signal(sig syscall.Signal) error {
	cmd, ended := p.current()
	select {
	case <-ended:
		return nil
	default:
	}
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal a child: %w", err)
	}
	return nil
}

// Kill ends the process as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	_, ended := p.current()
	_ = p.Signal(syscall.SIGKILL) // one that can't be killed has ended
	<-ended
}

// Stop asks the process to end (SIGTERM) and waits. Its error is the child's own exit, or that it didn't end in time and was killed. A process
// that was just started is asked once it minds that: before, the signal would end it by itself.
func (p *Process) Stop(within time.Duration) error {
	late := time.After(within)
	tooLate := func() error {
		p.Kill()
		return fmt.Errorf("a child did not end within %v of SIGTERM and was killed", within)
	}
	_, ended := p.current()
	p.mu.Lock()
	heeds := p.heeds
	p.mu.Unlock()
	if heeds != nil {
		select {
		case <-heeds:
		case <-late:
			return tooLate()
		}
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-ended:
	case <-late:
		return tooLate()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Pid is the id of the process that runs, or ran last.
func (p *Process) Pid() int {
	cmd, _ := p.current()
	return cmd.Process.Pid
}

// Log is what the process has printed, over all its lives.
func (p *Process) Log() []byte {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
