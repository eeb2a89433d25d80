package gcsstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tributary-io/tributary/lake/object/storetest"
)

// fakeGCS is as much of the JSON API as the store uses. What it can't show is how the real service differs; see TestBucket.
type fakeGCS struct {
	*storetest.Fake

	mu      sync.Mutex
	uploads map[string][]byte // resumable ones, by their id
}

func gcsError(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %d, "message": %q}}`, status, http.StatusText(status))
}

// ServeHTTP finds the operation by the path, whose last part may hold escaped slashes.
func (f *fakeGCS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, rest, _ := strings.Cut(r.URL.EscapedPath()[strings.Index(r.URL.EscapedPath(), "/b/")+3:], "/o")
	name, err := url.PathUnescape(strings.TrimPrefix(rest, "/"))
	switch {
	case err != nil:
		gcsError(w, http.StatusBadRequest)
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		f.upload(w, r, bucket)
	case r.Method == http.MethodDelete:
		if !f.Remove(bucket + "/" + name) {
			gcsError(w, http.StatusNotFound)
		}
	case name == "":
		f.list(w, r, bucket)
	default:
		f.get(w, r, bucket+"/"+name)
	}
}

func (f *fakeGCS) upload(w http.ResponseWriter, r *http.Request, bucket string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	q := r.URL.Query()
	if id := q.Get("upload_id"); id != "" {
		f.part(w, r, id, body)
		return
	}
	var about struct{ Name string }
	if q.Get("uploadType") == "resumable" {
		_ = json.Unmarshal(body, &about) // a name that isn't there fails the test
		w.Header().Set("Location", "http://"+r.Host+"/upload/storage/v1/b/x/o?upload_id="+url.QueryEscape(bucket+"/"+about.Name))
		return
	}
	_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	head, err := form.NextPart()
	if err == nil {
		err = json.NewDecoder(head).Decode(&about)
	}
	var data []byte
	if err == nil {
		head, err = form.NextPart()
	}
	if err == nil {
		data, err = io.ReadAll(head)
	}
	if err != nil {
		gcsError(w, http.StatusBadRequest)
		return
	}
	f.store(w, bucket+"/"+about.Name, data, q.Get("ifGenerationMatch") == "0")
}

// part takes one part of a resumable upload: "bytes 0-99/*", the last one with the size.
func (f *fakeGCS) part(w http.ResponseWriter, r *http.Request, id string, body []byte) {
	f.mu.Lock()
	if f.uploads == nil {
		f.uploads = map[string][]byte{}
	}
	f.uploads[id] = append(f.uploads[id], body...)
	data := f.uploads[id]
	f.mu.Unlock()
	if strings.HasSuffix(r.Header.Get("Content-Range"), "/*") {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(data)-1))
		w.Header().Set("X-Http-Status-Code-Override", "308") // the client asks for it in place of a status that HTTP libraries act upon
		return
	}
	f.store(w, id, data, false)
}

func (f *fakeGCS) store(w http.ResponseWriter, key string, data []byte, ifAbsent bool) {
	switch status := f.Store(key, data, ifAbsent); status {
	case http.StatusOK:
		_, _ = io.WriteString(w, `{"generation": "1"}`)
	case storetest.DropReply:
		storetest.Drop()
	default:
		gcsError(w, status)
	}
}

type item struct {
	Name    string `json:"name"`
	Size    string `json:"size"`
	Updated string `json:"updated"`
}

func (f *fakeGCS) item(key, name string) item {
	data, _ := f.Load(key)
	return item{name, strconv.Itoa(len(data)), time.Now().UTC().Format(time.RFC3339Nano)}
}

func (f *fakeGCS) get(w http.ResponseWriter, r *http.Request, key string) {
	data, ok := f.Load(key)
	switch {
	case !ok:
		gcsError(w, http.StatusNotFound)
	case r.URL.Query().Get("alt") == "media":
		http.ServeContent(w, r, "", time.Now(), bytes.NewReader(data))
	default:
		_ = json.NewEncoder(w).Encode(f.item(key, key))
	}
}

func (f *fakeGCS) list(w http.ResponseWriter, r *http.Request, bucket string) {
	q := r.URL.Query()
	after := q.Get("pageToken")
	if start := q.Get("startOffset"); after == "" && start != "" {
		after = start[:len(start)-1] // inclusive
	}
	keys, more := f.Page(bucket, q.Get("prefix"), after)
	var page struct {
		Items         []item `json:"items"`
		NextPageToken string `json:"nextPageToken,omitempty"`
	}
	for _, key := range keys {
		page.Items = append(page.Items, f.item(bucket+"/"+key, key))
	}
	if more {
		page.NextPageToken = keys[len(keys)-1]
	}
	_ = json.NewEncoder(w).Encode(page)
}
