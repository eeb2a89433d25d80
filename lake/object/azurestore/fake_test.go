package azurestore

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tributary-io/tributary/lake/object/storetest"
)

// fakeAzure is as much of the Blob service as the store uses, at /account/container. What it can't show is how the real service differs; see
// TestContainer.
type fakeAzure struct {
	*storetest.Fake

	mu     sync.Mutex
	blocks map[string][]byte // by key and block id
}

func azureError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.WriteHeader(status)
}

func (f *fakeAzure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, "/account/")
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPut && q.Get("comp") == "block":
		f.block(r, key+" "+q.Get("blockid"))
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut && q.Get("comp") == "blocklist":
		f.join(w, r, key)
	case r.Method == http.MethodPut:
		data, err := io.ReadAll(r.Body)
		if err == nil {
			f.store(w, key, data, r.Header.Get("If-None-Match") == "*")
		}
	case q.Get("comp") == "list":
		f.list(w, r, key)
	case r.Method == http.MethodDelete:
		if !f.Remove(key) {
			azureError(w, http.StatusNotFound, "BlobNotFound")
			return
		}
		w.WriteHeader(http.StatusAccepted)
	default:
		f.get(w, r, key)
	}
}

func (f *fakeAzure) block(r *http.Request, id string) {
	data, _ := io.ReadAll(r.Body) // what is missing makes the test fail
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocks == nil {
		f.blocks = map[string][]byte{}
	}
	f.blocks[id] = data
}

// join makes a blob of its blocks.
func (f *fakeAzure) join(w http.ResponseWriter, r *http.Request, key string) {
	var list struct{ Latest []string }
	if err := xml.NewDecoder(r.Body).Decode(&list); err != nil {
		azureError(w, http.StatusBadRequest, "InvalidXmlDocument")
		return
	}
	var data []byte
	f.mu.Lock()
	for _, id := range list.Latest {
		data = append(data, f.blocks[key+" "+id]...)
	}
	f.mu.Unlock()
	f.store(w, key, data, r.Header.Get("If-None-Match") == "*")
}

func (f *fakeAzure) store(w http.ResponseWriter, key string, data []byte, ifAbsent bool) {
	switch status := f.Store(key, data, ifAbsent); status {
	case http.StatusOK:
		w.WriteHeader(http.StatusCreated)
	case http.StatusPreconditionFailed:
		azureError(w, http.StatusConflict, "BlobAlreadyExists")
	case storetest.DropReply:
		storetest.Drop()
	default:
		azureError(w, status, "Fault")
	}
}

func (f *fakeAzure) get(w http.ResponseWriter, r *http.Request, key string) {
	data, ok := f.Load(key)
	if !ok {
		azureError(w, http.StatusNotFound, "BlobNotFound")
		return
	}
	if span := r.Header.Get("x-ms-range"); span != "" {
		r.Header.Set("Range", span)
	}
	http.ServeContent(w, r, "", time.Now(), bytes.NewReader(data))
}

type listing struct {
	XMLName    xml.Name `xml:"EnumerationResults"`
	Blobs      []entry  `xml:"Blobs>Blob"`
	NextMarker string
}

type entry struct {
	Name       string
	Properties struct {
		Modified string `xml:"Last-Modified"`
		Size     int    `xml:"Content-Length"`
	}
	Folder string `xml:"Metadata>hdi_isfolder,omitempty"`
}

// list answers as an account with a hierarchical namespace does, which lists folders too.
func (f *fakeAzure) list(w http.ResponseWriter, r *http.Request, container string) {
	q := r.URL.Query()
	after := q.Get("marker")
	if start := q.Get("startFrom"); after == "" && start != "" {
		after = start[:len(start)-1] // inclusive
	}
	keys, more := f.Page(container, q.Get("prefix"), after)
	page := listing{}
	if folder := strings.TrimSuffix(q.Get("prefix"), "/"); after == "" && folder != q.Get("prefix") {
		page.Blobs = append(page.Blobs, entry{Name: folder + "/sub", Folder: "true"})
	}
	for _, key := range keys {
		data, _ := f.Load(container + "/" + key)
		e := entry{Name: key}
		e.Properties.Size, e.Properties.Modified = len(data), time.Now().UTC().Format(http.TimeFormat)
		page.Blobs = append(page.Blobs, e)
	}
	if more {
		page.NextMarker = keys[len(keys)-1]
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(page)
}
