package pyenv

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

//go:embed serve.py
var serveProgram string

// ErrEnded is in the error of a request to a helper whose process has ended; what it wrote to standard error is there, too.
var ErrEnded = errors.New("the helper process ended")

// Helper is a Python program that runs beside this process and ends with its own input: at Close, or when this process ends. Its methods
// may be called concurrently; requests are answered one after the other.
type Helper struct {
	mu     sync.Mutex
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *os.File
}

// Start runs the text of a program that talks by a protocol of its own: Line reads what it prints.
func Start(python, program string, args ...string) (*Helper, error) {
	stderr, err := os.CreateTemp("", "python-helper-*.txt")
	if err != nil {
		return nil, err
	}
	defer os.Remove(stderr.Name()) // what it holds is read through the open file
	h := &Helper{cmd: exec.Command(python, append([]string{"-c", program}, args...)...), stderr: stderr}
	h.cmd.Stderr = stderr
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		return nil, errors.Join(err, stderr.Close())
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, stderr.Close())
	}
	h.stdout = bufio.NewReader(stdout)
	if err := h.cmd.Start(); err != nil {
		return nil, errors.Join(err, stderr.Close())
	}
	return h, nil
}

// Serve runs the text of a program that ends with serve(handlers): functions by the name of an operation, each from a request (a dict)
// to an answer. It waits until the program answers. In the program arrow_rows(table) turns an Arrow table into rows.
func Serve(python, program string, args ...string) (*Helper, error) {
	h, err := Start(python, serveProgram+"\n\n"+program, args...)
	if err != nil {
		return nil, err
	}
	if _, err := h.Ask(struct {
		Op string `json:"op"`
	}{"ping"}); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Ask sends a request as JSON, whose field op names the operation, and returns the answer, which is JSON as well. What the handler raises
// is the error.
func (h *Helper) Ask(request any) (json.RawMessage, error) {
	line, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.stdin.Write(append(line, '\n')); err != nil {
		return nil, h.ended(err)
	}
	reply, err := h.stdout.ReadBytes('\n')
	if err != nil {
		return nil, h.ended(err)
	}
	var answer struct {
		Result json.RawMessage
		Error  string
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Result, nil
}

// AskInto asks and decodes the answer. Numbers in untyped places are json.Number.
func (h *Helper) AskInto(request, answer any) error {
	result, err := h.Ask(request)
	if err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(result)))
	d.UseNumber()
	return d.Decode(answer)
}

// Line is the next line that the program prints, without its end.
func (h *Helper) Line() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, err := h.stdout.ReadString('\n')
	if err != nil {
		return "", h.ended(err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func (h *Helper) ended(err error) error {
	said, _ := io.ReadAll(io.NewSectionReader(h.stderr, 0, 1<<20))
	return fmt.Errorf("%w: %w: %s", ErrEnded, err, strings.TrimSpace(string(said)))
}

// Close ends the program and waits for it.
func (h *Helper) Close() {
	h.stdin.Close()
	_ = h.cmd.Wait()
	h.stderr.Close()
}
