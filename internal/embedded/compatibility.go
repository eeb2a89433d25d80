package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
)

// judging refuses Avro schemas that break their subject's compatibility level, with the answer of Confluent's registry (409): srfake keeps
// levels and judges nothing. Schemas of other types, and those that refer to others, are let through.
type judging struct {
	next http.Handler
	mu   sync.Mutex // one registration at a time: what is judged against is what is there
}

// versionsPath are the paths under which a schema is registered: /subjects/{subject}/versions.
func versionsPath(req *http.Request) (subject string, ok bool) {
	rest, ok := strings.CutPrefix(req.URL.EscapedPath(), "/subjects/")
	if !ok || req.Method != http.MethodPost {
		return "", false
	}
	subject, ok = strings.CutSuffix(rest, "/versions")
	if !ok || strings.Contains(subject, "/") {
		return "", false
	}
	return subject, true
}

// ServeHTTP implements http.Handler.
func (j *judging) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	subject, ok := versionsPath(req)
	if !ok {
		j.next.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, "read request: "+err.Error(), http.StatusBadRequest)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if reason := j.judge(subject, body); reason != "" {
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(map[string]any{"error_code": http.StatusConflict, "message": reason}) // fails if the client has gone
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	j.next.ServeHTTP(w, req)
}

// judge says why a schema may not be registered under the subject (escaped); "" if it may, or if the registry behind knows better what is wrong.
func (j *judging) judge(subject string, body []byte) string {
	var in sr.Schema
	if json.Unmarshal(body, &in) != nil || in.Type != sr.TypeAvro || len(in.References) > 0 {
		return ""
	}
	schema, err := avro.Parse(in.Schema)
	if err != nil {
		return ""
	}
	var level struct {
		Level sr.CompatibilityLevel `json:"compatibilityLevel"`
	}
	if !j.get("/config/"+subject+"?defaultToGlobal=true", &level) || level.Level == sr.CompatNone {
		return ""
	}
	var versions []int
	if !j.get("/subjects/"+subject+"/versions", &versions) {
		return "" // a new subject
	}
	switch level.Level {
	case sr.CompatBackward, sr.CompatForward, sr.CompatFull: // with the newest only
		versions = versions[max(0, len(versions)-1):]
	}
	for _, version := range versions {
		var old sr.SubjectSchema
		if !j.get(fmt.Sprintf("/subjects/%s/versions/%d", subject, version), &old) || old.Type != sr.TypeAvro || len(old.References) > 0 {
			continue
		}
		if err := compatible(level.Level, old.Schema.Schema, schema); err != nil {
			name, _ := url.PathUnescape(subject)
			return fmt.Sprintf("the schema is not %s compatible with version %d of subject %s: %v", level.Level, version, name, err)
		}
	}
	return ""
}

// compatible compares two schemas: BACKWARD levels want that the new one reads what the old one has written, FORWARD levels the reverse.
func compatible(level sr.CompatibilityLevel, oldText string, schema *avro.Schema) error {
	old, err := avro.Parse(oldText)
	if err != nil {
		return nil // it is there, and nothing can be said of it
	}
	switch level {
	case sr.CompatBackward, sr.CompatBackwardTransitive:
		return avro.CheckCompatibility(old, schema)
	case sr.CompatForward, sr.CompatForwardTransitive:
		return avro.CheckCompatibility(schema, old)
	}
	if err := avro.CheckCompatibility(old, schema); err != nil {
		return err
	}
	return avro.CheckCompatibility(schema, old)
}

// get asks the registry behind; false if it has no such thing.
func (j *judging) get(path string, into any) bool {
	req, err := http.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return false
	}
	a := newAnswer()
	j.next.ServeHTTP(a, req)
	return a.ok() && json.Unmarshal(a.body.Bytes(), into) == nil
}
