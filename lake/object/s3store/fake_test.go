package s3store

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fakeS3 is as much of S3's protocol as the store uses, in path style, with faults. What it can't show is how real stores differ;
// see TestGateway.
type fakeS3 struct {
	mu      sync.Mutex
	objects map[string][]byte // by bucket/key
	// fault is asked before each PUT: 0 for none, else an HTTP status to answer without storing; dropReply stores and then breaks the
	// connection.
	fault  func(key string) int
	ignore bool // the condition
}

const dropReply = -1

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case r.Method == http.MethodPut:
		f.put(w, r, key)
	case r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2":
		f.list(w, r, strings.TrimSuffix(key, "/"))
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		f.get(w, r, key)
	case r.Method == http.MethodDelete:
		f.mu.Lock()
		delete(f.objects, key)
		f.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		s3Error(w, http.StatusNotImplemented, "NotImplemented")
	}
}

func s3Error(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

func (f *fakeS3) put(w http.ResponseWriter, r *http.Request, key string) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") || strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING") {
		data = unchunk(data)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := 0
	if f.fault != nil {
		fault = f.fault(key)
	}
	if fault > 0 {
		s3Error(w, fault, map[int]string{409: "ConditionalRequestConflict", 403: "AccessDenied", 503: "SlowDown"}[fault])
		return
	}
	if _, ok := f.objects[key]; ok && r.Header.Get("If-None-Match") == "*" && !f.ignore {
		s3Error(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	f.objects[key] = data
	if fault == dropReply {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("ETag", etag(data))
}

// unchunk undoes the AWS chunked encoding: size in hex, signature or nothing, data.
func unchunk(data []byte) (out []byte) {
	for {
		head, rest, ok := bytes.Cut(data, []byte("\r\n"))
		size, _, _ := strings.Cut(string(head), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if !ok || err != nil || n == 0 || int64(len(rest)) < n+2 {
			return out
		}
		out = append(out, rest[:n]...)
		data = rest[n+2:]
	}
}

func etag(data []byte) string {
	sum := md5.Sum(data)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func (f *fakeS3) get(w http.ResponseWriter, r *http.Request, key string) {
	f.mu.Lock()
	data, ok := f.objects[key]
	f.mu.Unlock()
	if !ok {
		s3Error(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", etag(data))
	http.ServeContent(w, r, "", time.Now(), bytes.NewReader(data))
}

type listResult struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listEntry
}

type listEntry struct {
	Key, LastModified, ETag string
	Size                    int
}

// list answers in pages of three.
func (f *fakeS3) list(w http.ResponseWriter, r *http.Request, bucket string) {
	q := r.URL.Query()
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	f.mu.Lock()
	defer f.mu.Unlock()
	var res listResult
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		key, ok := strings.CutPrefix(name, bucket+"/")
		if !ok || key <= after || !strings.HasPrefix(key, q.Get("prefix")) {
			continue
		}
		if len(res.Contents) == 3 {
			res.IsTruncated = true
			res.NextContinuationToken = res.Contents[2].Key
			break
		}
		res.Contents = append(res.Contents, listEntry{key, time.Now().UTC().Format(time.RFC3339), etag(f.objects[name]), len(f.objects[name])})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(res)
}
