package storehttp

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Values and errors are shown as they are, also where they hold what HTML would escape.
func TestAnswersAreForPeopleToo(t *testing.T) {
	asText := func(b []byte) (any, error) { return string(b), nil }
	unreadable := func([]byte) (any, error) { return nil, errors.New("no such schema") }
	w := httptest.NewRecorder()
	writeJSON(w, http.StatusOK, []any{shown(asText, []byte("a&b")), shown(unreadable, []byte("<c>")), "x?y=1&z=2"})
	if got, want := w.Body.String(), `["a&b",{"text":"<c>"},"x?y=1&z=2"]`+"\n"; got != want || w.Code != http.StatusOK {
		t.Errorf("got %d, %q, want %q", w.Code, got, want)
	}
	w = httptest.NewRecorder()
	writeJSON(w, http.StatusOK, func() {})
	if got, want := w.Body.String(), `{"error":"the answer has no JSON form"}`+"\n"; got != want || w.Code != http.StatusInternalServerError {
		t.Errorf("got %d, %q, want %q", w.Code, got, want)
	}
}
