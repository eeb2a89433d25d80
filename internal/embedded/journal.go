package embedded

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// journalEntry is one request that changed the registry: a line of the journal, in JSON.
type journalEntry struct {
	Method string `json:"method"`
	URI    string `json:"uri"`
	Body   string `json:"body"`
}

// journal is the file that a registry is made of anew at start: the requests that changed it, in their order. The registry
// gives ids by order alone, so the same requests give the same ids.
type journal struct{ file *os.File }

// openJournal reads the journal at path, makes its requests to handler, and opens it for more. A last line without its end is
// a crash in the middle of a write: it was never answered, and is cut off.
func openJournal(path string, handler http.Handler) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	end, err := replay(file, handler)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), file.Close())
	}
	return &journal{file: file}, nil
}

// replay returns the length of the journal's whole lines.
func replay(file io.Reader, handler http.Handler) (end int64, err error) {
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		var e journalEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
		req, err := http.NewRequest(e.Method, e.URI, strings.NewReader(e.Body))
		if err != nil {
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
		answer := newAnswer()
		handler.ServeHTTP(answer, req)
		if !answer.ok() {
			return 0, fmt.Errorf("line %d: %s %s was answered %d at replay: %s", n, e.Method, e.URI, answer.status, answer.body.String())
		}
		end += int64(len(line))
	}
}

// append writes an entry and syncs it.
func (j *journal) append(e journalEntry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return j.file.Sync()
}

func (j *journal) close() error { return j.file.Close() }

// answer holds a handler's response until it may go out.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}, status: http.StatusOK} }

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) ok() bool                    { return a.status/100 == 2 }

func (a *answer) copyTo(w http.ResponseWriter) {
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.WriteHeader(a.status)
	w.Write(a.body.Bytes())
}
