package storehttp

import (
	"errors"
	"math"
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

func TestWindowsWithoutAnEndShowNone(t *testing.T) {
	if end := windowEnd(60_000, 300_000); end == nil || *end != 360_000 {
		t.Errorf("a window of five minutes from one minute on ends at %v", end)
	}
	for _, w := range []struct{ start, size int64 }{{5, 0}, {5, math.MaxInt64}, {math.MaxInt64 - 1, 2}} {
		if end := windowEnd(w.start, w.size); end != nil {
			t.Errorf("a window from %d of %d ms ends at %d", w.start, w.size, *end)
		}
	}
}
