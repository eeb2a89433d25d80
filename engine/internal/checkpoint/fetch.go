package checkpoint

import (
	"cmp"
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
	"time"

	"golang.org/x/sync/errgroup"
)

// Origin is where a checkpoint can be had.
type Origin interface {
	String() string
	// Manifest says what the checkpoint is. Where checkpoints are made when they are asked for, it makes one; then the files' checksums may
	// still lack, so that the files can be fetched while they are computed.
	Manifest(ctx context.Context) (*Manifest, error)
	// Whole gives the manifest with the checksums.
	Whole(ctx context.Context, m *Manifest) (*Manifest, error)
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
	return o.manifest(ctx, "?sums=later")
}

// Whole implements Origin.
func (o *HTTPOrigin) Whole(ctx context.Context, m *Manifest) (*Manifest, error) {
	if !m.SumsLater { // an instance of a former version has computed them first
		return m, nil
	}
	return o.manifest(ctx, "/"+m.ID)
}

func (o *HTTPOrigin) manifest(ctx context.Context, path string) (*Manifest, error) {
	resp, err := o.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		err := fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body[:min(len(body), 300)])))
		if resp.StatusCode == http.StatusGone {
			err = fmt.Errorf("%w: %w", err, errGone)
		}
		return nil, err
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

// doneWithin is how long it is tried to tell that a checkpoint isn't needed any more. Who isn't told removes it after a while.
const doneWithin = 5 * time.Second

// Done implements Origin.
func (o *HTTPOrigin) Done(ctx context.Context, m *Manifest) {
	ctx, cancel := context.WithTimeout(ctx, doneWithin)
	defer cancel()
	if resp, err := o.do(ctx, http.MethodDelete, "/"+m.ID, nil); err == nil {
		resp.Body.Close()
	}
}

// errGone says that trying again is of no use.
var errGone = errors.New("the checkpoint is gone")

// DamagedError says that a file arrived other than the manifest says, although it was fetched again.
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
	Sums     time.Duration // how long the checksums may lack when all files are there
	Progress func(bytes int64)
}

// syncsAtOnce is how many files are being synced at a time, while the next ones come.
const syncsAtOnce = 4

// Fetch brings the files of a checkpoint into dir, which it makes; each is synced and checked, and fetched once more if it isn't as it should
// be. What is there already is removed first. After an error dir holds part of the checkpoint.
func Fetch(ctx context.Context, from Origin, m *Manifest, dir string, cfg FetchConfig) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("fetch checkpoint: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("fetch checkpoint: %w", err)
	}
	f := &fetcher{from: from, manifest: m, dir: dir, cfg: cfg}
	if err := f.fetch(ctx); err != nil {
		return fmt.Errorf("fetch checkpoint of task %s from %s: %w", m.Task, from, err)
	}
	return syncDir(dir)
}

// fetcher is the way of one checkpoint.
type fetcher struct {
	from     Origin
	manifest *Manifest
	dir      string
	cfg      FetchConfig
}

// fetch brings all files, and those that arrived damaged again.
func (f *fetcher) fetch(ctx context.Context) error {
	files := slices.SortedFunc(slices.Values(f.manifest.Files), func(a, b File) int { return cmp.Compare(b.Size, a.Size) })
	for again := false; ; again = true {
		sums, err := f.bring(ctx, files)
		if err != nil {
			return err
		}
		damaged, err := f.compare(ctx, files, sums)
		switch {
		case err != nil || len(damaged) == 0:
			return err
		case again:
			return &DamagedError{damaged[0].Name, "its checksum is another one"}
		}
		for _, d := range damaged {
			f.cfg.Progress(-d.Size)
		}
		files = damaged
	}
}

// compare gives the files whose checksum isn't the one of the manifest.
func (f *fetcher) compare(ctx context.Context, files []File, sums []uint32) (damaged []File, err error) {
	whole, err := f.whole(ctx)
	if err != nil {
		return nil, fmt.Errorf("its checksums: %w", err)
	}
	if whole.SumsLater || whole.ID != f.manifest.ID {
		return nil, fmt.Errorf("its checksums: got those of checkpoint %s, not of %s", whole.ID, f.manifest.ID)
	}
	want := map[string]File{}
	for _, w := range whole.Files {
		want[w.Name] = w
	}
	for i, file := range files {
		if w := want[file.Name]; w.Name == "" || w.Size != file.Size || w.CRC32C != sums[i] {
			damaged = append(damaged, file)
		}
	}
	return damaged, nil
}

// whole asks for the checksums, again after failures, as for a file.
func (f *fetcher) whole(ctx context.Context) (*Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Sums)
	defer cancel()
	for tries, pause := 1, f.cfg.Pause; ; tries, pause = tries+1, 2*pause {
		m, err := f.from.Whole(ctx, f.manifest)
		if err == nil || errors.Is(err, errGone) || tries >= f.cfg.Attempts {
			return m, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// bring fetches files, several at a time, and syncs them meanwhile. It gives their checksums as they arrived.
func (f *fetcher) bring(ctx context.Context, files []File) (sums []uint32, err error) {
	sums = make([]uint32, len(files))
	fetching, ctx := errgroup.WithContext(ctx) // one that fails ends the others, which are of no use any more
	fetching.SetLimit(f.cfg.AtOnce)
	var syncing errgroup.Group
	syncing.SetLimit(syncsAtOnce)
	for i, file := range files {
		fetching.Go(func() error {
			d := download{fetcher: f, file: file}
			if err := d.run(ctx); err != nil {
				return err
			}
			sums[i] = d.crc.Sum32()
			syncing.Go(func() error { return errors.Join(d.out.Sync(), d.out.Close()) })
			return nil
		})
	}
	err = fetching.Wait()
	return sums, errors.Join(err, syncing.Wait())
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
	*fetcher
	file File

	out *os.File // open after run
	at  int64
	crc hash.Hash32
}

// run fetches the file. A connection that breaks is made again, and goes on where it broke.
func (d *download) run(ctx context.Context) (err error) {
	if d.out, err = os.Create(filepath.Join(d.dir, d.file.Name)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.out.Close())
		}
	}()
	d.crc = crc32.New(castagnoli)
	failures, pause := 0, d.cfg.Pause
	for {
		before := d.at
		err := d.copy(ctx)
		var bad *DamagedError
		switch {
		case err == nil || ctx.Err() != nil || errors.Is(err, errGone) || errors.As(err, &bad):
			return err
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

// copy reads on from where the file is.
func (d *download) copy(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(d.cfg.Stall, func() { cancel(fmt.Errorf("nothing came for %v", d.cfg.Stall)) })
	defer stall.Stop()
	if d.at == d.file.Size && d.at > 0 { // it broke just behind the last byte
		return nil
	}
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
