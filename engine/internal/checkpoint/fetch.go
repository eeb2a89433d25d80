package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Origin is where a checkpoint can be had.
type Origin interface {
	String() string
	// Manifest says what the checkpoint is. Where checkpoints are made when they are asked for, it makes one.
	Manifest(ctx context.Context) (*Manifest, error)
	// Open reads a file of the checkpoint from an offset on.
	Open(ctx context.Context, m *Manifest, file File, from int64) (io.ReadCloser, error)
	// Done tells that the checkpoint is not needed any more.
	Done(ctx context.Context, m *Manifest)
}

// HTTPOrigin is a checkpoint that another instance's desk has.
type HTTPOrigin struct {
	Client *http.Client
	Base   string // of the instance's server: http://host:port
	Task   string
	Header http.Header // of each request
}

func (o *HTTPOrigin) String() string { return o.Base }

func (o *HTTPOrigin) do(ctx context.Context, method, path string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, o.Base+"/checkpoints/"+o.Task+path, nil)
	if err != nil {
		return nil, err
	}
	for _, h := range []http.Header{o.Header, header} {
		for k, v := range h {
			req.Header[k] = v
		}
	}
	return o.Client.Do(req)
}

// Manifest implements Origin.
func (o *HTTPOrigin) Manifest(ctx context.Context) (*Manifest, error) {
	resp, err := o.do(ctx, http.MethodGet, "", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body[:min(len(body), 300)])))
	}
	return Parse(body)
}

// Open implements Origin.
func (o *HTTPOrigin) Open(ctx context.Context, m *Manifest, file File, from int64) (io.ReadCloser, error) {
	header, want := http.Header{}, http.StatusOK
	if from > 0 {
		header.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
		want = http.StatusPartialContent
	}
	resp, err := o.do(ctx, http.MethodGet, "/"+m.ID+"/"+file.Name, header)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != want {
		resp.Body.Close()
		err := fmt.Errorf("%s: %s", file.Name, resp.Status)
		if resp.StatusCode == http.StatusGone {
			err = fmt.Errorf("%w: %w", err, errGone)
		}
		return nil, err
	}
	return resp.Body, nil
}

// Done implements Origin.
func (o *HTTPOrigin) Done(ctx context.Context, m *Manifest) {
	if resp, err := o.do(ctx, http.MethodDelete, "/"+m.ID, nil); err == nil {
		resp.Body.Close()
	}
}

// errGone says that trying again is of no use.
var errGone = errors.New("the checkpoint is gone")

// DamagedError says that a file arrived other than the manifest says, more than once.
type DamagedError struct {
	File string
	Why  string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("file %s of the checkpoint is damaged: %s", e.File, e.Why)
}

// FetchConfig says how files are fetched.
type FetchConfig struct {
	AtOnce   int           // files at a time
	Attempts int           // for each file, without any progress in between
	Pause    time.Duration // after the first failure of a file; doubles
	Stall    time.Duration // how long a connection may bring nothing
	Progress func(bytes int64)
}

// Fetch brings the files of a checkpoint into dir, which it makes; each is synced and checked. What is there already is removed first. After
// an error dir holds part of the checkpoint.
func Fetch(ctx context.Context, from Origin, m *Manifest, dir string, cfg FetchConfig) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("fetch checkpoint: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("fetch checkpoint: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	files := slices.SortedFunc(slices.Values(m.Files), func(a, b File) int { return int(min(1, max(-1, b.Size-a.Size))) }) // the largest first
	queue := make(chan File, len(files))
	for _, f := range files {
		queue <- f
	}
	close(queue)
	var fetching sync.WaitGroup
	errs := make([]error, cfg.AtOnce)
	for i := range errs {
		fetching.Go(func() {
			for f := range queue {
				d := download{from: from, manifest: m, file: f, path: filepath.Join(dir, f.Name), cfg: cfg}
				if errs[i] = d.run(ctx); errs[i] != nil {
					cancel() // the others are of no use any more
					return
				}
			}
		})
	}
	fetching.Wait()
	if err := firstCause(errs); err != nil {
		return fmt.Errorf("fetch checkpoint of task %s from %s: %w", m.Task, from, err)
	}
	return syncDir(dir)
}

// firstCause leaves out what only came of ending the others.
func firstCause(errs []error) error {
	var cause error
	for _, err := range errs {
		if err != nil && (cause == nil || errors.Is(cause, context.Canceled)) {
			cause = err
		}
	}
	return cause
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync checkpoint: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync checkpoint: %w", err)
	}
	return nil
}

// download is the way of one file.
type download struct {
	from     Origin
	manifest *Manifest
	file     File
	path     string
	cfg      FetchConfig

	out *os.File
	at  int64
	crc hash.Hash32
}

// run fetches the file. A connection that breaks is made again, and goes on where it broke. A file that is not as it should be is fetched once
// more from its beginning.
func (d *download) run(ctx context.Context) (err error) {
	if d.out, err = os.Create(d.path); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.out.Close()) }()
	d.crc = crc32.New(castagnoli)
	failures, damaged, pause := 0, 0, d.cfg.Pause
	for {
		before := d.at
		err := d.once(ctx)
		var bad *DamagedError
		switch {
		case err == nil:
			return d.out.Sync()
		case ctx.Err() != nil || errors.Is(err, errGone):
			return err
		case errors.As(err, &bad):
			if damaged++; damaged > 1 {
				return err
			}
			if err := d.again(); err != nil {
				return err
			}
			continue
		case d.at > before:
			failures, pause = 0, d.cfg.Pause
		}
		if failures++; failures >= d.cfg.Attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// again begins the file anew.
func (d *download) again() error {
	d.cfg.Progress(-d.at)
	d.at = 0
	d.crc.Reset()
	if err := d.out.Truncate(0); err != nil {
		return err
	}
	_, err := d.out.Seek(0, io.SeekStart)
	return err
}

func (d *download) once(ctx context.Context) error {
	if d.at < d.file.Size || d.file.Size == 0 {
		if err := d.copy(ctx); err != nil {
			return err
		}
	}
	if got := d.crc.Sum32(); got != d.file.CRC32C {
		return &DamagedError{d.file.Name, fmt.Sprintf("its checksum is %08x, not %08x", got, d.file.CRC32C)}
	}
	return nil
}

// copy reads on from where the file is.
func (d *download) copy(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(d.cfg.Stall, func() { cancel(fmt.Errorf("nothing came for %v", d.cfg.Stall)) })
	defer stall.Stop()
	in, err := d.from.Open(ctx, d.manifest, d.file, d.at)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer in.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			stall.Reset(d.cfg.Stall)
			if d.at+int64(n) > d.file.Size {
				return &DamagedError{d.file.Name, fmt.Sprintf("it is longer than %d bytes", d.file.Size)}
			}
			if _, err := d.out.Write(buf[:n]); err != nil {
				return err
			}
			d.crc.Write(buf[:n])
			d.at += int64(n)
			d.cfg.Progress(int64(n))
		}
		switch {
		case err == io.EOF && d.at < d.file.Size:
			return fmt.Errorf("file %s ends at %d of %d bytes: %w", d.file.Name, d.at, d.file.Size, io.ErrUnexpectedEOF)
		case err == io.EOF:
			return nil
		case err != nil:
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
