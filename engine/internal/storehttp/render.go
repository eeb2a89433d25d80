package storehttp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"unicode"
	"unicode/utf8"

	"github.com/tributary-io/tributary/engine/internal/scan"
	"github.com/tributary-io/tributary/state"
)

// rowJSON is a row as it is shown.
type rowJSON struct {
	Partition int32           `json:"partition"`
	Key       json.RawMessage `json:"key"`
	Value     json.RawMessage `json:"value"`
	Timestamp *int64          `json:"timestamp,omitempty"`
	Start     *int64          `json:"start,omitempty"`
	End       *int64          `json:"end,omitempty"`
	// Behind says that the row was read from a standby that lacked so many changelog records then.
	Behind *int64 `json:"behind,omitempty"`
}

// rowsJSON is an answer.
type rowsJSON struct {
	Store string    `json:"store"`
	Rows  []rowJSON `json:"rows"`
	// Truncated says that there may be more rows than the limit.
	Truncated bool `json:"truncated"`
}

// render shows a row by the store's serdes where they are known and give something that JSON can show, else as text or base64.
func (s *server) render(a *ask, part int32, r *scan.Row) rowJSON {
	key, value := rawJSON(r.Key), rawJSON(r.Value)
	if render, ok := s.Renderer(a.store); ok && !a.query.Has("raw") {
		key, value = shown(render.Key, r.Key), shown(render.Value, r.Value)
	}
	out := rowJSON{Partition: part, Key: key, Value: value}
	switch a.kind {
	case state.TimestampedKeyValue:
		out.Timestamp = &r.Timestamp
	case state.TimestampedWindow:
		out.Timestamp, out.Start, out.End = &r.Timestamp, &r.Start, windowEnd(r.Start, a.windowSize)
	case state.Window:
		out.Start = &r.Start
	case state.Session:
		out.Start, out.End = &r.Start, &r.End
	case state.Versioned:
		out.Start = &r.Start
		if r.End != state.LatestVersion {
			out.End = &r.End
		}
	}
	return out
}

// windowEnd is where a window ends, in ms since the epoch; nil if that isn't known or it has no end.
func windowEnd(start, size int64) *int64 {
	if size <= 0 || size > math.MaxInt64-max(start, 0) {
		return nil
	}
	end := start + size
	return &end
}

func shown(decode func([]byte) (any, error), data []byte) json.RawMessage {
	v, err := decode(data)
	if err != nil {
		return rawJSON(data)
	}
	if b, ok := v.([]byte); ok {
		return rawJSON(b)
	}
	text, err := jsonText(v)
	if err != nil { // no JSON form: NaN, a function
		return rawJSON(data)
	}
	return text
}

// rawJSON shows bytes: {"text": …} if they can be read, else {"base64": …}.
func rawJSON(data []byte) json.RawMessage {
	shown := map[string]string{}
	if utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) {
		shown["text"] = string(data)
	} else {
		shown["base64"] = base64.URLEncoding.EncodeToString(data)
	}
	out, err := jsonText(shown)
	if err != nil {
		return json.RawMessage("null") // strings always have a JSON form
	}
	return out
}

// jsonText is json.Marshal with &, < and > as they are: answers are read by people, too, and errors quote URLs.
func jsonText(v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte{'\n'}), err
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := jsonText(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer has no JSON form"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the one who asked may have gone
}

// writeError tells an error by its kind: 404 for unknown stores, 400 for what can't be asked, 421 for what another instance has, 503 for
// what may be there soon.
func (s *server) writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var request *badRequest
	var failed *forwardError
	switch absence := s.Absence(err); {
	case absence == Unknown:
		status = http.StatusNotFound
	case errors.As(err, &request):
		status = http.StatusBadRequest
	case absence == Elsewhere:
		status = http.StatusMisdirectedRequest
	case absence == Soon:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	case errors.As(err, &failed):
		status = http.StatusBadGateway
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}
