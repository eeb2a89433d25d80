package s3store

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tributary-io/tributary/lake/object/storetest"
)

// fakeS3 is as much of S3's protocol as the store uses, in path style, with faults. What it can't show is how real stores differ;
// see TestGateway.
type fakeS3 struct {
	*storetest.Fake

	mu    sync.Mutex
	parts map[string][]byte // of multipart uploads
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case r.Method == http.MethodPut:
		f.put(w, r, key)
	case r.Method == http.MethodPost:
		f.multipart(w, r, key)
	case r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2":
		f.list(w, r, strings.TrimSuffix(key, "/"))
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		f.get(w, r, key)
	case r.Method == http.MethodDelete:
		f.Remove(key)
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
	if q := r.URL.Query(); q.Has("partNumber") {
		f.part(w, q.Get("uploadId")+" "+q.Get("partNumber"), data)
		return
	}
	switch status := f.Store(key, data, r.Header.Get("If-None-Match") == "*"); status {
	case http.StatusOK:
		w.Header().Set("ETag", etag(data))
	case storetest.DropReply:
		storetest.Drop()
	default:
		s3Error(w, status, map[int]string{409: "ConditionalRequestConflict", 412: "PreconditionFailed", 403: "AccessDenied", 503: "SlowDown"}[status])
	}
}

// part keeps a part of a multipart upload.
func (f *fakeS3) part(w http.ResponseWriter, id string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts == nil {
		f.parts = map[string][]byte{}
	}
	f.parts[id] = data
	w.Header().Set("ETag", etag(data))
}

// multipart starts and completes multipart uploads, whose id is the key.
func (f *fakeS3) multipart(w http.ResponseWriter, r *http.Request, key string) {
	w.Header().Set("Content-Type", "application/xml")
	if r.URL.Query().Has("uploads") {
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", url.QueryEscape(key))
		return
	}
	var data []byte
	f.mu.Lock()
	for n := 1; ; n++ {
		part, ok := f.parts[fmt.Sprint(r.URL.Query().Get("uploadId"), " ", n)]
		if !ok {
			break
		}
		data = append(data, part...)
	}
	f.mu.Unlock()
	f.Store(key, data, false)
	fmt.Fprintf(w, "<CompleteMultipartUploadResult><ETag>%s</ETag></CompleteMultipartUploadResult>", "&quot;x&quot;")
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
	data, ok := f.Load(key)
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

func (f *fakeS3) list(w http.ResponseWriter, r *http.Request, bucket string) {
	q := r.URL.Query()
	keys, more := f.Page(bucket, q.Get("prefix"), max(q.Get("start-after"), q.Get("continuation-token")))
	res := listResult{IsTruncated: more}
	if more {
		res.NextContinuationToken = keys[len(keys)-1]
	}
	for _, key := range keys {
		data, _ := f.Load(bucket + "/" + key)
		res.Contents = append(res.Contents, listEntry{key, time.Now().UTC().Format(time.RFC3339), etag(data), len(data)})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(res)
}
